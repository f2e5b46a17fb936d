"""What drafting is worth, by theory: expected tokens and milliseconds of a round.  Pure functions.

A draft of k tokens, the i-th kept with chance c_i if those before it were, brings 1 + c_1 + c_1 c_2 + ... tokens for
one pass over k + 1 and k drafted ones.  (Leviathan et al. 2023, with measured costs in place of constant ones.)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.costs import Cost, DraftCost

MARGIN = 1.05
"""An expected gain below this is not worth the risk of a wrong estimate."""
UNLIKELY = 0.02
"""Drafts are not thought through beyond the token that is kept this rarely."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a round has drafted so far; by default nothing."""

    drafted: int = 0
    likely: float = 1.0
    """The chance that all of it is kept."""
    expected: float = 1.0
    """Tokens that the round is expected to bring with it."""
    ms: float = 0.0
    """Milliseconds beside the verifying pass."""


NOTHING = Begun()


def rates(chances: Iterable[float], cost: Cost, draft: DraftCost, begun: Begun = NOTHING) -> Iterator[float]:
    """Tokens per millisecond of a round that drafts 1, 2, ... more tokens, as far as they are likely to be kept."""
    likely, expected = begun.likely, begun.expected
    for k, chance in enumerate(chances, start=1):
        likely *= chance
        expected += likely
        yield expected / (cost(begun.drafted + 1 + k) + begun.ms + k * draft.net)
        if likely < UNLIKELY:
            break


def gains(chances: Iterable[float], cost: Cost, draft: DraftCost) -> list[float]:
    """Tokens per millisecond relative to not drafting, for drafts of 1, 2, ... tokens, as far as they are likely."""
    plain = cost(1)
    return [rate * plain for rate in rates(chances, cost, draft)]


def needed(length: int, cost: Cost, draft: DraftCost) -> float | None:
    """The least acceptance per test at which some draft up to `length` pays; None: not even a perfect one does."""
    if max(gains([1.0] * length, cost, draft), default=0.0) < 1:
        return None
    low, high = 0, 100
    while high - low > 1:
        middle = (low + high) // 2
        pays = max(gains([middle / 100] * length, cost, draft)) >= 1
        low, high = (low, middle) if pays else (middle, high)
    return high / 100
