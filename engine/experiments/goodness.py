"""Do counts fit a distribution?  Pearson's chi-square, and the share of drafts that a lossless rule keeps.

Pure functions.  The invariant: no cell that is compared is expected less than `RARE` times, since the p-value holds for
such cells alone; and a token that the distribution rules out is never pooled away, one of them settles the matter.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.config import Rule
from engine.sampling import Distribution

RARE = 10
"""Cells expected less often than this are counted as one."""
_ENOUGH = 1e-16
_TINY = 1e-300


def upper_gamma(a: float, x: float) -> float:
    """The regularized upper incomplete gamma function Q(a, x): by its series below the mean, else by its fraction."""
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        return max(0.0, 1.0 - scale * _series(a, x))
    return min(1.0, scale / _fraction(a, x))


def _series(a: float, x: float) -> float:
    """The sum over n of x^n / (a (a+1) ... (a+n))."""
    term = total = 1.0 / a
    n = 0
    while term > total * _ENOUGH:
        n += 1
        term *= x / (a + n)
        total += term
    return total


def _fraction(a: float, x: float) -> float:
    """b0 + a1 / (b1 + a2 / (b2 + ...)) with bn = x + 2n + 1 - a and an = n (a - n), from the front (Lentz 1976)."""
    value = c = x + 1 - a or _TINY
    d, n, change = 0.0, 0, 0.0
    while abs(change - 1) > _ENOUGH * 10:
        n += 1
        numerator, b = n * (a - n), x + 2 * n + 1 - a
        d = 1 / (b + numerator * d or _TINY)
        c = b + numerator / c or _TINY
        change = c * d
        value *= change
    return value


@dataclass(frozen=True, slots=True)
class Fit:
    """How far counts are from a distribution; the fits of independent counts add up."""

    statistic: float = 0.0
    freedom: int = 0
    impossible: int = 0
    """Counts where the distribution has none."""

    def __add__(self, other: "Fit") -> "Fit":
        return Fit(self.statistic + other.statistic, self.freedom + other.freedom, self.impossible + other.impossible)

    @property
    def p_value(self) -> float | None:
        """The chance of counts this far off or farther; 0 where an impossible one was seen, None where none compare."""
        if self.impossible:
            return 0.0
        return upper_gamma(self.freedom / 2, self.statistic / 2) if self.freedom else None


def fit(counts: Mapping[int, int], expected: Distribution) -> Fit:
    """Compare how often each token came with how often it should have."""
    total = sum(counts.values())
    impossible = sum(count for token, count in counts.items() if expected.prob(token) <= 0)
    wanted = expected.probs * total
    common = np.flatnonzero(wanted >= RARE)
    seen = np.array([counts.get(expected.token(int(place)), 0) for place in common], np.float64)
    cells = wanted[common]
    rest_wanted, rest_seen = max(0.0, total - float(cells.sum())), total - impossible - float(seen.sum())
    if rest_wanted >= RARE or not cells.size:
        cells, seen = np.append(cells, rest_wanted), np.append(seen, rest_seen)
    else:
        least = int(cells.argmin())
        cells[least] += rest_wanted
        seen[least] += rest_seen
    if cells.size < 2:
        return Fit(impossible=impossible)
    return Fit(float(((seen - cells) ** 2 / cells).sum()), cells.size - 1, impossible)


def fit_share(hits: int, total: int, share: float) -> Fit:
    """Compare a count of hits with the chance of each."""
    chance = min(1.0, max(0.0, share))
    expected = Distribution(np.array([1 - chance, chance]), None)
    return fit(Counter({0: total - hits, 1: hits}), expected)


def kept_share(rule: Rule, target: Distribution, draft: Distribution) -> float:
    """How often a rule keeps a token drawn from `draft` (DESIGN 3.3)."""
    ours, theirs = _aligned(target, draft)
    return float(np.minimum(ours, theirs).sum()) if rule == "rejection" else _agreement(ours, theirs)


def redraw_bias(target: Distribution, draft: Distribution) -> float:
    """How much a rule shows that draws from the target once more after a refusal: its chi-square, by answer.

    Such a rule emits min(p, q) + (1 - kept) p in place of p.  0 where draft and target agree or have nothing in
    common, and where the target is certain: there no wrong rule of this kind shows.
    """
    ours, theirs = _aligned(target, draft)
    ours, theirs = ours[ours > 0], theirs[ours > 0]
    least = np.minimum(ours, theirs)
    kept = float(least.sum())
    return float(((least - kept * ours) ** 2 / ours).sum()) + kept**2 * (1.0 - float(ours.sum()))


def _aligned(target: Distribution, draft: Distribution) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The probabilities of the tokens that both allow, float64 [n] each; what one rules out is never kept."""
    ours, theirs = (np.arange(row.probs.size) if row.ids is None else row.ids for row in (target, draft))
    _, ours, theirs = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return target.probs[ours], draft.probs[theirs]


def _agreement(target: npt.NDArray[np.float64], draft: npt.NDArray[np.float64]) -> float:
    """The sum over x of 1 / sum over y of max(p_y / p_x, q_y / q_x), given the tokens that both rows allow.

    Sorted by p / q, the first ratio is the larger one from x on, the second before it; a token of one row alone
    counts in that row's sum, which it lacks to 1.
    """
    both = (target > 0) & (draft > 0)
    p, q = target[both], draft[both]
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    p, q = p[order], q[order]
    from_x = 1.0 - (np.cumsum(p) - p)
    before_x = np.cumsum(q) - q + (1.0 - q.sum())
    return float((1.0 / (from_x / p + before_x / q)).sum())
