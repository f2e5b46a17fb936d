"""A list that draws only what is seen, and a cursor that stays with its row."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import App, ComposeResult
from textual.content import Content
from textual.pilot import Pilot

from app.widgets.row_list import Heading, Row, RowList


@dataclass(frozen=True)
class Line(Row):
    name: str
    lines: int = 1

    @property
    def key(self) -> str:
        return self.name

    def height(self, width: int) -> int:
        return self.lines

    def draw(self, width: int) -> Sequence[Content]:
        drawn.append(self.name)
        return [Content(f"{self.name} {at}"[:width]) for at in range(self.lines)]


drawn: list[str] = []


class Host(App[None]):
    CSS = "RowList { height: 1fr; }"

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[str] = []
        self.moved = 0

    def compose(self) -> ComposeResult:
        yield RowList()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.chosen.append(event.row.key)

    def on_row_list_moved(self) -> None:
        self.moved += 1

    @property
    def list(self) -> RowList:
        return self.query_one(RowList)


async def shown(pilot: Pilot[None], *rows: Row) -> RowList:
    app = pilot.app
    assert isinstance(app, Host)
    app.list.show(rows)
    app.list.focus()
    await pilot.pause()
    return app.list


def key(list: RowList) -> str:
    return list.row.key if list.row else ""


async def test_of_ten_thousand_rows_only_those_on_the_screen_are_drawn() -> None:
    app = Host()
    async with app.run_test(size=(30, 20)) as pilot:
        drawn.clear()
        list = await shown(pilot, *(Line(str(n)) for n in range(10_000)))
        assert 0 < len(set(drawn)) <= 20
        drawn.clear()
        await pilot.press("end")
        assert key(list) == "9999"
        assert set(drawn) <= {str(n) for n in range(9_960, 10_000)} | {"0"}
        assert list.scroll_offset.y == 10_000 - 20


async def test_the_cursor_goes_over_headings_and_not_past_the_ends() -> None:
    app = Host()
    async with app.run_test(size=(30, 20)) as pilot:
        list = await shown(pilot, Heading("A", first=True), Line("a"), Heading("B"), Line("b"))
        assert key(list) == "a"
        for press, at in [("up", "a"), ("down", "b"), ("down", "b"), ("home", "a"), ("end", "b"), ("pageup", "a")]:
            await pilot.press(press)
            assert key(list) == at
        await pilot.press("enter")
        assert app.chosen == ["a"]


async def test_the_cursor_stays_with_its_row_and_else_with_its_place() -> None:
    app = Host()
    async with app.run_test(size=(30, 20)) as pilot:
        list = await shown(pilot, Line("a"), Line("b"), Line("c"))
        await pilot.press("down")
        moved = app.moved
        await shown(pilot, Line("new"), Line("a"), Line("b"), Line("c"))
        assert key(list) == "b"
        assert app.moved == moved
        await shown(pilot, Line("new"), Line("a"), Line("c"))
        assert key(list) == "c"
        await shown(pilot, Line("new"))
        assert key(list) == "new"
        await shown(pilot, Heading("Nothing"))
        assert list.row is None
        await pilot.press("enter", "down", "up", "end", "pagedown")
        assert app.chosen == []
        await shown(pilot, Line("a"))
        assert key(list) == "a"


async def test_a_click_chooses_the_row_of_each_of_its_lines_and_no_heading() -> None:
    app = Host()
    async with app.run_test(size=(30, 20)) as pilot:
        list = await shown(pilot, Heading("A", first=True), Line("a", 2), Line("b", 3))
        for y in range(8):
            await pilot.click(list, offset=(3, y))
        assert app.chosen == ["a", "a", "b", "b", "b"]
        await pilot.click(list, offset=(3, 1), button=3)
        assert key(list) == "a"
        assert len(app.chosen) == 5


async def test_what_the_cursor_is_on_is_in_sight_whole() -> None:
    app = Host()
    async with app.run_test(size=(30, 6)) as pilot:
        list = await shown(pilot, Heading("A", first=True), *(Line(str(n), 2) for n in range(9)))
        await pilot.press(*["down"] * 4)
        assert list.scroll_offset.y == 1 + 2 * 5 - 6
        await pilot.press("home")
        assert list.scroll_offset.y == 0
        await pilot.resize_terminal(20, 4)
        await pilot.press("end")
        await pilot.pause()
        assert list.scroll_offset.y == 19 - 4


@dataclass(frozen=True)
class Wrapped(Row):
    @property
    def key(self) -> str:
        return "wrapped"

    def draw(self, width: int) -> Sequence[Content]:
        return Content("word " * 20).wrap(width)


async def test_in_another_width_lines_belong_to_the_rows_that_have_them_now() -> None:
    app = Host()
    async with app.run_test(size=(103, 20)) as pilot:
        list = await shown(pilot, Wrapped(), Line("after"))
        assert list.line_of("after") == 1
        await pilot.resize_terminal(23, 20)
        await pilot.pause()
        assert list.line_of("after") == 5
        await pilot.click(list, offset=(3, 5))
        assert app.chosen == ["after"]
