"""A shelf of models in memory, and the setup of a window around it."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from app.setup import DraftFit, Fetched, Known, Offer, Setup
from app.tui import ChatApp
from engine.config import EngineConfig
from tests.fakes_client import FakeEngine

NOWHERE = Path(os.devnull)
CONFIG = EngineConfig(target=Path("target.gguf"), backend="demo")
OFFERS = (
    Offer("coder", "Qwen2.5 Coder 1.5B with 0.5B", "for work", 1_633_000_000, 3_100_000_000, 12_400_000_000),
    Offer("tiny", "SmolLM2 135M", "for a first try", 93_000_000, 400_000_000, 12_400_000_000),
)  # fmt: skip


class FakeShelf:
    """Nothing installed until a fetch is released by the test, unless said otherwise."""

    def __init__(self, offers: tuple[Offer, ...] = OFFERS, installed: bool = False) -> None:
        self._installed = installed
        self._offers = offers
        self.fetched: list[str] = []
        self.uses = 0
        self.said: tuple[str, ...] = ()
        """What it says of what `config` gave."""
        self.release = threading.Event()
        self.error: Exception | None = None
        self.config_error: Exception | None = None
        self.begun = threading.Event()
        self.was_cancelled = threading.Event()
        self.known: tuple[Known, ...] = ()
        self.fits: dict[tuple[str, str], DraftFit] = {}
        """How models fit; those that are not named do."""
        self.asked: list[tuple[str, ...]] = []
        """What was asked of it beside the pairs: the name of the method and its arguments."""
        self.threads: set[int] = set()
        """The threads that it was called from, but for `ready`."""

    def ready(self) -> bool:
        return self._installed

    def config(self, pair: str | None = None) -> EngineConfig:
        self._called("config", *([pair] if pair else []))
        self._fail()
        assert self._installed if pair is None else pair in self.fetched or self._offered(pair)
        return CONFIG

    def _fail(self) -> None:
        if self.config_error is not None:
            error, self.config_error = self.config_error, None
            raise error

    def _offered(self, pair: str) -> bool:
        return any(offer.installed for offer in self._offers if offer.id == pair)

    def _called(self, *words: str) -> None:
        self.asked.append(words)
        self.threads.add(threading.get_ident())

    def config_of(self, target: str, draft: str | None) -> EngineConfig:
        self._called("config_of", target, draft or "none")
        self._fail()
        return CONFIG

    def models(self) -> tuple[Known, ...]:
        self._called("models")
        return self.known

    def draft_fit(self, target: str, draft: str) -> DraftFit:
        self._called("draft_fit", target, draft)
        return self.fits.get((target, draft), DraftFit(True, "fits: each token means the same in both"))

    def add(self, path: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> str:
        self._called("add", path)
        self._work(report, cancelled)
        return "mine"

    def verify(self, id: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        self._called("verify", id)
        self._work(report, cancelled)

    def remove(self, id: str) -> None:
        self._called("remove", id)
        self._raise()

    def used(self) -> None:
        self.uses += 1

    def notes(self) -> tuple[str, ...]:
        return self.said

    def offers(self) -> tuple[Offer, ...]:
        return self._offers

    def fetch(self, pair: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        self._called("fetch", pair)
        self._work(report, cancelled)
        self.fetched.append(pair)

    def _work(self, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        report(Fetched("downloading big-model", 500_000_000, 1_000_000_000))
        self.begun.set()
        for _ in range(2000):
            if self.release.wait(0.005):
                break
            if cancelled():
                self.was_cancelled.set()
                raise RuntimeError("stopped")
        self.release.clear()
        self._raise()

    def _raise(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def setup(engine: FakeEngine, shelf: FakeShelf | None = None, **fields: object) -> Setup:
    """A setup without any waiting."""
    values: dict[str, object] = {
        "shelf": shelf or FakeShelf(),
        "log": NOWHERE,
        "crash_log": NOWHERE,
        "start": engine,
        "frame_s": 0.0,
        "paint_s": 0.0,
        "clock": lambda: 0.0,
        "quiet_s": 0.0,
        **fields,
    }
    return Setup(**values)  # type: ignore[arg-type]


def chat_app(*clients: object, **fields: object) -> tuple[ChatApp, FakeEngine]:
    """A window on a chat, and its engine."""
    engine = FakeEngine(*clients)  # type: ignore[arg-type]
    return ChatApp(setup(engine, **{"shelf": FakeShelf(installed=True), **fields})), engine  # type: ignore[arg-type]


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Let the window work until the condition holds; fails after many turns."""
    for _ in range(400):
        await pilot.pause()
        if condition():
            return
        await pilot.pause(0.005)
    raise AssertionError("the window never came to that")
