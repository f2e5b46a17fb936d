"""A progress line for a terminal, or now and then a plain line for a file or a pipe."""

import shutil
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from models.progress import Progress
from models.text import size

_REDRAW_S = 0.1
_PLAIN_STEPS = 10


class Meter:
    """Shows Progress reports on one stream; a context manager that leaves the cursor on a line of its own."""

    def __init__(self, stream: TextIO, live: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._live = stream.isatty() if live is None else live
        self._drawn = -_REDRAW_S
        self._width = 0
        self._mark: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()

    def report(self, progress: Progress) -> None:
        """Show how far a task is, if it is time to."""
        ended = progress.done >= progress.total
        tenth = _PLAIN_STEPS * progress.done // max(1, progress.total)
        fresh = (progress.what, tenth) != self._mark
        now = self._clock()
        if self._live and (now - self._drawn >= _REDRAW_S or (fresh and ended)):
            self._drawn = now
            self._redraw(line(progress))
        elif not self._live and fresh:
            self._stream.write(line(progress) + "\n")
            self._stream.flush()
        self._mark = (progress.what, tenth)

    def _redraw(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


def line(progress: Progress) -> str:
    """A report in words: the step, bytes of bytes, per cent."""
    share = 100 * progress.done // max(1, progress.total)
    return f"{progress.what}  {size(progress.done)} of {size(progress.total)}  {share} %"
