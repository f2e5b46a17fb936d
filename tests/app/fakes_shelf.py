"""A shelf of models in memory, and the setup of a window around it."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from app.setup import Fetched, Offer, Setup
from app.tui import ChatApp
from engine.config import EngineConfig, Request
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
        self.release = threading.Event()
        self.error: Exception | None = None
        self.config_error: Exception | None = None
        self.begun = threading.Event()
        self.was_cancelled = threading.Event()

    def ready(self) -> bool:
        return self._installed

    def config(self, pair: str | None = None) -> EngineConfig:
        if self.config_error is not None:
            error, self.config_error = self.config_error, None
            raise error
        assert self._installed if pair is None else pair in self.fetched
        return CONFIG

    def used(self) -> None:
        self.uses += 1

    def offers(self) -> tuple[Offer, ...]:
        return self._offers

    def fetch(self, pair: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        report(Fetched("downloading big-model", 500_000_000, 1_000_000_000))
        self.begun.set()
        for _ in range(2000):
            if self.release.wait(0.005):
                break
            if cancelled():
                self.was_cancelled.set()
                raise RuntimeError("stopped")
        self.release.clear()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.fetched.append(pair)


def setup(engine: FakeEngine, shelf: FakeShelf | None = None, **fields: object) -> Setup:
    """A setup without any waiting."""
    values: dict[str, object] = {
        "shelf": shelf or FakeShelf(),
        "log": NOWHERE,
        "crash_log": NOWHERE,
        "start": engine,
        "frame_s": 0.0,
        "quiet_s": 0.0,
        "request": Request(messages=()),
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
