"""The first run: no pair is installed, so offer those there are, fetch one, and go on.

Nothing is fetched before the user chooses; whatever goes wrong, the choice can be made again.
"""

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from app.setup import Asked, Offer, Report, Shelf
from app.themes import MUTED
from app.widgets.pair_card import PairCard
from app.widgets.task import Task
from engine.config import EngineConfig


class FirstRunScreen(Screen[None]):
    """Choose a pair and fetch it."""

    CSS_PATH = "first_run.tcss"
    AUTO_FOCUS = "PairCard"
    BINDINGS = [
        Binding("down", "app.focus_next", "Next", id="first.next", tooltip="The next pair", show=False),
        Binding("up", "app.focus_previous", "Previous", id="first.previous", tooltip="The pair before", show=False),
        Binding("escape", "cancel", "Cancel", id="first.cancel", tooltip="Stop the download; what is there is kept"),
    ]

    @dataclass
    class PairFetched(Message):
        """All models of a pair are installed; this is how to load it."""

        config: EngineConfig

    def __init__(self, shelf: Shelf, offers: tuple[Offer, ...]) -> None:
        super().__init__()
        self._shelf, self._offers = shelf, offers
        self._work = Task(
            stopped="Stopped. What was downloaded is kept; Enter goes on from there.", again=" (Enter tries again)"
        )
        self.bar, self.said = self._work.bar, self._work.said

    def compose(self) -> ComposeResult:
        """A heading, a card a pair, the state of the download, keys."""
        with VerticalScroll(id="choices", can_focus=False):
            yield Static(self._heading(), id="heading", markup=False)
            for offer in self._offers:
                yield PairCard(offer)
            yield self._work
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Dim the cards while something is fetched."""
        self.watch(self._work, "busy", self._enter, init=False)

    @staticmethod
    def _heading() -> Content:
        return Content("\n").join(
            [
                Content.styled("P A C E L I N E", "bold $accent"),
                Content.styled("No models are here yet. Choose what to download; all else works offline.", MUTED),
            ]
        )

    @property
    def fetching(self) -> bool:
        """Whether a download is under way."""
        return self._work.busy

    @on(PairCard.Chosen)
    def fetch(self, event: PairCard.Chosen) -> None:
        """Fetch the chosen pair, unless a download is under way, and find out how to load it."""
        pair = event.offer.id

        def work(report: Report, cancelled: Asked) -> EngineConfig:
            self._shelf.fetch(pair, report, cancelled)
            return self._shelf.config(pair)

        self._work.begin(f"Preparing {event.offer.title}", work, self._fetched)

    def _fetched(self, config: EngineConfig) -> None:
        self.post_message(self.PairFetched(config))

    def _enter(self, fetching: bool) -> None:
        self.set_class(fetching, "-fetching")
        self.refresh_bindings()

    def action_cancel(self) -> None:
        """Stop the download; finished parts are kept."""
        self._work.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Cancel goes with a download."""
        if action == "cancel":
            return True if self.fetching else None
        return super().check_action(action, parameters)
