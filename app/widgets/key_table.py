"""A table of keys: every action under its heading, its keys on the left, what it does on the right, wrapped there."""

from collections.abc import Iterator
from itertools import groupby

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from app.keys import Key, shown
from app.themes import MUTED

MOST = 18
"""Cells that the column of keys takes at most."""
GAP = 2


class KeyTable(Widget):
    """The actions that it is given, in their order."""

    def __init__(self, keys: tuple[Key, ...]) -> None:
        super().__init__()
        self._keys = keys

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """As many lines as the table has at this width."""
        return len(table(self._keys, width))

    def render(self) -> Content:
        """The table."""
        return Content("\n").join(table(self._keys, self.content_size.width))


def table(keys: tuple[Key, ...], width: int) -> list[Content]:
    """The lines of the table, none longer than `width` where that leaves room for words."""
    left = min(MOST, max((len(_named(key)) for key in keys), default=0))
    lines: list[Content] = []
    for group, members in groupby(keys, key=lambda key: key.group):
        lines += [Content(), Content.styled(group, "bold $primary")]
        for key in members:
            lines += _row(key, left, width)
    return lines[1:]


def _row(key: Key, left: int, width: int) -> Iterator[Content]:
    does = Content.assemble(key.description, ("  " + key.tooltip, MUTED)).wrap(max(12, width - left - GAP))
    names = Content.styled(_named(key), "$accent").wrap(left)
    for at in range(max(len(does), len(names))):
        name = names[at] if at < len(names) else Content()
        text = does[at] if at < len(does) else Content()
        yield Content.assemble(name, " " * (left - name.cell_length + GAP), text)


def _named(key: Key) -> str:
    return " or ".join(map(shown, key.keys))
