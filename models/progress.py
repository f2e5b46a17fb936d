"""How far a long task is, and the two callbacks that every long task of this package takes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from models.errors import Cancelled


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is, in bytes."""

    done: int
    total: int
    what: str
    """The step, in words that can be shown; a new step starts again at 0."""


Report: TypeAlias = Callable[[Progress], None]
Asked: TypeAlias = Callable[[], bool]


def silent(progress: Progress) -> None:
    """Report nothing."""


def never() -> bool:
    """Nobody asked to stop."""
    return False


def stop_if(cancelled: Asked) -> None:
    """Raise Cancelled where the user asked for it."""
    if cancelled():
        raise Cancelled("stopped: what is finished is kept, and the same command goes on from there")
