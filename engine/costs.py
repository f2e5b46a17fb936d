"""What passes cost: measured before the first answer, then followed from live rounds.

Only ratios between costs decide anything, so a machine that slows down as a whole changes no decision, and a width that
was measured wrongly, or grows dearer with the context, is put right by its own rounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from engine.stats import Source

Cost = Callable[[int], float]
"""Milliseconds of one pass over so many tokens."""
Surface = Callable[[int, int], float]
"""Milliseconds of one pass over so many tokens, behind so many that the cache holds."""
FOLLOW = 0.4
"""Weight of the latest pass in a moving average."""
MOST = 3.0
"""So many times what was expected the latest pass counts for at most: shapes may be captured in it, once."""


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


FLAT = Costs(lambda width, _: 1 + 0.01 * width, {"model": DraftCost(0.05), "exit": DraftCost(0.25, 0.0)})
"""A machine on which a wide pass costs hardly more than a narrow one: for models without costs of their own."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of one round."""

    draft: float
    target: float
    passes: int = 0
    """Passes that were made for drafts."""


class LiveCosts:
    """Measured costs times what live rounds make of them: a factor at each width seen, between them on the line."""

    def __init__(self, measured: Costs) -> None:
        self._base = measured.target
        self._factors = {1: 1.0}
        self._drafts = dict(measured.drafts)

    def target(self, width: int, context: int) -> float:
        """Milliseconds of a target pass over `width` tokens behind `context` now."""
        return self._base(width, context) * self._factor(width)

    def at(self, context: int) -> Cost:
        """The same for passes behind `context` tokens."""
        return lambda width: self.target(width, context)

    def draft(self, source: Source) -> DraftCost:
        """What a drafted token of this source costs now; nothing where that was not measured."""
        return self._drafts.get(source, FREE)

    def read(self, source: Source, tokens: int) -> float:
        """Milliseconds in which the model of this source reads so many tokens."""
        return tokens * self.draft(source).ms / 2

    def observe(self, drafted: int, source: Source | None, spent: Spent, context: int) -> None:
        """Take in a round behind `context` tokens that verified `drafted`; `source`: the one that sampled, if any."""
        width = drafted + 1
        cost = self._drafts.get(source) if source else None
        if spent.target > 0 and (cost is None or cost.saved is None):
            self._factors[width] = _follow(self._factor(width), spent.target / self._base(width, context))
        if cost is None or source is None or not spent.passes:
            return
        if spent.draft > 0:
            cost = replace(cost, ms=_follow(cost.ms, spent.draft / spent.passes))
        if spent.target > 0 and cost.saved is not None and drafted:
            saved = (self.target(width, context) - spent.target) / drafted  # which may be below 0
            cost = replace(cost, saved=cost.saved + FOLLOW * (saved - cost.saved))
        self._drafts[source] = cost

    def _factor(self, width: int) -> float:
        if (exact := self._factors.get(width)) is not None:
            return exact
        low = max(w for w in self._factors if w < width)
        high = min((w for w in self._factors if w > width), default=low)
        if high == low:
            return self._factors[low]
        share = (width - low) / (high - low)
        return self._factors[low] * (1 - share) + self._factors[high] * share


def _follow(before: float, latest: float) -> float:
    """The average, moved; a pass that took much longer than it should was held up by something else."""
    return before + FOLLOW * (min(latest, MOST * before) - before)
