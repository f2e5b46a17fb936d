"""Control tokens in a rendered prompt: those of the template count, those spelled in a message stay text.

One invariant: no control text that `find` reports holds a character of a message that went through `hide`, wherever
the template trims, splits or joins it: a message cannot begin one, and what could end one that the template or
another message began is hidden, too.
"""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import NamedTuple


class Match(NamedTuple):
    """A control token at text[start:end]."""

    start: int
    end: int
    token: int


class ControlTexts:
    """The control tokens of one vocabulary, and the texts that its template may look for in a message."""

    def __init__(self, control: Mapping[str, int], literals: Collection[str] = ()) -> None:
        self._ids = {text: token for text, token in control.items() if text}
        self._begins = _begins(self._ids, literals)
        self._ends = frozenset(text[at:] for text in self._ids for at in range(1, len(text)))
        self._longest = max(map(len, self._ends), default=0)
        self._inner = "\n".join(text[1:] for text in self._ids)
        self._sizes: dict[str, set[int]] = {}
        for text in self._ids:
            self._sizes.setdefault(text[0], set()).add(len(text))
        self._first = _any_of(self._sizes)

    def hide(self, content: str, stand_in: Callable[[str], str]) -> str:
        """The content with a stand-in for each character that could belong to a control text; length unchanged."""
        hidden = self._begins.sub(lambda match: stand_in(match[0]), content)
        body = content.lstrip()
        if body and self._may_end(body):
            at = len(content) - len(body)
            hidden = hidden[:at] + stand_in(content[at]) + hidden[at + 1 :]
        return hidden

    def _may_end(self, body: str) -> bool:
        """Whether a control text begun before the message could go on with it."""
        whole = body.rstrip()
        return whole in self._inner or any(body[:n] in self._ends for n in range(1, self._longest + 1))

    def find(self, text: str) -> list[Match]:
        """The control tokens of a rendered text in order; of overlapping ones the longest, then the first."""
        found = []
        for match in self._first.finditer(text):
            start = match.start()
            for size in self._sizes[match[0]]:
                end = start + size
                token = self._ids.get(text[start:end]) if end <= len(text) else None
                if token is not None:
                    found.append(Match(start, end, token))
        return _disjoint(found)


def _disjoint(found: list[Match]) -> list[Match]:
    if all(one.end <= other.start for one, other in pairwise(found)):
        return found
    taken: list[Match] = []
    for match in sorted(found, key=lambda m: (m.start - m.end, m.start)):
        if all(match.end <= other.start or other.end <= match.start for other in taken):
            taken.append(match)
    return sorted(taken)


def _begins(control: Collection[str], literals: Collection[str]) -> re.Pattern[str]:
    """Matches each first character of a control text, except where a literal stands that can begin none.

    A template that strips thinking looks for such literals; hidden, they would not be found.
    """
    firsts = {text[0] for text in control}
    harmless = [
        literal
        for literal in literals
        if len(literal) > 1
        and literal[0] in firsts
        and not any(text.startswith(literal) or literal.startswith(text) for text in control)
    ]
    spared = "|".join(map(re.escape, sorted(harmless, key=len, reverse=True)))
    return re.compile((f"(?!{spared})" if spared else "") + _any_of(firsts).pattern)


def _any_of(characters: Collection[str]) -> re.Pattern[str]:
    """Matches one of these characters; nothing where there are none."""
    return re.compile("[" + "".join(map(re.escape, sorted(characters))) + "]" if characters else r"(?!)")
