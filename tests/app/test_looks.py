"""What each screen looks like, at two sizes and in two themes; each docstring says what the eye should see."""

from pathlib import Path

import pytest
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from app.screens.chat import ChatScreen
from app.screens.settings import SettingsScreen
from app.tui import ChatApp
from app.widgets.field import Field
from tests.app.fakes_shelf import FakeShelf, chat_app, until
from tests.app.test_models_screen import KNOWN, OFFERS
from tests.app.test_snapshots import ANSWER, QUESTION, SIZES, Compare, Step
from tests.fakes_client import FakeEngine, finished, one_round, tokens

LOOKS = [(size, theme) for size in SIZES for theme in ("paceline-dark", "paceline-light")]
every = pytest.mark.parametrize(("size", "theme"), LOOKS, ids=[f"{theme[9:]}-{size[0]}" for size, theme in LOOKS])
TITLES = (
    "Plums for a weekend",
    "Why is the sky blue?",
    "\u65e5\u672c\u8a9e\u3067\u66f8\u3044\u3066",
    "A queue with a limit",
)


def window() -> tuple[ChatApp, FakeEngine]:
    shelf = FakeShelf(OFFERS, installed=True)
    shelf.known = KNOWN
    return chat_app(shelf=shelf)


async def talk(pilot: Pilot[None], engine: FakeEngine) -> ChatScreen:
    """Some conversations, the last of them open and answered."""
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, ChatScreen) and app.screen.state == "ready")
    screen = app.screen
    assert isinstance(screen, ChatScreen)
    for count, question in enumerate((*TITLES, QUESTION), 1):
        await screen.open(None)
        screen.prompt.text = question
        await pilot.press("enter")
        await until(pilot, lambda count=count: len(engine.client.requests) == count)
        engine.client.send(tokens(ANSWER), one_round(), finished(ANSWER))
        await until(pilot, lambda: screen.state == "ready")
    screen.chat.store.pin(1, True)
    screen.sidebar.reload()
    await until(pilot, lambda: len(screen.sidebar.rows.rows) > len(TITLES))
    return screen


def looking(engine: FakeEngine, theme: str, *keys: str, then: Step | None = None) -> Step:
    """Press keys once there are conversations."""

    async def run(pilot: Pilot[None]) -> None:
        pilot.app.theme = theme
        await talk(pilot, engine)
        await pilot.press(*keys)
        if then is not None:
            await then(pilot)
        for _ in range(8):
            await pilot.pause()

    return run


@every
def test_snapshot_conversations(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """Where there is room: five conversations at the left, one pinned, the open one marked; the panel at the right."""
    app, engine = window()
    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme))


@every
def test_snapshot_search(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """The sidebar with what was found, the words lit; in a narrow window it stands beside the chat."""
    app, engine = window()

    async def search(pilot: Pilot[None]) -> None:
        pilot.app.screen.query_one("#sidebar-search", Field).value = "with"
        await until(pilot, lambda: pilot.app.screen.sidebar._hits)  # type: ignore[attr-defined]

    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme, "ctrl+f", then=search))


@every
def test_snapshot_models(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """Pairs, then models, each with its state, size and need of memory; what is chosen at the bottom."""
    app, engine = window()
    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme, "f6"))


@every
def test_snapshot_settings(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """The conversation's settings, then the program's; each row with a word on what it does."""
    app, engine = window()

    async def shown(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, SettingsScreen))
        pilot.app.screen.set_focus(None)

    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme, "f7", then=shown))


@every
def test_snapshot_palette(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """The list of actions, each with its key, those that do something now first."""
    app, engine = window()

    async def listed(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
        pilot.app.screen.query_one(Input).cursor_blink = False
        await pilot.app.workers.wait_for_complete()
        await until(pilot, lambda: pilot.app.screen.query_one(CommandList).option_count > 20)
        pilot.app.screen.set_focus(None)

    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme, "ctrl+p", then=listed))


@every
def test_snapshot_path_dialog(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: tuple[int, int], theme: str
) -> None:
    """A small dialog in the middle with a name for the file, and what its ending means."""
    monkeypatch.chdir(tmp_path)
    app, engine = window()

    async def export(pilot: Pilot[None]) -> None:
        screen = pilot.app.screen
        assert isinstance(screen, ChatScreen)
        screen.sidebar.action_export()
        await until(pilot, lambda: pilot.app.screen is not screen)
        pilot.app.screen.set_focus(None)

    assert snap_compare(app, terminal_size=size, run_before=looking(engine, theme, "ctrl+b", then=export))
