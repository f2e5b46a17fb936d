"""Foreign text in one line of so many cells: titles, excerpts and paths, in whatever script they are.

The one invariant: `one_line` keeps the length, so what is known about places in a text holds for its line as well.
Nothing in a line acts on the terminal: no control character, no line end, nothing that turns the direction of writing.
"""

from collections.abc import Sequence
from functools import cache

from rich.cells import cell_len
from textual.content import Content

from engine.detokenize import sanitize

MOST = 1_000
"""Characters of a text that a line is made from; no terminal is as wide."""
LEAD = 10
"""Cells that are shown before the first match of an excerpt."""


@cache
def _table() -> dict[int, int]:
    """Blanks for line ends and tabs, signs for what turns the direction or is no character at all."""
    blanks = dict.fromkeys((0x09, 0x0A, 0x2028, 0x2029), 0x20)
    turns = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0x2426)
    return blanks | turns | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)


def one_line(text: str) -> str:
    """The same text as one line, a visible sign for each character that is none; length unchanged."""
    return sanitize(text).translate(_table())


def cut(text: str | Content, width: int) -> Content:
    """At most `width` cells of it, with an ellipsis where something is left out; a string is made one line first."""
    content = Content(one_line(text[:MOST])) if isinstance(text, str) else text
    return content.truncate(max(0, width), ellipsis=True)


def spread(left: Content, right: Content, width: int) -> Content:
    """A line of exactly `width` cells: `right` at its end, as much of `left` as there is room for before."""
    right = cut(right, width)
    left = cut(left, width - right.cell_length - 1)
    return Content.assemble(left, " " * max(0, width - left.cell_length - right.cell_length), right)


def marked(text: str, spans: Sequence[tuple[int, int]], style: str) -> Content:
    """One line in which these stretches of characters have a style."""
    content = Content(one_line(text))
    for start, end in spans:
        content = content.stylize(style, start, end)
    return content


def excerpt(content: Content, first: int, width: int, lines: int) -> list[Content]:
    """At most so many lines of `width` cells, begun so that the match at character `first` is on the first of them."""
    if content.cell_length > width * lines and first > 0:
        start = _start(content.plain, first)
        content = Content.assemble("…", content[start:]) if start else content
    wrapped = content.wrap(max(2, width))
    shown, rest = wrapped[:lines], wrapped[lines:]
    if rest:
        shown[-1] = cut(Content.assemble(shown[-1].rstrip(), "…"), width)
    return [cut(line, width) for line in shown]


def _start(text: str, first: int) -> int:
    """Where to begin so that at most LEAD cells come before `first`: after a blank where there is one."""
    start = first
    while start and cell_len(text[start - 1 : first]) <= LEAD:
        start -= 1
    blank = text.find(" ", start, first)
    return start if blank < 0 or not start else blank + 1
