"""The costs of one model as they become known, and those of them that are worth keeping.

The one invariant: what was timed while something else ran is used as long as there is nothing better, and never kept.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing

from engine.calibration_store import CalibrationStore, Key
from engine.calibration_text import sample_ids
from engine.cost_table import Clock, CostTable, timings
from engine.model import Model

TRIES = 2
"""So often a width is timed in one run of the program where something else was running."""


class CostBook:
    """What passes of `model` cost, kept under `key`."""

    def __init__(self, model: Model, store: CalibrationStore, key: Key, clock: Clock = time.perf_counter) -> None:
        self.model = model
        self._store, self._key, self._clock = store, key, clock
        self._kept = self.table = store.get(key, CostTable) or CostTable()
        self._tries: dict[tuple[int, int], int] = {}

    def lacking(self, widths: Sequence[int], context: int = 0) -> list[int]:
        """Widths whose cost behind so many tokens is not known well enough, and may be tried."""
        return [
            width
            for width in self._kept.lacking(widths, context)
            if self._tries.get((context, width), 0) < TRIES
            and width <= self.model.n_batch
            and context + width <= self.model.n_ctx
        ]

    def measure(self, widths: Sequence[int], context: int | None = None) -> Generator[int, None, None]:
        """Time these widths, one pass a step; yields how many of them are done.

        They count as measured behind `context` tokens; None: behind as many as the cache holds.  An empty cache holds
        one token meanwhile, since a first pass may open with more than it was given.
        """
        length = self.model.length
        if not widths:
            return
        if opened := not length and self.model.reach is None:
            self.model.forward(sample_ids(self.model.vocab, 1), 0)
        try:
            yield from self._timed(widths, length if context is None else context)
        finally:
            if opened:
                self.model.rewind(0)

    def _timed(self, widths: Sequence[int], behind: int) -> Generator[int, None, None]:
        done = 0
        for timed in timings(self.model, widths, self._clock):
            if timed:
                done += 1
                place = behind, timed.width
                self._tries[place] = self._tries.get(place, 0) + 1
                before = self.table.at.get(behind, {}).get(timed.width, timed.ms)
                self.table = self.table.adding(*place, min(before, timed.ms))
                if timed.steady:
                    self._kept = self._kept.adding(*place, timed.ms)
                    self._store.put(self._key, self._kept)
            yield done

    def measure_now(self, widths: Sequence[int], progress: Callable[[float], None], budget: float) -> None:
        """At once, until so many seconds have passed; the first is always timed."""
        began = self._clock()
        with closing(self.measure(widths)) as steps:
            for done in steps:
                progress(done / len(widths))
                if done and self._clock() - began > budget:
                    break
