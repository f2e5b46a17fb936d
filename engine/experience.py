"""What one pair has taught so far, from answer to answer: acceptance, and what passes cost.

One invariant: it is made of rounds that are over, so it may be kept and taken up again at any border of an answer.
"""

from collections.abc import Mapping

from engine.acceptance import PRIORS, Acceptance, Learned
from engine.costs import FLAT, Costs, LiveCosts
from engine.stats import Source

EXPLORING = 0.01
"""Share of the time that may be spent on drafts that are not expected to pay, to learn whether they do."""
MOST_SAVED = 600.0
"""Milliseconds that are saved up for that at most."""


class Experience:
    """Learned by planners, one after another."""

    def __init__(
        self, costs: Costs = FLAT, priors: Mapping[Source, float] = PRIORS, learned: Learned | None = None
    ) -> None:
        """`priors`: how often sampled tokens were right where that was measured; `learned`: taken up from before."""
        self.acceptance = Acceptance(priors, learned)
        self.costs = LiveCosts(costs)
        self.since_plain = 0
        """Rounds since the last plain one."""
        self.saved_up = 0.0
        """Milliseconds that may be spent on exploring."""

    def took(self, ms: float) -> None:
        """A round is over."""
        self.saved_up = min(self.saved_up + EXPLORING * ms, MOST_SAVED)
