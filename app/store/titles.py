"""A title made from what was said first: its first line, as far as one line of a list can show it."""

from itertools import accumulate

from rich.cells import cell_len

from app.transcript import Entry

WIDTH = 60
"""Cells that a title takes at most."""


def title_of(entry: Entry) -> str:
    """The title that a message gives; that of its first attachment where it says nothing."""
    lines = (" ".join(line.split()) for line in entry.text.splitlines())
    line = next(filter(None, lines), "") or next(iter(entry.attachments), "")
    if cell_len(line) <= WIDTH:
        return line
    room = WIDTH - 1
    fits = sum(1 for cells in accumulate(map(cell_len, line[:WIDTH])) if cells <= room)
    blank = line.rfind(" ", 0, fits + 1)
    return line[: blank if blank > room // 2 else fits] + "…"
