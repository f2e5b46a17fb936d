"""What theory says that drafting gains, from measured costs and measured acceptance.

Leviathan et al. 2023: drafts of g tokens of which each is kept with chance a bring (1 - a^(g+1)) / (1 - a) tokens a
round on average, and a round takes as long as g passes of the draft, c each, and one of the target.  They count that
pass as one over a single token; here it has the measured cost of its width.  Assumed, as there: one chance for all
tokens, whatever stands before, and nothing spent on deciding.  Where the length changes from round to round, as in mode
auto, the lengths are those really drafted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.costs import Surface


@dataclass(frozen=True, slots=True)
class Drafted:
    """One round: how many tokens it drafted, at how many milliseconds each, behind how many."""

    length: int
    draft_ms: float
    context: int


def tokens_per_round(chance: float, length: int) -> float:
    """Kept drafts and the target's own token, on average."""
    if chance >= 1:
        return length + 1.0
    return (1 - chance ** (length + 1)) / (1 - chance)


def predicted(rounds: Iterable[Drafted], chance: float | None, cost: Surface) -> float | None:
    """Expected tokens per millisecond of these rounds to that of single passes; None where there is no round.

    `chance` is the acceptance per test; None, where nothing was drafted, counts as none kept.
    """
    alone = spent = 0.0
    for one in rounds:
        alone += tokens_per_round(chance or 0.0, one.length) * cost(1, one.context)
        spent += cost(one.length + 1, one.context) + one.length * one.draft_ms
    return alone / spent if spent else None
