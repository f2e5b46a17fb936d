"""What the host needs of an engine.

The one invariant: all but what is said to be called from any thread is called by one thread, one after another.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from engine.config import Request, Speculation
from engine.events import AnswerEvent, Kept, Loaded, Resumed


class Hosted(Protocol):
    """An engine, as the host sees it."""

    @property
    def loaded(self) -> Loaded:
        """What has been loaded."""
        ...

    def answer(self, request: Request) -> Iterator[AnswerEvent]:
        """Events up to Finished; EngineError where there is no answer."""
        ...

    def cancel(self) -> None:
        """From any thread: the running answer ends soon."""
        ...

    def set_speculation(self, speculation: Speculation) -> None:
        """From any thread: draft otherwise from the next round on."""
        ...

    def study(self) -> Iterator[None]:
        """Measure this machine, a pass a step, while nothing else is to be done; closed before anything is."""
        ...

    def prepare(self, request: Request) -> Iterator[None]:
        """Read ahead what a request will begin with, a pass a step, under the same terms as `study`."""
        ...

    def pause(self) -> None:
        """From any thread: a step of `study` or `prepare` that is running ends at once, as Interrupted."""
        ...

    def keep(self, folder: Path, most: int | None = None) -> Kept:
        """Write the caches to a folder, if they take no more than `most` bytes."""
        ...

    def resume(self, folder: Path) -> Resumed:
        """Take up what was kept there; hold nothing where that is nothing."""
        ...

    def count(self, texts: list[str]) -> list[int]:
        """From any thread: how many tokens each text has; not beside `close`."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...
