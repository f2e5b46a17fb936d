"""Flash attention on or off: whichever makes passes over a long context faster here, measured with both.

The one invariant: it is decided for the next load, never for a model that is open, whose text would change.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from statistics import geometric_mean
from typing import Literal

from engine.calibration_text import sample_ids
from engine.config import Frozen
from engine.cost_table import Clock, CostTable, timings
from engine.errors import LoadFailed
from engine.model import Model

READ = 32
"""Tokens read in one step."""
WIDTHS = (1, 4, 16)
"""Passes that are compared."""
FASTER = 0.97
"""A setting replaces the one in use if its passes take at most this share of the time."""
Switch = Literal["on", "off"]


class FlashChoice(Frozen, frozen=True):
    """What was found to be faster."""

    flash_attention: Switch
    context: int
    """Tokens that the cache held."""
    ratio: float
    """The time of passes with the other setting than the one in use, as a share."""


class FlashTrial:
    """One comparison, of the setting in use with the other one in a second context over the same weights."""

    def __init__(
        self,
        now: Switch,
        other: Callable[[int], Model],
        keep: Callable[[FlashChoice], None],
        clock: Clock = time.perf_counter,
    ) -> None:
        """`other` opens such a context for so many tokens, or raises LoadFailed where there is no room for it."""
        self._now, self._other, self._keep, self._clock = now, other, keep, clock

    def steps(self, context: int, own: CostTable) -> Generator[bool, None, None]:
        """A pass a step; `own` has the costs with the setting in use behind `context` tokens."""
        mine = own.at.get(context, {})
        if any(width not in mine for width in WIDTHS):
            return
        try:
            model = self._other(context + max(WIDTHS))
        except LoadFailed:
            return
        ratios = []
        with closing(model):
            yield False
            for _ in read(model, context):
                yield False
            for timed in timings(model, WIDTHS, self._clock):
                if timed and not timed.steady:
                    return
                if timed:
                    ratios.append(timed.ms / mine[timed.width])
                yield False
        ratio = geometric_mean(ratios)
        better: Switch = self._now if ratio > FASTER else "off" if self._now == "on" else "on"
        self._keep(FlashChoice(flash_attention=better, context=context, ratio=round(ratio, 3)))


def read(model: Model, context: int) -> Iterator[None]:
    """Fill a cache with text up to `context` tokens."""
    ids = sample_ids(model.vocab, context)
    while (start := model.length) < context:
        model.forward(ids[start : min(context, start + READ)], 0)
        yield
