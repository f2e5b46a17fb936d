"""Text as terms, the same for what is searched and for what is searched for.

A term is a word without case and accents, or one character of a script that puts no blanks between words, or one
emoji.  Everything that finds text goes by `terms`, so an index, a query and an excerpt cannot disagree.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from engine.detokenize import sanitize

_SINGLE = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff\u2600-\u27bf\U0001f000-\U0001faff"
)
"""Thai, Lao, Burmese, Khmer, Chinese, Japanese; signs and emoji."""
_MARK = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u08d3-\u08ff"
"""What is written over or under letters: Latin, Cyrillic, Hebrew, Arabic."""
_INDIC = "\u0900-\u0963\u0966-\u0dff"
"""Letters with their signs, some of which `\\w` would take for ends of words."""
_LETTER = f"[^\\W_{_SINGLE}]|[{_INDIC}]"
_TERM = re.compile(f"(?P<single>[{_SINGLE}])|(?:{_LETTER})(?:{_LETTER}|[{_MARK}])*")
_TATWEEL = "\u0640"
_MOST_FOUND = 200
"""Matches in one text that are weighed for its excerpt."""


class Term(NamedTuple):
    """One term, and where the text has it."""

    folded: str
    start: int
    end: int


class Found(NamedTuple):
    """Where a text has a word of the query, and which one it is."""

    start: int
    end: int
    word: int


def terms(text: str) -> Iterator[Term]:
    """The terms of a text in order; none holds a blank or an ASCII sign."""
    for found in _TERM.finditer(text):
        if folded := _fold(found[0], single=found.lastgroup is not None):
            yield Term(folded, found.start(), found.end())


def indexed(text: str) -> str:
    """A text as the index takes it in: its terms, parted by blanks."""
    return " ".join(term.folded for term in terms(text))


class Query:
    """What somebody looks for: each word must occur, the last one as far as it is typed.

    What holds no letter, digit or emoji asks for nothing and is false.
    """

    def __init__(self, text: str) -> None:
        groups = [tuple(term.folded for term in terms(word)) for word in text.split()]
        self._words = [group for group in groups if group]

    def __bool__(self) -> bool:
        return bool(self._words)

    def match(self) -> str:
        """The same for FTS5: valid whatever was typed, since terms hold no signs."""
        return " AND ".join(f'"{" ".join(word)}"' for word in self._words) + "*"

    def excerpt(self, text: str, width: int = 120) -> tuple[str, tuple[tuple[int, int], ...]]:
        """A line of the text that shows as many of the words as it can, and where it has them."""
        line = " ".join(text.split())
        start = self._place(line, width * 2 // 3)
        begin = _word_start(line, min(start - width // 4, len(line) - width), start)
        head, tail = "…" if begin else "", "…" if begin + width < len(line) else ""
        shown = sanitize(line[begin : begin + width])
        spans = ((found.start + len(head), found.end + len(head)) for found in self._find(shown))
        return head + shown + tail, tuple(_apart(spans))

    def _place(self, line: str, width: int) -> int:
        """Where the first stretch of this width begins that has as many of the words as any."""
        near: deque[Found] = deque()
        best, most = 0, 0
        for found in islice(self._find(line), _MOST_FOUND):
            near.append(found)
            while found.start - near[0].start >= width:
                near.popleft()
            if (seen := len({one.word for one in near})) > most:
                best, most = near[0].start, seen
            if most == len(self._words):
                break
        return best

    def _find(self, line: str) -> Iterator[Found]:
        """Where the words stand, in order; no further is read than is asked for."""
        ahead, longest = terms(line), max(map(len, self._words), default=0)
        here = deque(islice(ahead, longest))
        while here:
            for number, word in enumerate(self._words):
                if here[0].folded.startswith(word[0]) and self._is(number, [*islice(here, len(word))]):
                    yield Found(here[0].start, here[len(word) - 1].end, number)
            here.popleft()
            here.extend(islice(ahead, 1))

    def _is(self, number: int, stretch: list[Term]) -> bool:
        """Whether these terms are the word of this number."""
        word = self._words[number]
        folded = tuple(term.folded for term in stretch)
        if number < len(self._words) - 1 or len(stretch) < len(word):
            return folded == word
        return folded[:-1] == word[:-1] and folded[-1].startswith(word[-1])


def _fold(word: str, single: bool) -> str:
    """Without case, and without accents where they make no other letter of a character."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKC" if single else "NFKD", word.casefold())
    kept = (c for c in apart if c.isalnum() or ord(c) > 127)
    return "".join(c for c in kept if single or not (unicodedata.combining(c) or c == _TATWEEL))


def _word_start(line: str, place: int, limit: int) -> int:
    """Where a word begins at or after a place and not after the limit; the place itself where none does."""
    if place <= 0:
        return 0
    return line.find(" ", place, limit) + 1 or place


def _apart(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places in order, with those that overlap made one."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start < apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1])
        else:
            apart.append((start, end))
    return apart
