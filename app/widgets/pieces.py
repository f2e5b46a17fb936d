"""Markdown cut into pieces that can be shown one by one, and about how high a text is.

The pieces' texts, one after another, are the text.  They end where a block ends; a very long block of code or a very
long list is divided as well, and the rest of such code is read behind its opening line, which is no part of the text.
"""

import re
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len

LINES = 40
"""Lines of a piece beyond which the next block begins another one."""
CHARACTERS = 4_000
"""The same in characters."""
CODE_LINES = 150
"""Lines of code beyond which it is divided: fewer would show where it is coloured apart."""
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
ITEM = re.compile(r"([-*+]|\d{1,9}[.)])\s")


class Piece(NamedTuple):
    """A part of a text."""

    text: str
    lead: str = ""
    """The line that it is to be read behind."""
    divided: bool = False
    """Whether its last block goes on in the next piece."""


def lines_of(text: str) -> list[str]:
    """The lines with their ends, counted as the parser counts them."""
    *whole, last = text.split("\n")
    return [*(line + "\n" for line in whole), *([last] if last else [])]


def lines_taken(text: str, width: int) -> int:
    """About how many lines a text takes at a width in cells."""
    room = max(1, width)
    cells = len if text.isascii() else cell_len
    return sum(1 + max(0, cells(line) - 1) // room for line in text.split("\n"))


def is_long(text: str) -> bool:
    """Whether a piece of this text is long enough."""
    return len(text) > CHARACTERS or text.count("\n") > LINES


def can_end(piece: Piece, block: int) -> bool:
    """Whether a piece that grows is long enough and can be cut; its open block begins at this line of what is read."""
    begun = len(lines_of(piece.lead))
    if not is_long(piece.text) or block > begun:
        return is_long(piece.text)
    return ITEM.match(piece.text) is not None or piece.text.count("\n") > CODE_LINES


@cache
def block_parser() -> MarkdownIt:
    """The parser without what goes on inside of blocks."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table"])
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


def cut(text: str, lead: str = "") -> list[Piece]:
    """The pieces of a text that is read behind a line."""
    if not is_long(text):
        return [Piece(text, lead)]
    lines = lines_of(lead + text)
    pieces: list[Piece] = []
    begin = shown = len(lines_of(lead))
    for at, opening, divided in _places(block_parser().parse(lead + text), lines):
        taken = "".join(lines[begin:at])
        if at > begin and (divided or is_long(taken)):
            pieces.append(Piece(taken, lead if begin == shown else "", divided))
            begin, lead, shown = at, opening, at
    return [*pieces, Piece("".join(lines[begin:]), lead if begin == shown else "")]


def _places(tokens: list[Token], lines: list[str]) -> list[tuple[int, str, bool]]:
    """Lines at which a piece may begin, what it is read behind, and whether that is in the midst of a block."""
    places: list[tuple[int, str, bool]] = []
    last = 0
    for token in tokens:
        if token.map is None or token.level > 1:
            continue
        first, end = token.map
        if token.level == 0:
            places.append((first, "", False))
            last = first
            if token.type == "fence" and FENCE.match(lines[first]):
                ends = (_behind_text(lines, at) for at in range(first + CODE_LINES, end - 1, CODE_LINES))
                places += [(at, lines[first], True) for at in ends if at > first + 1]
        elif token.type == "list_item_open" and first - last >= LINES:
            places.append((first, "", True))
            last = first
    return places


def _behind_text(lines: list[str], at: int) -> int:
    """The line, or the nearest before it, that follows one with text: blank lines at the end of code are not shown."""
    while at > 0 and not lines[at - 1].strip():
        at -= 1
    return at
