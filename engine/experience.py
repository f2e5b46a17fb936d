"""What one pair has taught so far, from answer to answer: acceptance, and what passes cost.

One invariant: it is made of rounds that are over, so it may be kept and taken up again at any border of an answer.
"""

from collections.abc import Mapping

from engine.acceptance import PRIORS, Acceptance, Learned
from engine.costs import FLAT, Cost, Costs, LiveCosts
from engine.gain import needed
from engine.stats import Source

EXPLORING = 0.01
"""Share of the time that may be spent on drafts that are not expected to pay, to learn whether they do."""
PLAIN_AFTER = (32, 256)
"""Rounds with drafts before a plain one is made, at first and at last; twice as many each time it is as expected."""
NEEDS_EVERY = 16
"""Rounds for which it is taken as known what acceptance would pay."""
THOUGHT_OF = 16
"""Draft lengths up to which that is thought through."""
SURPRISE = 0.15
"""A plain round that is off by more than this share makes the next one come sooner again."""
MOST_SAVED = 600.0
"""Milliseconds that are saved up for that at most."""


class Experience:
    """Learned by planners, one after another."""

    def __init__(
        self, costs: Costs = FLAT, priors: Mapping[Source, float] = PRIORS, learned: Learned | None = None
    ) -> None:
        """`priors`: how often sampled tokens were right where that was measured; `learned`: taken up from before."""
        self._priors = priors
        self.acceptance = Acceptance(priors, learned)
        self.costs = LiveCosts(costs)
        self.saved_up = 0.0
        """Milliseconds that may be spent on exploring."""
        self._needs: dict[Source, tuple[int, float | None]] = {}
        self._rounds = 0
        self._drafted, self._plain_after = 0, PLAIN_AFTER[0]

    @property
    def learned(self) -> Learned:
        """What lasts beyond this run."""
        return self.acceptance.learned

    def go_back(self, learned: Learned) -> None:
        """Know no more than this, as if nothing had been answered since; costs stay."""
        self.acceptance = Acceptance(self._priors, learned)

    def needed(self, source: Source, cost: Cost) -> float | None:
        """The least acceptance per test at which this source pays; looked at again now and then."""
        at, known = self._needs.get(source, (-NEEDS_EVERY, None))
        if self._rounds - at >= NEEDS_EVERY:
            known = needed(THOUGHT_OF, cost, self.costs.draft(source))
            self._needs[source] = self._rounds, known
        return known

    @property
    def wants_plain(self) -> bool:
        """Whether a plain round is due, however well drafting does: it keeps the cost of one token known."""
        return self._drafted >= self._plain_after

    def took(self, drafted: int, ms: float, expected: float) -> None:
        """A round with so many drafts is over; it was expected to take `expected` milliseconds."""
        self._rounds += 1
        self.saved_up = min(self.saved_up + EXPLORING * ms, MOST_SAVED)
        if drafted:
            self._drafted += 1
        elif self._drafted:
            surprising = abs(ms - expected) > SURPRISE * expected
            self._plain_after = PLAIN_AFTER[0] if surprising else min(2 * self._plain_after, PLAIN_AFTER[1])
            self._drafted = 0
