"""Every key of the program, pressed in a whole window, does what it says: here lists, models, settings, first run."""

from pathlib import Path

import pytest
from textual.widgets._footer import FooterKey

from app.keys import Key
from app.screens.chat import ChatScreen
from app.screens.first_run import FirstRunScreen
from app.screens.models import ModelsScreen
from app.screens.path_dialog import PathDialog
from app.screens.settings import SettingsScreen
from app.transcript import Entry
from app.widgets.field import Field
from app.widgets.key_button import KeyButton
from app.widgets.pair_card import PairCard
from app.widgets.rename import Rename
from app.widgets.row_list import RowList
from app.widgets.welcome import Welcome
from tests.app.fakes_keys import Press, Scenarios
from tests.app.fakes_window import TALK, Window, window
from tests.app.test_models_screen import KNOWN, OFFERS

LISTS = Scenarios(lambda: window(size=(100, 24)))
FIRST = Scenarios(lambda: window(installed=False, size=(80, 24)))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exported is here."""
    monkeypatch.chdir(tmp_path)


# Lists


async def listed(win: Window, count: int = 2) -> RowList:
    """So many conversations, the first one last, and the focus in their list, on the first row."""
    for number in range(count):
        win.keep(Entry("user", f"talk {number}"))
    rows = win.chat.sidebar.rows
    await win.until(lambda: sum(bool(row.key) for row in rows.rows) == count)
    rows.focus()
    await win.keys("home")
    return rows


def number(rows: RowList) -> int:
    """Which row that can be chosen the cursor is on."""
    return [row for row in rows.rows if row.key].index(rows.row)  # type: ignore[arg-type]


@LISTS.of("list.up", "list.first", "list.page_up")
async def _up(win: Window, press: Press) -> None:
    rows = await listed(win)
    await win.keys("end")
    await press()
    assert number(rows) == 0


@LISTS.of("list.down", "list.last", "list.page_down")
async def _down(win: Window, press: Press) -> None:
    rows = await listed(win)
    await press()
    assert number(rows) == 1


@LISTS.of("list.choose")
async def _choose(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.until(lambda: win.texts == ["talk 1"])


# Conversations


@LISTS.of("sidebar.search")
async def _search(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.focused(win.chat.query_one("#sidebar-search"))


@LISTS.of("sidebar.list")
async def _into_list(win: Window, press: Press) -> None:
    rows = await listed(win)
    await win.keys("slash")
    await press()
    await win.focused(rows)


@LISTS.of("sidebar.leave")
async def _leave(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.focused(win.prompt)


@LISTS.of("sidebar.new")
async def _new(win: Window, press: Press) -> None:
    await win.open(*TALK)
    win.chat.sidebar.rows.focus()
    await win.focused(win.chat.sidebar.rows)
    await press()
    await win.until(lambda: win.chat.query(Welcome))


@LISTS.of("sidebar.rename")
async def _rename(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.focused(Rename)
    await win.keys(*"new", "enter")
    await win.until(lambda: titles(win) == ["new", "talk 0"])


@LISTS.of("rename.cancel")
async def _keep_title(win: Window, press: Press) -> None:
    await listed(win)
    await win.keys("r")
    await win.focused(Rename)
    await win.keys(*"new")
    await press()
    await win.focused(win.chat.sidebar.rows)
    assert titles(win) == ["talk 1", "talk 0"]


@LISTS.of("sidebar.pin")
async def _pin(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.until(lambda: [one.pinned for one in win.chat.chat.store.summaries()] == [True, False])


@LISTS.of("sidebar.delete")
async def _delete(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    await win.until(lambda: titles(win) == ["talk 0"])


@LISTS.of("sidebar.undo")
async def _undo(win: Window, press: Press) -> None:
    await listed(win)
    await win.keys("d")
    await win.until(lambda: win.chat.sidebar.query_one("Undo").display)
    await press()
    await win.until(lambda: len(titles(win)) == 2)


def titles(win: Window) -> list[str]:
    """What is listed, as the store has it."""
    return [one.title for one in win.chat.chat.store.summaries()]


@LISTS.of("sidebar.export")
async def _export(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    assert (await win.screen(PathDialog)).query_one(Field).value == "talk-1.md"


@LISTS.of("sidebar.import")
async def _import(win: Window, press: Press) -> None:
    await listed(win)
    await press()
    assert (await win.screen(PathDialog)).query_one(Field).value == ""


@LISTS.of("path.accept")
async def _accept(win: Window, press: Press) -> None:
    await _export(win, lambda: win.keys("e"))
    await press()
    await win.until(Path("talk-1.md").exists)
    await win.screen(ChatScreen)


@LISTS.of("path.cancel")
async def _cancel(win: Window, press: Press) -> None:
    await _export(win, lambda: win.keys("e"))
    await press()
    await win.screen(ChatScreen)
    assert not Path("talk-1.md").exists()


# Models


async def models(win: Window, row: str) -> ModelsScreen:
    """The model screen, its cursor on a row."""
    win.shelf._offers, win.shelf.known = OFFERS, KNOWN
    await win.keys("f6")
    screen = await win.screen(ModelsScreen)
    rows = screen.query_one(RowList)
    await win.until(lambda: any(one.key == row for one in rows.rows))
    rows.go_to(row)
    await win.pilot.pause()
    return screen


def drawn(screen: ModelsScreen, row: str) -> str:
    """A row as it is drawn."""
    (found,) = [one for one in screen.query_one(RowList).rows if one.key == row]
    return "\n".join(line.plain for line in found.draw(80))


@LISTS.of("models.target")
async def _target(win: Window, press: Press) -> None:
    screen = await models(win, "model big")
    await press()
    await win.until(lambda: "target" in drawn(screen, "model big"))


@LISTS.of("models.draft")
async def _draft(win: Window, press: Press) -> None:
    screen = await models(win, "model big")
    await win.keys("t")
    screen.query_one(RowList).go_to("model small")
    await win.pilot.pause()
    await press()
    await win.until(lambda: "draft" in drawn(screen, "model small"))


@LISTS.of("models.load")
async def _load(win: Window, press: Press) -> None:
    await models(win, "model big")
    await win.keys("t")
    await press()
    await win.screen(ChatScreen)
    await win.until(lambda: len(win.client.configs) == 2 and win.chat.state == "ready")
    assert ("config_of", "big", "none") in win.shelf.asked


@LISTS.of("models.unload")
async def _unload(win: Window, press: Press) -> None:
    await models(win, "model big")
    await press()
    await win.screen(ChatScreen)
    await win.until(lambda: win.client.closed and win.chat.state == "asleep")


@LISTS.of("models.fetch")
async def _fetch(win: Window, press: Press) -> None:
    await models(win, "pair tiny")
    await press()
    await win.until(win.shelf.begun.is_set)
    assert ("fetch", "tiny") in win.shelf.asked


@LISTS.of("models.cancel")
async def _stop_fetching(win: Window, press: Press) -> None:
    await _fetch(win, lambda: win.keys("f"))
    await press()
    await win.until(win.shelf.was_cancelled.is_set)


@LISTS.of("models.verify")
async def _verify(win: Window, press: Press) -> None:
    screen = await models(win, "model big")
    win.shelf.release.set()
    await press()
    await win.until(lambda: "big is right" in str(screen.query_one("#said").render()))


@LISTS.of("models.remove")
async def _remove(win: Window, press: Press) -> None:
    await models(win, "model mine")
    await press()
    await press()
    await win.until(lambda: ("remove", "mine") in win.shelf.asked)


@LISTS.of("models.add")
async def _add(win: Window, press: Press) -> None:
    await models(win, "model mine")
    await press()
    await win.screen(PathDialog)


@LISTS.of("models.back")
async def _back(win: Window, press: Press) -> None:
    await models(win, "model mine")
    await press()
    await win.screen(ChatScreen)


# Settings


async def settings(win: Window) -> SettingsScreen:
    """The settings, the system prompt written."""
    await win.keys("f7")
    screen = await win.screen(SettingsScreen)
    await win.focused(screen.system)
    await win.keys(*"terse")
    return screen


@LISTS.of("settings.apply")
async def _apply(win: Window, press: Press) -> None:
    await settings(win)
    await press()
    await win.screen(ChatScreen)
    assert win.chat.chat.branch.system == "terse"
    assert win.saved == []


@LISTS.of("settings.keep")
async def _keep(win: Window, press: Press) -> None:
    await settings(win)
    await press()
    await win.screen(ChatScreen)
    assert win.saved == [{"system": "terse"}]


@LISTS.of("settings.save_preset")
async def _save_preset(win: Window, press: Press) -> None:
    screen = await settings(win)
    screen.preset_name.value = "mine"
    await press()
    assert screen.preset.value == "mine"
    assert [preset.system for preset in screen._subject.presets.presets()] == ["terse"]


@LISTS.of("settings.delete_preset")
async def _delete_preset(win: Window, press: Press) -> None:
    await _save_preset(win, lambda: win.keys("f8"))
    await press()
    screen = await win.screen(SettingsScreen)
    assert screen.preset.value == ""
    assert screen._subject.presets.presets() == []


@LISTS.of("settings.leave")
async def _leave_settings(win: Window, press: Press) -> None:
    screen = await settings(win)
    await press()
    assert "not applied yet" in str(screen.said.render())
    await press()
    await win.screen(ChatScreen)
    assert win.chat.chat.branch.system == ""


@LISTS.of("settings.next")
async def _next(win: Window, press: Press) -> None:
    screen = await settings(win)
    screen.preset.focus()
    await win.focused(screen.preset)
    await press()
    await win.focused(screen.preset_name)


@LISTS.of("settings.previous")
async def _previous(win: Window, press: Press) -> None:
    screen = await settings(win)
    screen.preset_name.focus()
    await win.focused(screen.preset_name)
    await press()
    await win.focused(screen.preset)


@LISTS.of("choice.open")
async def _open(win: Window, press: Press) -> None:
    screen = await settings(win)
    screen.preset.focus()
    await win.focused(screen.preset)
    await press()
    await win.until(lambda: screen.preset.expanded)


# The first run


@FIRST.of("first.next")
async def _next_pair(win: Window, press: Press) -> None:
    await press()
    await win.focused(win.app.screen.query(PairCard).last())


@FIRST.of("first.previous")
async def _previous_pair(win: Window, press: Press) -> None:
    await win.keys("down")
    await press()
    await win.focused(win.app.screen.query(PairCard).first())


@FIRST.of("first.choose")
async def _download(win: Window, press: Press) -> None:
    await win.screen(FirstRunScreen)
    await press()
    await win.until(win.shelf.begun.is_set)
    assert ("fetch", "coder") in win.shelf.asked


@FIRST.of("first.cancel")
async def _cancel_download(win: Window, press: Press) -> None:
    await _download(win, lambda: win.keys("enter"))
    await press()
    await win.until(win.shelf.was_cancelled.is_set)


# By the mouse


POINTED = {
    "list.up", "list.down", "list.page_up", "list.page_down", "list.first", "list.last", "list.choose",
    "settings.next", "settings.previous", "choice.open", "first.next", "first.previous", "first.choose",
}  # fmt: skip
"""What one does by pointing: at a row, a field, a card, or by the wheel."""


@pytest.mark.parametrize("leads", ["f6", "f7", "f1", ""])
async def test_where_the_list_of_all_actions_is_not_at_hand_each_action_has_a_thing_to_click(leads: str) -> None:
    async with window(installed=bool(leads)) as win:
        await win.keys(*leads.split())
        await win.until(lambda: not isinstance(win.app.screen, ChatScreen))
        await win.pilot.pause()
        screen = win.app.screen
        clicked = {key.action for key in screen.query(FooterKey)}
        clicked |= {button._binding.action for button in screen.query(KeyButton)}
        bound = {one.binding.action: one.binding.id for one in screen.active_bindings.values() if one.binding.id}
        assert {id for action, id in bound.items() if action not in clicked} <= POINTED | {"app.palette"}


# All of them


@pytest.mark.parametrize(("key", "pressed"), LISTS.each())
async def test_a_key_of_a_list_or_a_dialog_does_what_it_says(key: Key, pressed: str) -> None:
    assert await LISTS.attempt(key, pressed)


@pytest.mark.parametrize(("key", "pressed"), FIRST.each())
async def test_a_key_of_the_first_run_does_what_it_says(key: Key, pressed: str) -> None:
    assert await FIRST.attempt(key, pressed)
