"""The first run: no pair is installed, so offer those there are, fetch one, and go on.

Nothing is fetched before the user chooses; whatever goes wrong, the choice can be made again.
"""

import threading
from dataclasses import dataclass
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from app import figures
from app.setup import Fetched, Offer, Shelf
from app.themes import MUTED
from app.widgets.bar import Bar, Progress
from app.widgets.pair_card import PairCard
from engine.config import EngineConfig
from engine.detokenize import sanitize


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

    @dataclass
    class FetchProgressed(Message):
        """A part of the download is done."""

        fetched: Fetched

    bar = getters.query_one(Bar)
    said = getters.query_one("#said", Static)

    def __init__(self, shelf: Shelf, offers: tuple[Offer, ...]) -> None:
        super().__init__()
        self._shelf, self._offers = shelf, offers
        self._cancelled = threading.Event()
        self._fetching: Worker[EngineConfig] | None = None
        self._reported = ("", -1)

    def compose(self) -> ComposeResult:
        """A heading, a card a pair, the state of the download, keys."""
        with VerticalScroll(id="choices", can_focus=False):
            yield Static(self._heading(), id="heading", markup=False)
            for offer in self._offers:
                yield PairCard(offer)
            yield Bar()
            yield Static(id="said", markup=False)
        yield Footer(show_command_palette=False)

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
        return self._fetching is not None

    @on(PairCard.Chosen)
    def fetch(self, event: PairCard.Chosen) -> None:
        """Fetch the chosen pair, unless a download is under way."""
        if self.fetching:
            return
        self._cancelled = threading.Event()
        self._say("")
        self._enter(True)
        self.bar.progress = Progress(f"Preparing {event.offer.title}", 0.0)
        work = partial(self._work, event.offer.id, self._cancelled)
        self._fetching = self.run_worker(work, thread=True, exit_on_error=False)

    def _work(self, pair: str, cancelled: threading.Event) -> EngineConfig:
        """In a thread: fetch, and find out how to load it."""
        self._shelf.fetch(pair, self._report, cancelled.is_set)
        return self._shelf.config(pair)

    def _report(self, fetched: Fetched) -> None:
        """From the thread of the download: each step of half a per cent once."""
        step = (fetched.what, 200 * fetched.done // max(1, fetched.total))
        if step == self._reported:
            return
        self._reported = step
        self.post_message(self.FetchProgressed(fetched))

    @on(FetchProgressed)
    def _progressed(self, event: FetchProgressed) -> None:
        if not self.fetching or self._cancelled.is_set():
            return
        from models.text import size

        done = event.fetched
        detail = f"{size(done.done)} / {size(done.total)}"
        share = done.done / done.total if done.total else 0.0
        self.bar.progress = Progress(done.what, share, f"{detail} · {figures.share(share)}")

    @on(Worker.StateChanged)
    def _ended(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if worker is not self._fetching or worker.is_running or worker.state is WorkerState.PENDING:
            return
        self._fetching = None
        self.bar.progress = None
        self._enter(False)
        if worker.state is WorkerState.SUCCESS and worker.result is not None:
            self.post_message(self.PairFetched(worker.result))
        elif self._cancelled.is_set():
            self._say("Stopped. What was downloaded is kept; Enter goes on from there.")
        elif worker.error is not None:
            self._say(f"{self._reason(worker.error)} (Enter tries again)", error=True)

    @staticmethod
    def _reason(error: BaseException) -> str:
        from app import report

        return report.describe(error)[0] if isinstance(error, Exception) else type(error).__name__

    def _enter(self, fetching: bool) -> None:
        self.set_class(fetching, "-fetching")
        self.refresh_bindings()

    def _say(self, text: str, *, error: bool = False) -> None:
        self.said.set_class(error, "-error")
        self.said.update(Content(sanitize(text)))

    def action_cancel(self) -> None:
        """Stop the download; finished parts are kept."""
        if self.fetching:
            self._cancelled.set()
            self.bar.progress = Progress("Stopping", 0.0, "…")

    def on_unmount(self) -> None:
        """Stop the download where the window closes."""
        self._cancelled.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Cancel goes with a download."""
        if action == "cancel":
            return True if self.fetching else None
        return super().check_action(action, parameters)
