"""What drafting is worth, by theory: expected tokens and milliseconds of a round.  Pure functions.

A draft of k tokens, the i-th kept with chance c_i if those before it were, brings 1 + c_1 + c_1 c_2 + ... tokens for
one pass over k + 1 and k drafted ones.  (Leviathan et al. 2023, with measured costs in place of constant ones.)
"""

from collections.abc import Iterable

from engine.costs import Cost, DraftCost

MARGIN = 1.05
"""An expected gain below this is not worth the risk of a wrong estimate."""
UNLIKELY = 0.02
"""Drafts are not thought through beyond the token that is kept this rarely."""


def gains(chances: Iterable[float], cost: Cost, draft: DraftCost) -> list[float]:
    """Tokens per millisecond relative to not drafting, for drafts of 1, 2, ... tokens, as far as they are likely."""
    expected = likely = 1.0
    plain = cost(1)
    out = []
    for k, chance in enumerate(chances, start=1):
        likely *= chance
        expected += likely
        out.append(expected * plain / (cost(k + 1) + k * draft.net))
        if likely < UNLIKELY:
            break
    return out


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
