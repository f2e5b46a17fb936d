"""A column of rows of which only those near the view are widgets; the others are data that keep their room.

A row's room is the height that its widget had when it was last laid out at this width, else a guess; so the column is
as high as all of its rows, whatever is mounted.
"""

from collections.abc import Iterable, Sequence

from textual._resolve import resolve_box_models
from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, Region, Size
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from app.widgets.row import Row, Spot

NEAR = 12
"""Least lines on either side of the view that are ready to be scrolled to."""
ALL = 1_000_000_000
"""More lines than there are: a column of which nobody says what is in view is in view."""


async def discard(parent: Widget, children: Sequence[Widget]) -> None:
    """Remove widgets and what was drawn of them, which Textual keeps for its last thousand widgets."""
    drawn = [node._styles_cache for child in children for node in child.walk_children(Widget, with_self=True)]
    await parent.remove_children(children)
    for cache in drawn:
        cache.clear()


class ColumnLayout(Layout):
    """Puts what is mounted where it belongs between rows that are not."""

    name = "column"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:  # type: ignore[override]
        """Measure what is ready, and place it."""
        assert isinstance(parent, Column)
        shown = set(children)
        ready = [row for row in parent.rows if row.ready and row.widget in shown]
        widgets = [row.widget for row in ready if row.widget is not None]
        # the width alone decides how high a row is; a height here would make every growth measure all rows again
        boxes = resolve_box_models(
            [widget.styles.height for widget in widgets],
            widgets,
            Size(size.width, 0),
            parent.app.size,
            Size(0, 0),
            resolve_dimension="height",
            greedy=greedy,
        )
        for row, box in zip(ready, boxes, strict=True):
            row.measured(size.width, int(box.height) + box.margin.height - row.lap)
        parent.laid_out(size.width)
        tops = parent.tops()
        return [
            WidgetPlacement(
                Region(box.margin.left, tops[row] + box.margin.top, int(box.width), int(box.height)),
                NULL_OFFSET,
                box.margin,
                widget,
            )
            for row, widget, box in zip(ready, widgets, boxes, strict=True)
        ]


class Column(Widget):
    """Rows under one another; `see` says which of them the reader can see."""

    BLANK = True
    DEFAULT_CSS = """
    Column {
        width: 1fr;
        height: auto;
        overflow: hidden hidden;
    }
    """

    def __init__(self, rows: Iterable[Row] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._default_layout = ColumnLayout()
        self.rows: list[Row] = list(rows)
        self._laid_width = 0
        self._view = (0, ALL)
        self._at_work = False
        self._lies_in: Row | None = None

    def compose(self) -> ComposeResult:
        """The rows in view, where this column is a part of another one's row."""
        outer = next((node for node in self.ancestors if isinstance(node, Column)), None)
        place = outer.row_of(self) if outer is not None else None
        if outer is not None and place is not None:
            place.inner.append(self)
            self._lies_in = place
            self._laid_width = self._laid_width or outer._laid_width
            top = outer.tops()[place]
            self._view = (outer._view[0] - top, outer._view[1] - top)
        for row in self._missing():
            row.widget, row.ready = row.build(), True
            yield row.widget

    def on_unmount(self) -> None:
        """The row that it lay in is done with it."""
        if self._lies_in is not None and self in self._lies_in.inner:
            self._lies_in.inner.remove(self)

    # Where things are

    @property
    def laid_width(self) -> int:
        """The width that the rooms are of."""
        return self._laid_width or self.app.size.width

    def laid_out(self, width: int) -> None:
        """Keep the width of the last layout."""
        self._laid_width = width

    def height(self) -> int:
        """Lines of all rows."""
        width = self.laid_width
        return sum(row.room(width) for row in self.rows)

    def tops(self) -> dict[Row, int]:
        """The line at which each row begins."""
        width, top, tops = self.laid_width, 0, {}
        for row in self.rows:
            tops[row] = top
            top += row.room(width)
        return tops

    def row_of(self, node: Widget) -> Row | None:
        """The row that a widget lies in."""
        within = set(node.ancestors_with_self)
        return next((row for row in self.rows if row.widget in within), None)

    def spot(self, line: int) -> Spot | None:
        """What is at a line; None in a column without rows."""
        width, top = self.laid_width, 0
        for row in self.rows:
            room = row.room(width)
            if line < top + room or row is self.rows[-1]:
                return Spot(row, line - top, width, room, self._within(row, line - top))
            top += room
        return None

    @staticmethod
    def _within(row: Row, offset: int) -> tuple["Column", Spot, int] | None:
        for column, begin in row.parts():
            line = offset - begin
            if 0 <= line < column.height() and (spot := column.spot(line)) is not None:
                return column, spot, line
        return None

    def line(self, spot: Spot) -> int | None:
        """The line at which a spot is now; None where its row is gone."""
        top = self.tops().get(spot.row)
        if top is None:
            return None
        if spot.inner is not None:
            column, inner, then = spot.inner
            if column in spot.row.inner and (now := column.line(inner)) is not None:
                return top + spot.offset + now - then
        if spot.width != self.laid_width and spot.room:
            return top + spot.offset * spot.row.room(self.laid_width) // spot.room
        return top + spot.offset

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """The height of all rows, once those that are mounted have been measured."""
        self.arrange(Size(width, 0))
        return sum(row.room(width) for row in self.rows)

    # Which rows are widgets

    def see(self, top: int, bottom: int) -> None:
        """Say which lines are in view: rows near them become widgets, those far away cease to be."""
        self._view = (top, bottom)
        tops = self.tops()
        for row in self.rows:
            for column, begin in row.parts() if row.ready else ():
                column.see(top - tops[row] - begin, bottom - tops[row] - begin)
        if not self._at_work and self.is_attached and (self._missing() or self._spare()):
            self._at_work = True
            self.run_worker(self._work(), group="rows")

    async def fill(self) -> None:
        """Mount what is in view or kept and is no widget yet."""
        async with self.lock:
            if in_view := self._lacking(0):
                await self._mount(in_view)

    async def _work(self) -> None:
        """Mount what is in view or near it, and let go of the rest."""
        try:
            while self.is_attached:
                async with self.lock:
                    if missing := self._missing():
                        await self._mount(missing)
                    elif spare := self._spare():
                        await self._unmount(spare)
                    else:
                        return
        finally:
            self._at_work = False

    def _lacking(self, screens: float) -> list[Row]:
        return [row for row in self._near(screens) if row.widget is None]

    def _missing(self) -> list[Row]:
        """Rows to mount next: all in view together, so that they appear at once, else one next to those."""
        if in_view := self._lacking(0):
            return in_view
        lacking = self._lacking(1)
        top = self._view[0]
        tops = self.tops()
        return [min(lacking, key=lambda row: abs(tops[row] - top))] if lacking else []

    def _near(self, screens: float) -> list[Row]:
        """Rows within so many views of the view, and those that are kept."""
        top, bottom = self._view
        margin = round(screens * max(NEAR, bottom - top))
        width, begin, found = self.laid_width, 0, []
        for row in self.rows:
            end = begin + row.room(width)
            if row.kept or (begin < bottom + margin and end > top - margin):
                found.append(row)
            begin = end
        return found

    def _spare(self) -> list[Row]:
        """Rows far from the view that nothing holds."""
        mounted = [row for row in self.rows if row.widget is not None]
        near = set(self._near(1.5))
        return [row for row in mounted if row not in near and not self._in_use(row.widget)]

    def _in_use(self, widget: Widget | None) -> bool:
        """Whether the reader has the focus or a selection there."""
        if widget is None:
            return False
        selected = any(widget in node.ancestors_with_self for node in self.screen.selections)
        return selected or widget.has_focus_within

    async def _mount(self, rows: Sequence[Row]) -> None:
        mounts = []
        for row in reversed(rows):
            row.widget = row.build()
            mounts.append(self.mount(row.widget, before=self._after(row)))
        for mount in mounts:
            await mount
        for row in rows:
            row.ready = True
        self.relaid()

    def _after(self, row: Row) -> Widget | None:
        """The first widget below a row."""
        below = self.rows[self.rows.index(row) + 1 :]
        return next((other.widget for other in below if other.widget is not None), None)

    async def _unmount(self, rows: Iterable[Row]) -> None:
        gone = [row.widget for row in rows if row.widget is not None]
        for row in rows:
            row.widget, row.ready = None, False
            row.inner.clear()
        await discard(self, gone)

    def relaid(self) -> None:
        """Have the rows laid out anew: what is ready, or which rows there are, has changed."""
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    # Which rows there are

    async def put(self, row: Row, before: Row | None = None) -> None:
        """Add a row at the end, or before another; it is mounted where it is kept or in view."""
        async with self.lock:
            self.rows.insert(len(self.rows) if before is None else self.rows.index(before), row)
            if row.kept:
                await self._mount([row])
            self.relaid()

    async def exchange(self, rows: Iterable[Row]) -> None:
        """Have these rows alone; those that were there before stay as they are."""
        async with self.lock:
            after = list(rows)
            stay = set(after)
            gone = [row for row in self.rows if row not in stay]
            self.rows = after
            await self._unmount(gone)
            self.relaid()
