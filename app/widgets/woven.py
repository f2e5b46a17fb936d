"""Tokens laid out in rows of so many cells, letter by letter, so that each cell belongs to one token.

One invariant: read row after row, the pieces are the texts of the tokens in order, but for blanks where a row breaks
and for a sign for each line end of a token that holds nothing else.  A character of several code points is never cut:
it belongs to the token that it begins in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, split_graphemes
from textual.content import Content, Span

from app.widgets.prose import plain

LINE_END = "↵"
_FLAGS = range(0x1F1E6, 0x1F200)
_TONES = range(0x1F3FB, 0x1F400)


@dataclass(frozen=True)
class Piece:
    """What one row shows of one token."""

    token: int
    text: str


Row = Sequence[Piece]


class Woven:
    """The rows of a text that may grow at its end."""

    def __init__(self, width: int) -> None:
        self.width = max(2, width)
        self.rows: list[Row] = [()]
        self._line: list[Piece] = []
        self._first = 0
        """The row that the last line begins in."""

    def add(self, tokens: Iterable[tuple[int, str]]) -> int:
        """Append tokens, each by its number; the first row that is another now."""
        changed = self._first
        for token, text in tokens:
            shown = plain(text)
            if not shown.strip("\n"):
                shown = shown.replace("\n", f"{LINE_END}\n")
            for at, part in enumerate(shown.split("\n")):
                if at:
                    self._lay()
                    self._line, self._first = [], len(self.rows)
                    self.rows.append(())
                if part:
                    self._line.append(Piece(token, part))
        self._lay()
        return changed

    def _lay(self) -> None:
        self.rows[self._first :] = wrapped(self._line, self.width)

    def at(self, x: int, y: int) -> int | None:
        """The token at a cell."""
        if not 0 <= y < len(self.rows) or x < 0:
            return None
        for piece in self.rows[y]:
            x -= cell_len(piece.text)
            if x < 0:
                return piece.token
        return None

    def place(self, token: int) -> tuple[int, int] | None:
        """The first cell of a token, as x and y; None where it has none."""
        for y, row in enumerate(self.rows):
            x = 0
            for piece in row:
                if piece.token == token:
                    return x, y
                x += cell_len(piece.text)
        return None


def wrapped(line: Sequence[Piece], width: int) -> list[Row]:
    """One line as rows, broken between words where that can be."""
    text = "".join(piece.text for piece in line)
    content = Content(text, spans=[Span(start, end, str(token)) for start, end, token in _spans(line, text)])
    return [_row(part) for part in content.wrap(width)]


def _row(content: Content) -> Row:
    spans = sorted(content.spans)
    return [
        Piece(int(str(span.style)), content.plain[span.start : span.end]) for span in spans if span.end > span.start
    ]


def _spans(line: Sequence[Piece], text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and token of each piece, its ends moved to where no character is cut."""
    cuts = None if text.isascii() else _cuts(text)
    start = at = 0
    for piece in line:
        at += len(piece.text)
        end = at
        while cuts is not None and end not in cuts:
            end += 1
        if end > start:
            yield start, end, piece.token
            start = end


def _cuts(text: str) -> set[int]:
    """The places of a text that lie between two characters as they are seen."""
    cuts, flag = {len(text)}, False
    for start, _, _ in split_graphemes(text)[0]:
        code = ord(text[start])
        second = flag and code in _FLAGS
        if not second and code not in _TONES:
            cuts.add(start)
        flag = code in _FLAGS and not second
    return cuts
