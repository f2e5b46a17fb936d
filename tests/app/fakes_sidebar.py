"""A window with a sidebar alone, over a store in memory whose clock the test sets."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from app.store.store import Store
from app.themes import THEMES
from app.transcript import Entry
from app.widgets.field import Field
from app.widgets.sidebar import Sidebar

STYLE = Path(__file__).resolve().parents[2] / "app" / "widgets" / "sidebar.tcss"
HERE = timezone(timedelta(hours=2))
NOW = datetime(2026, 11, 30, 0, 30, tzinfo=HERE)
"""Half past midnight where the user is, and still the day before in UTC."""


class Clock:
    """Tells the time that it was set to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now.astimezone(UTC)


class Told:
    """A store, and how conversations come into it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store.open(None, self.clock)

    def said(self, text: str, ago: timedelta = timedelta(), answers: Sequence[str] = ("Well.",)) -> int:
        """A conversation that begins with this text, so long ago."""
        self.clock.now = NOW - ago
        id = self.store.create()
        parent = self.store.add(id, None, Entry("user", text)).id
        for answer in answers:
            parent = self.store.add(id, parent, Entry("assistant", answer)).id
        self.clock.now = NOW
        return id


class Main(Screen[None]):
    """Sidebar and a page."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    AUTO_FOCUS = "RowList"

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._kept = store

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Sidebar(self._kept, now=lambda: NOW, settle_s=0.0)
            yield Static("page", id="page", markup=False)


class Host(App[None]):
    """Keeps what the sidebar says."""

    CSS_PATH = STYLE
    CSS = "#page { width: 1fr; height: 100%; } Main { layers: default over; }"
    BINDINGS = [Binding("ctrl+o", "toggle", "Sidebar")]

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.animation_level = "none"
        self._main = Main(store)
        self.said: list[Message] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name

    def get_default_screen(self) -> Main:
        return self._main

    @on(Sidebar.NewWanted)
    @on(Sidebar.ConversationChosen)
    @on(Sidebar.HitChosen)
    @on(Sidebar.ConversationRenamed)
    @on(Sidebar.ConversationDeleted)
    @on(Sidebar.ConversationRestored)
    @on(Sidebar.ConversationImported)
    @on(Sidebar.Left)
    def _keep(self, message: Message) -> None:
        self.said.append(message)

    def action_toggle(self) -> None:
        self.bar.toggle()

    @property
    def bar(self) -> Sidebar:
        return self._main.query_one(Sidebar)

    @property
    def field(self) -> Field:
        return self.bar.query_one("#sidebar-search", Field)

    @property
    def keys(self) -> list[str]:
        """The names of the rows, empty for headings."""
        return [row.key for row in self.bar.rows.rows]

    def drawn(self, width: int = 30) -> list[str]:
        """All rows as text."""
        return [line.plain.rstrip() for row in self.bar.rows.rows for line in row.draw(width)]


def screen_lines(pilot: Pilot[None]) -> list[str]:
    """What is on the screen."""
    return ["".join(part.text for part in strip) for strip in pilot.app.screen._compositor.render_strips()]
