"""The palette lists every action of the screen with its key, and runs it where it belongs."""

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.command import CommandPalette
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Button

from app.palette import Action, ActionsProvider
from tests.app.fakes_shelf import until


class Inner(Vertical, can_focus=True):
    """A widget with an action of its own."""

    BINDINGS = [
        Binding("f7,ctrl+y", "inner", "Turn inside", id="inner.turn", tooltip="Turn it"),
        Binding("f8", "never", "Never now", id="inner.never", tooltip="Not to be had"),
        Binding("f9", "hidden", "Hidden", id="inner.hidden", tooltip="Not there at all"),
    ]

    def compose(self) -> ComposeResult:
        yield Button("x")

    def action_inner(self) -> None:
        self.app.done.append("inner")  # type: ignore[attr-defined]

    def action_never(self) -> None:
        self.app.done.append("never")  # type: ignore[attr-defined]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return {"never": None, "hidden": False}.get(action, True)


class Host(App[None]):
    """An app with actions at three places."""

    COMMANDS = {ActionsProvider}
    BINDINGS = [Binding("ctrl+l", "outer", "Around", id="app.outer", tooltip="Go around", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self.animation_level = "none"
        self.done: list[str] = []

    def get_default_screen(self) -> Screen[object]:
        return Main()

    def action_outer(self) -> None:
        self.done.append("outer")


class Main(Screen[object]):
    """A screen with an action."""

    AUTO_FOCUS = "Inner"
    BINDINGS = [Binding("f6", "app.bell", "Ring", id="main.ring", tooltip="Make a sound")]

    def compose(self) -> ComposeResult:
        yield Inner()


async def actions(app: Host) -> dict[str, Action]:
    return {action.name: action for action in ActionsProvider(app.screen).actions()}


async def test_every_action_is_listed_with_all_its_keys() -> None:
    app = Host()
    async with app.run_test() as pilot:
        await pilot.pause()
        found = await actions(app)
        assert {name: action.keys for name, action in found.items()} == {
            "Around": ("Ctrl+L",),
            "Ring": ("F6",),
            "Turn inside": ("F7", "Ctrl+Y"),
            "Never now": ("F8",),
            "Maximize": (),
            "Screenshot": (),
            "Theme": (),
        }
        assert list(found)[-1] == "Never now"
        assert found["Never now"].help == "Not now. Not to be had"
        assert found["Ring"].help == "Make a sound"


async def test_a_keymap_changes_what_is_listed() -> None:
    app = Host()
    app.set_keymap({"inner.turn": "f3"})
    async with app.run_test() as pilot:
        await pilot.pause()
        assert (await actions(app))["Turn inside"].keys == ("F3",)


async def choose(app: Host, query: str) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: CommandPalette.is_open(app))
        await pilot.press(*query)
        await until(pilot, lambda: app.screen.query("CommandList").first().option_count)  # type: ignore[attr-defined]
        await pilot.pause()
        await pilot.press("down", "enter")
        await until(pilot, lambda: not CommandPalette.is_open(app))
        await pilot.pause()


async def test_the_action_of_a_widget_runs_in_the_widget() -> None:
    app = Host()
    await choose(app, "inside")
    assert app.done == ["inner"]


async def test_an_action_is_found_by_its_key() -> None:
    app = Host()
    await choose(app, "ctrl+l")
    assert app.done == ["outer"]


async def test_what_cannot_be_done_now_does_nothing() -> None:
    app = Host()
    await choose(app, "never")
    assert app.done == []
