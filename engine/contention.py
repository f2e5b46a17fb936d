"""Fewer threads where something else runs: two that spin for one free core are slower than one alone.

A small machine of states, fed with each pass.  The one invariant: a number of threads is kept because it was faster
than the one before in passes made one after the other; where costs do not bear that out everything stays as it was.
"""

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Protocol, runtime_checkable

from engine.costs import Surface

WINDOW = 5
"""Passes whose median says how things are."""
SLOW = 1.8
"""So many times what was measured they take where something else runs."""
TRIAL = 4
"""Passes with another number of threads before it is judged."""
HOPELESS = 2.0
"""A pass of a trial that takes so many times what passes took before ends it."""
BETTER = 0.9
"""A number of threads is kept where passes take at most this share of the time."""
PAUSES = (2.0, 60.0)
"""Seconds until another number is tried, at first and at most; twice as many after each trial that failed."""


class Contention:
    """How many threads to use now, from `most` down to 1."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.threads, self.most, self._clock = most, most, clock
        self._ratios: deque[float] = deque(maxlen=WINDOW)
        self._pause, self._after = PAUSES[0], -1.0
        """The next pause, and the time at which the present one is over."""
        self._before: tuple[int, float] | None = None
        """During a trial: the threads before it, and what passes took then."""

    def observe(self, ms: float, expected: float) -> int:
        """A pass took `ms` where `expected` was measured on a quiet machine; how many threads the next one takes."""
        self._ratios.append(ms / expected)
        if self._before is not None:
            self._judge(*self._before)
        elif len(self._ratios) == WINDOW and self._clock() >= self._after:
            now = median(self._ratios)
            if self.threads < self.most:
                self._try(self.threads + 1, now)
            elif now > SLOW and self.threads > 1:
                self._try(self.threads - 1, now)
        return self.threads

    def _try(self, threads: int, now: float) -> None:
        self._before = self.threads, now
        self.threads = threads
        self._ratios.clear()

    def _judge(self, threads: int, before: float) -> None:
        hopeless = self._ratios[-1] > HOPELESS * before
        if len(self._ratios) < TRIAL and not hopeless:
            return
        if hopeless or median(self._ratios) > BETTER * before:
            self.threads = threads
            self._after = self._clock() + self._pause
            self._pause = min(2 * self._pause, PAUSES[1])
        else:
            self._pause = PAUSES[0]
            self._after = self._clock() + self._pause
        self._before = None
        self._ratios.clear()


@runtime_checkable
class Threaded(Protocol):
    """A Model whose threads can be changed between passes, as an extra."""

    @property
    def threads(self) -> int:
        """Those it was opened with, the most that are used."""
        ...

    @property
    def same_on_any_threads(self) -> bool:
        """Whether its results do not depend on their number."""
        ...

    def use_threads(self, count: int) -> None:
        """Run the passes to come on so many threads."""
        ...


class Pace:
    """Follows the passes of a target, and gives it and its draft the threads that are free.

    Where results depend on the number of threads it stays as it is.
    """

    def __init__(self, models: Sequence[object], measured: Callable[[], Surface], clock: Callable[[], float]) -> None:
        """The target comes first; `measured` is what its passes cost on a quiet machine."""
        self._measured = measured
        self._models = [model for model in models if isinstance(model, Threaded)]
        self._contention: Contention | None = None
        if models and isinstance(target := models[0], Threaded) and target.same_on_any_threads and target.threads > 1:
            self._contention = Contention(target.threads, clock)

    @property
    def eased(self) -> bool:
        """Whether fewer threads are used than were asked for, so that no pass takes what it should."""
        return self._contention is not None and self._contention.threads < self._contention.most

    def took(self, width: int, ms: float, context: int) -> None:
        """A pass of the target's over `width` tokens behind `context` is over."""
        if self._contention is None:
            return
        before = self._contention.threads
        if (now := self._contention.observe(ms, self._measured()(width, context))) != before:
            for model in self._models:
                model.use_threads(min(now, model.threads))
