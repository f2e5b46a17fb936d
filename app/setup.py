"""What the window is given when it opens: its settings, and how it reaches engines and models.

Tests put their own in the place of each; nothing here is imported that is slow to import.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from textual.theme import Theme

from app.bridge import Starter, start_engine
from app.caches import Caches
from app.pace import FRAME_S
from app.settings import Settings
from app.store.store import Store
from app.widgets.panel import PAINT_S
from app.widgets.prompt import QUIET_S
from engine.config import EngineConfig


@dataclass(frozen=True)
class Offer:
    """A pair that can be fetched."""

    id: str
    title: str
    note: str
    bytes: int
    """What there is to download."""
    memory: int
    """Bytes of memory that it needs."""
    available: int
    """Bytes of memory that this machine has for it."""
    installed: bool = False
    """Whether all its models are here."""
    models: tuple[str, ...] = ()
    """Their ids, the target's first."""

    @property
    def fits(self) -> bool:
        """Whether the memory suffices."""
        return self.memory <= self.available


@dataclass(frozen=True)
class Known:
    """A model that is on this machine or can be."""

    id: str
    title: str
    bytes: int
    """Length of its file; 0 where the file is gone."""
    state: str
    """installed, added, tuned, partly fetched, damaged, gone, or not installed"""
    licence: str | None = None
    fetched: int = 0
    """Bytes of it that are here."""
    memory: int | None = None
    """Bytes of memory that it needs alone; None where its file does not tell."""
    available: int = 0
    """Bytes of memory that this machine has for it."""

    @property
    def here(self) -> bool:
        """Whether it can be loaded."""
        return self.state in {"installed", "added", "tuned"}

    @property
    def fits(self) -> bool:
        """Whether the memory suffices, as far as is known."""
        return self.memory is None or self.memory <= self.available


@dataclass(frozen=True)
class DraftFit:
    """Whether one model can draft for another."""

    fits: bool
    reason: str
    """Why or how, in one line."""


@dataclass(frozen=True)
class Fetched:
    """How far a download is."""

    what: str
    done: int
    total: int


Report = Callable[[Fetched], None]
"""Called from the thread that does the work."""
Asked = Callable[[], bool]
"""Whether the user wants the work to stop."""


class Shelf(Protocol):
    """The models of this machine, and those to be had; every method may block."""

    def ready(self) -> bool:
        """Whether there is something to load: at once, since the first frame waits for it."""
        ...

    def config(self, pair: str | None = None) -> EngineConfig:
        """What to load, the pair named or the user's choice.

        An error of the app, the engine or the models package says what is wrong.
        """
        ...

    def used(self) -> None:
        """What `config` gave last was loaded."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences about what `config` gave last: what was used last and is gone."""
        ...

    def offers(self) -> tuple[Offer, ...]:
        """The pairs that can be fetched, the best first."""
        ...

    def fetch(self, pair: str, report: Report, cancelled: Asked) -> None:
        """Fetch a model, or all models of a pair; raises an error of the models package, also when cancelled."""
        ...

    def models(self) -> tuple[Known, ...]:
        """All models that are here or can be fetched."""
        ...

    def config_of(self, target: str, draft: str | None) -> EngineConfig:
        """How to load these two, by id, with the user's settings; None drafts by lookup alone.  Raises as `config`."""
        ...

    def draft_fit(self, target: str, draft: str) -> DraftFit:
        """Whether one model can draft for another; an error of the engine or the models where that cannot be told."""
        ...

    def add(self, path: str, report: Report, cancelled: Asked) -> str:
        """Register a GGUF file where it lies; its id.  Raises an error of the models package, also when cancelled."""
        ...

    def verify(self, id: str, report: Report, cancelled: Asked) -> None:
        """Hash a model's file, or those of a pair, again; raises an error of the models package where one is wrong."""
        ...

    def remove(self, id: str) -> None:
        """Delete what was fetched, forget what was added; raises an error of the models package."""
        ...


def keep_priority() -> None:
    """Leave the priority of this process as it is."""


@dataclass(frozen=True)
class Setup:
    """All that the window needs."""

    shelf: Shelf
    log: Path
    """Where the engine's native output goes."""
    crash_log: Path
    """Where the window's own faults go."""
    settings: Settings = field(default_factory=Settings)
    """What every answer begins from: sampling, speculation, limits, the system's message, looks."""
    store: Callable[[], Store] = lambda: Store.open(None)
    """Opens the conversations."""
    caches: Caches = field(default_factory=lambda: Caches(None))
    """Where what the models have read is kept."""
    save: Callable[[Mapping[str, object]], None] = lambda _: None
    """Writes settings into the user's file."""
    remember: Callable[[str], None] = lambda _: None
    """Keeps how rounds are drafted, as the setting `spec` says it, for the next start."""
    start: Starter = start_engine
    lower_priority: Callable[[], None] = keep_priority
    """Called once, after the first engine was started."""
    frame_s: float = FRAME_S
    """Least seconds between two updates by the answer being written."""
    paint_s: float = PAINT_S
    """Least seconds between two updates of the panel meanwhile."""
    clock: Callable[[], float] = time.monotonic
    """Seconds, for the wait until the first token."""
    quiet_s: float = QUIET_S
    """Least seconds between two keys of a hand."""
    keymap: dict[str, str] = field(default_factory=dict)
    """Keys by the id of their binding, in place of the defaults."""
    themes: tuple[Theme, ...] = ()
    """Themes of the user's own."""
    faults: tuple[str, ...] = ()
    """What is wrong in the user's files, a line each."""
