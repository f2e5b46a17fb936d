"""What passes of one model cost, by width and by what the cache holds: measured, a pass at a time.

The one invariant: between two passes the cache holds what it held before them, so a measurement may end anywhere.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.calibration_text import sample_ids
from engine.config import MAX_DRAFT, Frozen
from engine.costs import Surface
from engine.model import Model

COST_WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Widths of a target's passes."""
FIRST_WIDTHS = (1, 4, 16)
"""Those that the first answer needs: they span the range."""
FAR_WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Those that are timed behind a longer context: the others follow them."""
DRAFT_WIDTHS = (1, 2, 4, 8)
"""Widths of a draft's passes: it drafts singly, and catches up in wider ones."""
OFTEN, SELDOM = 3, 2
"""How often a pass is timed, and how often one over more than `MANY` tokens; the first may capture shapes."""
MANY = 16
STEADY = 1.5
"""The second least time of a pass may be so many times the least one, or something else was running."""
FAR = 512
"""A context is unlike those measured if it is farther than this from each of them, and by a factor of two."""


class CostTable(Frozen, frozen=True, rename={"at": "after_one"}):
    """Milliseconds of one pass that comes after one over a single token; it is kept under that name.

    What was kept as "at" was timed after passes of the same width, and is some 4 ms too low.
    """

    at: dict[int, dict[int, float]] = {}
    """By the tokens that the cache held, then by width."""

    def lacking(self, widths: Sequence[int], context: int = 0) -> list[int]:
        """Which of these widths were not timed behind so many tokens."""
        return [width for width in widths if width not in self.at.get(context, {})]

    def adding(self, context: int, width: int, ms: float) -> "CostTable":
        """This table with one more entry."""
        return CostTable(at={**self.at, context: {**self.at.get(context, {}), width: ms}})

    def is_far(self, context: int) -> bool:
        """Whether nothing was measured behind about so many tokens."""
        return all(abs(context - known) >= FAR and not known / 2 < context < known * 2 for known in self.at)

    def surface(self) -> Surface:
        """The cost of any pass, on lines between those measured; behind less than the least context as behind that.

        A context at which few widths were timed takes the others from the one with most, by the ratio of those that
        were timed at both.  Beyond the last context it goes on straight, but never down.
        """
        base = max(self.at, key=lambda context: (len(self.at[context]), -context))
        known = sorted(self.at)
        rows = {context: self._row(self.at[base], self.at[context]) for context in known}

        def cost(width: int, context: int) -> float:
            beyond = width / len(rows[known[0]]) if width > len(rows[known[0]]) else 1.0
            column = min(width, len(rows[known[0]])) - 1
            place = bisect_left(known, context)
            if place == 0 or len(known) == 1:
                return rows[known[0]][column] * beyond
            low, high = (known[place - 1], known[place]) if place < len(known) else (known[-2], known[-1])
            before, after = rows[low][column], rows[high][column]
            straight = before + (after - before) * (context - low) / (high - low)
            return max(straight, after if context > high else 0.0) * beyond

        return cost

    def cost(self, width: int, context: int = 0) -> float:
        """One value of the surface."""
        return self.surface()(width, context)

    @staticmethod
    def _row(base: Mapping[int, float], own: Mapping[int, float]) -> list[float]:
        """Milliseconds of the widths 1, 2, ... up to one more than the longest draft."""
        shared = {width: own[width] / base[width] for width in own if width in base} or {1: 1.0}
        last = max(base)
        out = []
        for width in range(1, MAX_DRAFT + 2):
            straight = line(base, width) if width <= last else base[last] * width / last
            out.append(own.get(width) or straight * line(shared, width))
        return out


def line(points: Mapping[int, float], at: int) -> float:
    """On the lines between points; outside of them the nearest."""
    known = sorted(points)
    place = bisect_left(known, at)
    if place == len(known):
        return points[known[-1]]
    if known[place] == at or place == 0:
        return points[known[place]]
    low, high = known[place - 1], known[place]
    return points[low] + (points[high] - points[low]) * (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Timed:
    """The cost of one width."""

    width: int
    ms: float
    """The least time: whatever else runs only adds to it."""
    steady: bool
    """Whether like runs took alike, so that nothing else was running."""


Clock = Callable[[], float]


def timings(model: Model, widths: Sequence[int], clock: Clock = time.perf_counter) -> Iterator[Timed | None]:
    """Time passes behind what the cache holds, one a step: None, or what its width costs after the last.

    Each is timed as a round makes it, after a pass over one token: a change of shape costs milliseconds of its own.
    The cache is as before at each step, and after an Interrupted; CannotRewind where that cannot be.
    """
    length = model.length
    fitting = [width for width in widths if width <= model.n_batch and length + width <= model.n_ctx]
    ids = sample_ids(model.vocab, max(fitting, default=0))
    for width in fitting:
        times = []
        for left in reversed(range(OFTEN if width <= MANY else SELDOM)):
            if width > 1:
                model.forward(ids[:1], 1)
                model.rewind(length)
            start = clock()
            model.forward(ids[:width], width)
            times.append(1e3 * (clock() - start))
            model.rewind(length)
            if left:
                yield None
        times.sort()
        yield Timed(width, times[0], times[1] <= STEADY * times[0])


def measure_costs(
    model: Model,
    widths: Sequence[int] = COST_WIDTHS,
    progress: Callable[[float], None] = lambda _: None,
    clock: Clock = time.perf_counter,
) -> CostTable:
    """All of these widths at once, behind what the cache holds."""
    table, context = CostTable(), model.length
    for timed in timings(model, widths, clock):
        if timed:
            table = table.adding(context, timed.width, timed.ms)
            progress(len(table.at[context]) / len(widths))
    return table
