"""What passes cost: measured before the first answer, then followed from live rounds.

Only ratios between costs decide anything, so a machine that slows down as a whole changes no decision, and a width that
was measured wrongly, or grows dearer with the context, is put right by its own rounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from engine.config import MAX_DRAFT
from engine.stats import Source

Cost = Callable[[int], float]
"""Milliseconds of one pass over so many tokens."""
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

    target: Cost
    drafts: Mapping[Source, DraftCost] = field(default_factory=dict)


FLAT = Costs(lambda width: 1 + 0.01 * width, {"model": DraftCost(0.05), "exit": DraftCost(0.25, 0.0)})
"""A machine on which a wide pass costs hardly more than a narrow one: for models without costs of their own."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of one round."""

    draft: float
    target: float


class LiveCosts:
    """Measured costs times what live rounds make of them: a factor at each width seen, between them on the line."""

    def __init__(self, measured: Costs) -> None:
        self._base = [measured.target(width) for width in range(1, MAX_DRAFT + 2)]
        self._factors = {1: 1.0}
        self._drafts = dict(measured.drafts)

    def target(self, width: int) -> float:
        """Milliseconds of a target pass over `width` tokens now."""
        return self._base[width - 1] * self._factor(width)

    def draft(self, source: Source) -> DraftCost:
        """What a drafted token of this source costs now; nothing where that was not measured."""
        return self._drafts.get(source, FREE)

    def observe(self, drafted: int, source: Source | None, spent: Spent) -> None:
        """Take in a round that verified `drafted` tokens of this source."""
        width = drafted + 1
        cost = self._drafts.get(source) if source else None
        if spent.target > 0 and (cost is None or cost.saved is None):
            self._factors[width] = _follow(self._factor(width), spent.target / self._base[width - 1])
        if cost is None or source is None or not drafted:
            return
        if spent.draft > 0:
            cost = replace(cost, ms=_follow(cost.ms, spent.draft / drafted))
        if spent.target > 0 and cost.saved is not None:
            saved = (self.target(width) - spent.target) / drafted  # which may be below 0
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
