"""What a column is made of: rows that are data or widgets, and spots, which are lines told by what is there."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.widget import Widget

if TYPE_CHECKING:
    from app.widgets.column import Column


class Row:
    """One row: data that can become a widget, and the room that it takes."""

    def __init__(self, build: Callable[[], Widget], guess: Callable[[int], int], *, kept: bool = False) -> None:
        self.build = build
        self.guess = guess
        """Lines that the row may take at a width in cells, margins included."""
        self.kept = kept
        """Whether it is a widget wherever the view is."""
        self.lap = 0
        """Lines at its end that the next row covers."""
        self.widget: Widget | None = None
        self.ready = False
        """Whether the widget is mounted whole; until then the row keeps the room it had."""
        self.inner: list[Column] = []
        """Columns inside of the widget, from top to bottom."""
        self._width = -1
        self._room = 0

    def room(self, width: int) -> int:
        """Lines that the row takes at a width."""
        if self._width != width:
            self._width, self._room = width, max(1, self.guess(width))
        return self._room

    def measured(self, width: int, room: int) -> None:
        """Keep what the layout found."""
        self._width, self._room = width, room

    def parts(self) -> Iterable[tuple["Column", int]]:
        """The inner columns that are shown, and about how far below the row's top each begins."""
        top = 0
        for column in self.inner:
            if shown_within(column, self.widget):
                yield column, top
                top += column.height()


def shown_within(node: Widget, outermost: Widget | None) -> bool:
    """Whether nothing from this widget up to that one is hidden."""
    for widget in node.ancestors_with_self:
        if not isinstance(widget, Widget) or not widget.display:
            return False
        if widget is outermost:
            return True
    return False


@dataclass(frozen=True)
class Spot:
    """A line of a column, told by what is there: it is found again whatever changes above it."""

    row: Row
    offset: int
    """Lines below the row's top."""
    width: int
    room: int
    """Width and height of the row when the spot was taken; at another width the offset stands for a share."""
    inner: "tuple[Column, Spot, int] | None" = None
    """An inner column, the same line as a spot of that column, and its number there."""
