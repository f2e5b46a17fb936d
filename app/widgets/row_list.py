"""A list of rows of which only those on the screen are ever drawn, however many there are.

Rows are data.  The cursor stays with its row when the rows change, and with its place where that row is gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from app.cells import cut
from app.themes import MUTED


@dataclass(frozen=True)
class Row:
    """One row: what it is called among the others, and how it is drawn."""

    LINES: ClassVar[int] = 0
    """How many lines it takes in every width; 0: as many as are drawn."""

    @property
    def key(self) -> str:
        """Its name, different from that of all other rows; empty for a row that cannot be chosen."""
        return ""

    def height(self, width: int) -> int:
        """How many lines it takes."""
        return self.LINES or len(self.draw(width))

    def draw(self, width: int) -> Sequence[Content]:
        """Its lines, each of at most `width` cells."""
        raise NotImplementedError


@dataclass(frozen=True)
class Heading(Row):
    """A name above some rows; a blank line before it where it is not the first."""

    text: str
    first: bool = False

    def draw(self, width: int) -> Sequence[Content]:
        """Blank line and name."""
        name = cut(Content.styled(f" {self.text}", f"bold {MUTED}"), width)
        return [name] if self.first else [Content(), name]


class RowList(ScrollView, can_focus=True):
    """Rows, a cursor among those that can be chosen, and scrolling."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"row-list--row", "row-list--cursor", "row-list--hover"}
    DEFAULT_CSS = """
    RowList {
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;

        & > .row-list--cursor {
            background: $surface;
        }

        & > .row-list--hover {
            background: $surface;
        }

        &:focus > .row-list--cursor {
            background: $primary 25%;
        }

        &:focus:nocolor > .row-list--cursor {
            text-style: reverse;
        }
    }
    """
    BINDINGS = [
        Binding("up", "move(-1)", "Up", id="list.up", tooltip="The row above", show=False),
        Binding("down", "move(1)", "Down", id="list.down", tooltip="The row below", show=False),
        Binding("pageup", "page(-1)", "Page up", id="list.page_up", tooltip="A page up", show=False),
        Binding("pagedown", "page(1)", "Page down", id="list.page_down", tooltip="A page down", show=False),
        Binding("home", "edge(-1)", "First", id="list.first", tooltip="The first row", show=False),
        Binding("end", "edge(1)", "Last", id="list.last", tooltip="The last row", show=False),
        Binding("enter", "choose", "Choose", id="list.choose", tooltip="Choose this row", show=False),
    ]

    cursor: reactive[int | None] = reactive[int | None](None)
    """The number of the row that the cursor is on; None where no row can be chosen."""
    _hover: reactive[int | None] = reactive[int | None](None)

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        rows: "RowList"
        row: Row | None

        @property
        def control(self) -> "RowList":
            """The list that says so."""
            return self.rows

    @dataclass
    class Chosen(Message):
        """A row was chosen by key or mouse."""

        rows: "RowList"
        row: Row

        @property
        def control(self) -> "RowList":
            """The list that says so."""
            return self.rows

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[Row] = ()
        self._tops: list[int] = [0]
        """The first line of each row, and the line after the last."""
        self._owners: list[int] = []
        """The row of each line."""

    @property
    def row(self) -> Row | None:
        """The row that the cursor is on."""
        return None if self.cursor is None else self.rows[self.cursor]

    def show(self, rows: Iterable[Row]) -> None:
        """Show these rows in place of all that there were."""
        before, kept = self.cursor or 0, self.row.key if self.row else ""
        self.set_reactive(RowList.cursor, None)
        self.rows = tuple(rows)
        self._hover = None
        self._measure()
        self.refresh()
        same = next((at for at, row in enumerate(self.rows) if kept and row.key == kept), None)
        if same is not None:
            self.set_reactive(RowList.cursor, same)
            self.scroll_to_cursor()
        elif (near := self._near(before)) is not None:
            self.cursor = near
        else:
            self.post_message(self.Moved(self, None))

    def go_to(self, key: str) -> None:
        """Put the cursor on the row of this name, where there is one."""
        found = next((at for at, row in enumerate(self.rows) if row.key == key), None)
        if found is not None:
            self.cursor = found

    def line_of(self, key: str) -> int | None:
        """The line on which the row of this name begins, counted from the top of the list's content as it is seen."""
        found = next((at for at, row in enumerate(self.rows) if row.key == key), None)
        return None if found is None else self._tops[found] - self.scroll_offset.y

    def _measure(self) -> None:
        """Find out which lines belong to which row."""
        width = self.scrollable_content_region.width
        heights = [row.height(width) for row in self.rows] if width else []
        self._tops = [0, *accumulate(heights)]
        self._owners = [at for at, height in enumerate(heights) for _ in range(height)]
        self.virtual_size = Size(width, len(self._owners))

    def _near(self, place: int) -> int | None:
        """The row at a place, or the next one that can be chosen: below where there is one, else above."""
        keys = [at for at, row in enumerate(self.rows) if row.key]
        return next((at for at in keys if at >= place), keys[-1] if keys else None)

    def on_resize(self) -> None:
        """Lines fall otherwise in another width."""
        self._measure()
        self.scroll_to_cursor()

    def render_line(self, y: int) -> Strip:
        """One line on the screen."""
        width, line = self.scrollable_content_region.width, y + self.scroll_offset.y
        if line >= len(self._owners):
            return Strip.blank(width, self.get_visual_style("row-list--row").rich_style)
        at = self._owners[line]
        kind = "cursor" if at == self.cursor else "hover" if at == self._hover else "row"
        style = self.get_visual_style("row-list--row", f"row-list--{kind}")
        drawn = self.rows[at].draw(width)[line - self._tops[at]]
        strips = Visual.to_strips(self, drawn, width, 1, style)
        return strips[0].extend_cell_length(width, style.rich_style) if strips else Strip.blank(width, style.rich_style)

    def watch_cursor(self) -> None:
        """Keep the cursor in sight."""
        self.scroll_to_cursor()
        self.post_message(self.Moved(self, self.row))

    def scroll_to_cursor(self) -> None:
        """Scroll no further than the row under the cursor needs, with the heading above the first of all rows."""
        if self.cursor is None or self.cursor + 1 >= len(self._tops):
            return
        first = not any(row.key for row in self.rows[: self.cursor])
        top = 0 if first else self._tops[self.cursor]
        region = Region(0, top, self.scrollable_content_region.width, self._tops[self.cursor + 1] - top)
        self.scroll_to_region(region, force=True, animate=False, immediate=True)

    def action_move(self, by: int) -> None:
        """Go to the next row that can be chosen."""
        keys = [at for at, row in enumerate(self.rows) if row.key]
        if self.cursor in keys:
            self.cursor = keys[min(len(keys) - 1, max(0, keys.index(self.cursor) + by))]

    def action_page(self, by: int) -> None:
        """Go a page up or down."""
        if self.cursor is None:
            return
        line = self._tops[self.cursor] + by * max(1, self.scrollable_content_region.height - 1)
        place = self._owners[min(len(self._owners) - 1, max(0, line))]
        self.cursor = self._near(place)

    def action_edge(self, side: int) -> None:
        """Go to the first or the last row."""
        self.cursor = self._near(0 if side < 0 else len(self.rows))

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.row is not None:
            self.post_message(self.Chosen(self, self.row))

    def _at(self, event: events.MouseEvent) -> int | None:
        """The row under the mouse, if it can be chosen."""
        offset = event.get_content_offset(self)
        line = -1 if offset is None else offset.y + self.scroll_offset.y
        found = self._owners[line] if 0 <= line < len(self._owners) else None
        return found if found is not None and self.rows[found].key else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Light the row under the mouse."""
        self._hover = self._at(event)

    def on_leave(self) -> None:
        """Light none."""
        self._hover = None

    def on_click(self, event: events.Click) -> None:
        """The left button chooses a row, any other only puts the cursor there."""
        found = self._at(event)
        if found is not None:
            self.cursor = found
            if event.button == 1:
                self.action_choose()
