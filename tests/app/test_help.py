"""The help screen: read in a minute, complete, with the keys as they are."""

import pytest

from app import keys
from app.glossary import TERMS
from app.screens import help
from app.screens.help import HelpScreen
from app.widgets.key_table import KeyTable, table
from tests.app.fakes_help import FEW, HelpApp


def test_the_beginning_is_read_in_a_minute() -> None:
    """At 230 words a minute."""
    assert len(help.beginning().plain.split()) < 230


def test_every_word_of_the_panel_is_explained_once() -> None:
    assert sorted([*help.FIRST, *help.LATER, "counts"]) == sorted(TERMS)


def test_the_help_says_what_it_must() -> None:
    said = help.later().plain
    assert "temperature, top-k, top-p, min-p" in said
    assert "coupled" in said
    assert "rejection" in said
    assert "first round" in said  # what tokens a second leave out


def listed(app: HelpApp) -> str:
    """The table of keys."""
    return str(app.screen.query_one(KeyTable).render())


async def test_it_lists_every_key_of_the_program_with_what_it_does() -> None:
    every = keys.declared()
    app = HelpApp(keys=every)
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause()
        said = " ".join(listed(app).split())
        for key in every:
            assert key.group in said
            assert key.description in said
            assert all(keys.shown(one) in said for one in key.keys)


@pytest.mark.parametrize("width", [40, 61, 80, 200])
def test_no_line_of_the_table_is_too_long_and_no_word_is_lost(width: int) -> None:
    every = keys.declared()
    lines = table(every, width)
    assert all(line.cell_length <= width for line in lines)
    said = " ".join("\n".join(line.plain for line in lines).split())
    assert sum(len(key.tooltip.split()) for key in every) <= len(said.split())


async def test_the_users_keys_are_listed_in_place_of_the_defaults() -> None:
    app = HelpApp(keys=keys.changed(FEW, {"chat.speculation": "f9"}))
    async with app.run_test(size=(160, 60)) as pilot:
        await pilot.pause()
        assert "F9" in listed(app)
        assert "F2" not in listed(app)


@pytest.mark.parametrize("key", ["escape", "f1", "q"])
async def test_keys_close_it(key: str) -> None:
    app = HelpApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        await pilot.press(key)
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


async def test_the_mouse_closes_it() -> None:
    app = HelpApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.click("FooterKey")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 10)])
async def test_nothing_is_cut(size: tuple[int, int]) -> None:
    app = HelpApp(keys=keys.declared())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        page = app.screen.query_one("#help-page")
        for part in page.children:
            assert page.region.contains_region(part.region)
            assert part.size.height >= part.get_content_height(app.size, app.size, part.size.width)
        keys_shown = app.screen.query_one(KeyTable)
        assert keys_shown.size.height == len(table(keys.declared(), keys_shown.size.width))
        assert app.screen.query_one("#help").max_scroll_x == 0


async def test_it_scrolls_by_key_where_it_is_low() -> None:
    app = HelpApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause()
        view = app.screen.query_one("#help")
        assert view.scroll_y == view.max_scroll_y > 0
