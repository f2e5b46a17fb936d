"""What passes cost: measured before the first answer and while nobody waits, then followed from live rounds.

Only ratios between costs decide anything.  The one invariant: a machine that slows down as a whole changes all costs
alike, and no width ever strays from the others by more than a factor of `MOST_APART` beyond what was measured.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from engine.stats import Source

Cost = Callable[[int], float]
"""Milliseconds of one pass over so many tokens."""
Surface = Callable[[int, int], float]
"""Milliseconds of one pass over so many tokens, behind so many that the cache holds."""
FOLLOW = 0.35
"""Weight of the latest drafted token in a moving average."""
SHARE = 0.5
"""Of what a pass took other than expected, in logarithms, so much is believed at once."""
OWN = (0.4, 0.2, 0.05)
"""How much of that a width takes upon itself when it is first seen; and at least, after a pass of another width, which
told how fast the machine is; and after one of its own.  The rest is the machine's."""
MOST = 3.0
"""So many times what was expected the latest pass counts for at most: shapes may be captured in it, once."""
MOST_APART = 4.0
"""Beside what was measured; so a table from a busy machine is put right, and no gain becomes absurd."""
NEAR = 512
"""What was learned of a width behind a context so far away counts half: attention grows with both."""


@dataclass(frozen=True, slots=True)
class DraftCost:
    """Milliseconds of one drafted token."""

    ms: float
    """What drafting it takes."""
    saved: float | None = None
    """What the verifying pass takes less for it, as a part of its work is done; None: nothing of it is."""

    @property
    def net(self) -> float:
        """What it adds to a round beside the width of the verifying pass."""
        return self.ms - (self.saved or 0.0)


FREE = DraftCost(0.0)
"""What is copied."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured: the target's passes by width, and the tokens of each source that runs a model."""

    target: Surface
    drafts: Mapping[Source, DraftCost] = field(default_factory=dict)
    reading: Mapping[Source, Cost] = field(default_factory=dict)
    """What it takes a source's own model to read so many tokens."""


FLAT = Costs(lambda width, _: 1 + 0.01 * width, {"model": DraftCost(0.05), "exit": DraftCost(0.25, 0.0)})
"""A machine on which a wide pass costs hardly more than a narrow one: for models without costs of their own."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of one round."""

    draft: float
    target: float
    passes: int = 0
    """Passes that were made for drafts."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What live passes of one width were."""

    log: float = 0.0
    """The logarithm of its factor."""
    weight: float = 0.0
    """How many passes it rests on, less those behind other contexts."""
    context: int = 0

    def at(self, context: int) -> "_Seen":
        """What that says of passes behind `context`."""
        share = NEAR / (NEAR + abs(context - self.context))
        return _Seen(self.log * share, self.weight * share, context)


class LiveCosts:
    """Measured costs times what live rounds make of them: one factor for the machine, and one for each width seen.

    A width that is new takes most of what its passes took otherwise upon itself; of one that is well known it is
    believed that the machine is faster or slower.  Between widths seen their factors lie on the line.
    """

    def __init__(self, measured: Costs) -> None:
        self._measured = measured
        self._machine, self._latest = 1.0, 0
        self._forget()
        self._drafts = dict(measured.drafts)
        """As on a machine of factor 1."""

    def rebase(self, measured: Costs) -> None:
        """More has been measured: what was made of single widths is void."""
        self._measured = measured
        self._forget()

    def _forget(self) -> None:
        """Nothing was seen of any width."""
        self._seen, self._widths = {1: _Seen()}, [1]

    def target(self, width: int, context: int) -> float:
        """Milliseconds of a target pass over `width` tokens behind `context` now."""
        return self._measured.target(width, context) * self._machine * math.exp(self._log(width, context))

    def at(self, context: int) -> Cost:
        """The same for passes behind `context` tokens, as they are expected now; each width is computed once."""
        known: dict[int, float] = {}

        def cost(width: int) -> float:
            if (ms := known.get(width)) is None:
                ms = known[width] = self.target(width, context)
            return ms

        return cost

    def draft(self, source: Source) -> DraftCost:
        """What a drafted token of this source costs now; nothing where that was not measured."""
        if (cost := self._drafts.get(source)) is None:
            return FREE
        saved = None if cost.saved is None else cost.saved * self._machine
        return DraftCost(cost.ms * self._machine, saved)

    def read(self, source: Source, tokens: int) -> float:
        """Milliseconds in which the model of this source reads so many tokens."""
        if not tokens:
            return 0.0
        if (measured := self._measured.reading.get(source)) is not None:
            return measured(tokens) * self._machine
        return tokens * self.draft(source).ms / 2

    def observe(self, drafted: int, source: Source | None, spent: Spent, context: int) -> None:
        """Take in a round behind `context` tokens that verified `drafted`; `source`: whose model ran, if any."""
        width = drafted + 1
        cost = self._drafts.get(source) if source else None
        if spent.target > 0 and (cost is None or cost.saved is None):
            self._observe_pass(width, spent.target, context)
        if cost is None or source is None or not spent.passes:
            return
        if spent.draft > 0:
            cost = replace(cost, ms=_follow(cost.ms, spent.draft / spent.passes / self._machine))
        if spent.target > 0 and cost.saved is not None:  # for each pass, the last of them perhaps in vain
            saved = (self.target(width, context) - spent.target) / spent.passes / self._machine  # which may be below 0
            cost = replace(cost, saved=cost.saved + FOLLOW * (saved - cost.saved))
        self._drafts[source] = cost

    def _observe_pass(self, width: int, ms: float, context: int) -> None:
        ratio = min(max(ms / self.target(width, context), 1 / MOST), MOST)
        seen = self._seen.get(width, _Seen(self._log(width, context), 0.0, context)).at(context)
        own = max(OWN[2] if width == self._latest else OWN[1], OWN[0] / (1 + seen.weight / 2))
        self._latest = width
        log, most = seen.log + own * math.log(ratio), math.log(MOST_APART)
        self._machine *= ratio ** (SHARE - own)
        if width not in self._seen:
            insort(self._widths, width)
        self._seen[width] = _Seen(min(max(log, -most), most), seen.weight + 1, context)

    def _log(self, width: int, context: int) -> float:
        place = bisect_left(self._widths, width)
        high = self._widths[min(place, len(self._widths) - 1)]
        after = self._seen[high].at(context).log
        if high <= width:
            return after
        low = self._widths[place - 1]
        before = self._seen[low].at(context).log
        return before + (after - before) * (width - low) / (high - low)


def _follow(before: float, latest: float) -> float:
    """The average, moved; a pass that took much longer than it should was held up by something else."""
    return before + FOLLOW * (min(latest, MOST * before) - before)
