"""An assistant's own ids in a rendered prompt, in the place of its text.

One invariant: ids stand only for text that the template copied from that message untouched, and they stand for
exactly that text; so a prompt with ids and one without have the same text.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from engine.errors import TemplateFailed

_FIRST, _LAST = 0xF0000, 0x10FFFD
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")

Render = Callable[[Sequence[str]], str]
"""The contents of the messages in, the text of the prompt out; raises TemplateFailed."""


class Part(NamedTuple):
    """A stretch of the content of one message."""

    message: int
    start: int
    end: int


def stand_ins(texts: Iterable[str]) -> Iterator[str]:
    """Characters for private use that occur in none of the texts."""
    used = {character for text in texts if not text.isascii() for character in _PRIVATE.findall(text)}
    return (chr(code) for code in range(_FIRST, _LAST + 1) if chr(code) not in used)


def kept(ids: Sequence[int], text: str, piece: Callable[[int], bytes]) -> tuple[int, int]:
    """How many first ids stand for how many first characters of `text`.

    All of them where they decode to it; otherwise the most of which the text begins with the decoded bytes, cut
    where no character is open.  Ids of another vocabulary simply do not fit.
    """
    try:
        if b"".join(map(piece, ids)).decode("utf-8", "replace") == text:
            return len(ids), len(text)
    except IndexError:
        pass
    return _kept_part(ids, text, piece)


def _kept_part(ids: Sequence[int], text: str, piece: Callable[[int], bytes]) -> tuple[int, int]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    count = at = seen = 0
    for number, token in enumerate(ids, 1):
        try:
            part = decoder.decode(piece(token))
        except IndexError:
            break
        if not text.startswith(part, seen):
            break
        seen += len(part)
        if seen > at and not decoder.getstate()[0]:
            count, at = number, seen
    return count, at


def untouched(
    parts: Sequence[Part], contents: Sequence[str], text: str, render: Render, marks: Iterator[str]
) -> dict[Part, int]:
    """Where in `text`, which is render(contents), those parts stand that the template copied as they are.

    Their first and last characters are changed and the text is rendered again: where nothing else changes, and each
    change shows once, that part was copied.  Parts that spoil a rendering are found by halving; at most one part a
    message.
    """
    parts = [part for part in parts if contents[part.message][part.start : part.end] in text]
    if not parts:
        return {}
    found = _marked(parts, contents, text, render, marks)
    if found is not None or len(parts) == 1:
        return found or {}
    half = len(parts) // 2
    one = untouched(parts[:half], contents, text, render, marks)
    return one | untouched(parts[half:], contents, text, render, marks)


def _marked(
    parts: Sequence[Part], contents: Sequence[str], text: str, render: Render, marks: Iterator[str]
) -> dict[Part, int] | None:
    marked = list(contents)
    pairs: list[tuple[str, str]] = []
    for part in parts:
        first, last = next(marks), next(marks)
        content = marked[part.message]
        inner = content[part.start + 1 : part.end - 1] + last if part.end - part.start > 1 else ""
        marked[part.message] = content[: part.start] + first + inner + content[part.end :]
        pairs.append((first, last if inner else first))
    try:
        changed = render(marked)
    except TemplateFailed:
        return None
    if len(changed) != len(text):
        return None
    return _places(parts, contents, pairs, changed, text)


def _places(
    parts: Sequence[Part], contents: Sequence[str], pairs: Sequence[tuple[str, str]], changed: str, text: str
) -> dict[Part, int] | None:
    """Where each pair stands, if each stands once at its distance and nothing else differs; None otherwise."""
    ours = {mark for pair in pairs for mark in pair}
    seen = [match.start() for match in _PRIVATE.finditer(changed) if match[0] in ours]
    places = {changed[at]: at for at in seen}
    if len(places) < len(ours) or len(seen) > len(ours):
        return None
    found = {}
    for part, (first, last) in zip(parts, pairs, strict=True):
        at, size = places[first], part.end - part.start
        if places[last] != at + size - 1 or text[at : at + size] != contents[part.message][part.start : part.end]:
            return None
        found[part] = at
    edges = [-1, *seen, len(text)]
    same = all(changed[a + 1 : b] == text[a + 1 : b] for a, b in pairwise(edges))
    return found if same else None
