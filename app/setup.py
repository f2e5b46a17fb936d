"""What the window is given when it opens: its settings, and how it reaches engines and models.

Tests put their own in the place of each; nothing here is imported that is slow to import.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.bridge import Starter, start_engine
from app.pace import FRAME_S
from app.widgets.prompt import QUIET_S
from engine.config import EngineConfig, Request


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

    @property
    def fits(self) -> bool:
        """Whether the memory suffices."""
        return self.memory <= self.available


@dataclass(frozen=True)
class Fetched:
    """How far a download is."""

    what: str
    done: int
    total: int


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

    def offers(self) -> tuple[Offer, ...]:
        """The pairs that can be fetched, the best first."""
        ...

    def fetch(self, pair: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        """Fetch all models of a pair; raises an error of the models package, also when cancelled."""
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
    request: Request
    """What every request is made from: the system's message, sampling, speculation, limits."""
    start: Starter = start_engine
    lower_priority: Callable[[], None] = keep_priority
    """Called once, after the first engine was started."""
    frame_s: float = FRAME_S
    """Least seconds between two updates by the answer being written."""
    quiet_s: float = QUIET_S
    """Least seconds between two keys of a hand."""
    keymap: dict[str, str] = field(default_factory=dict)
    """Keys by the id of their binding, in place of the defaults."""
