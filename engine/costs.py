"""What passes cost: measured before the first answer, then followed from live rounds.

Only ratios between costs decide anything, so a machine that slows down as a whole changes no decision, and a width that
was measured wrongly, or grows dearer with the context, is put right by its own rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from engine.config import MAX_DRAFT

Cost = Callable[[int], float]
"""Milliseconds of one pass over so many tokens."""
FOLLOW = 0.4
"""Weight of the latest pass in a moving average."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What was measured: the target's passes by width; one draft token, None where there is no draft model."""

    target: Cost
    draft: float | None = None


FLAT = Costs(lambda width: 1 + 0.01 * width, 0.05)
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
        self._draft = measured.draft or 0.0

    def target(self, width: int) -> float:
        """Milliseconds of a target pass over `width` tokens now."""
        return self._base[width - 1] * self._factor(width)

    @property
    def draft(self) -> float:
        """Milliseconds of one draft token now; 0 where there is no draft model."""
        return self._draft

    def observe(self, drafted: int, by_model: bool, spent: Spent) -> None:
        """Take in a round that verified `drafted` tokens."""
        width = drafted + 1
        if spent.target > 0:
            before = self._factor(width)
            self._factors[width] = before + FOLLOW * (spent.target / self._base[width - 1] - before)
        if by_model and drafted and spent.draft > 0 and self._draft:
            self._draft += FOLLOW * (spent.draft / drafted - self._draft)

    def _factor(self, width: int) -> float:
        if (exact := self._factors.get(width)) is not None:
            return exact
        low = max(w for w in self._factors if w < width)
        high = min((w for w in self._factors if w > width), default=low)
        if high == low:
            return self._factors[low]
        share = (width - low) / (high - low)
        return self._factors[low] * (1 - share) + self._factors[high] * share
