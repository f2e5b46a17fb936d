"""Logits to a distribution over ids, filter by filter.

One invariant: a distribution is a function of its row of logits, the settings and the history alone, bit for bit;
no chance enters here, and draft and target rows go the same way.

The order is logit bias; penalties; temperature; top-k (ties by lowest id); top-p on the renormalized rest (the token
that crosses p stays); min-p relative to the largest probability then; renormalize.  Temperature 0 is the one-hot row
of the largest logit.  Rows are wide (150,000 tokens) and passes over them cost, so the filters look at as little as
they can: the maxima of interleaved blocks give a threshold that no token of the top k falls below.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine import penalties
from engine.config import Sampling
from engine.errors import BadLogits
from engine.model import FloatArray, IntArray
from engine.penalties import Used

Probs = npt.NDArray[np.float64]

BLOCKS = 64
"""Elements behind one block maximum."""
FIRST_NUCLEUS = 512
"""Tokens in which top-p is looked for before the whole row is sorted."""
STRETCH = 512
"""Elements that a draw steps over at once."""
PIECE = 8192
"""Elements of a sorted row that top-p cumulates at once."""
ROUNDING = 1e-9
"""Far above what the order of a sum can change in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Probabilities over token ids: dense where `ids` is None, else those of the ids listed; the rest has mass 0."""

    probs: Probs
    """[n], sums to 1."""
    ids: IntArray | None
    """[n] ascending, or None: probs[i] belongs to id i."""
    lead: float = math.inf
    """Temperature 0: by how much the first logit, after bias and penalties, is ahead of the second."""

    def prob(self, token: int) -> float:
        """The probability of one id; 0 for any id that is not here, however wrong."""
        if self.ids is None:
            return float(self.probs[token]) if 0 <= token < self.probs.size else 0.0
        place = int(np.searchsorted(self.ids, token))
        return float(self.probs[place]) if place < self.ids.size and self.ids[place] == token else 0.0

    def draw(self, u: float) -> int:
        """The token at `u` in [0, 1) of the cumulated mass; one of probability 0 is never drawn, even by rounding."""
        return self.token(_inverse(self.probs, u))

    @property
    def top(self) -> int:
        """The most likely id; the lowest of several."""
        return self.token(int(self.probs.argmax()))

    def token(self, index: int) -> int:
        """The id whose probability stands at `index`."""
        return index if self.ids is None else int(self.ids[index])


def one_hot(token: int, lead: float = math.inf) -> Distribution:
    """All mass on one id, that was ahead by `lead`."""
    return Distribution(np.ones(1), np.array([token], dtype=np.int64), lead)


def distribution(
    logits: FloatArray, size: int, sampling: Sampling, history: Sequence[int], answer: Sequence[int]
) -> Distribution:
    """The distribution of the next token after `history` (prompt and answer); `answer` is the answer alone.

    As `after`, for ids that nobody has counted yet.
    """
    return after(logits, size, sampling, Used.of(sampling, history, answer))


def after(logits: FloatArray, size: int, sampling: Sampling, used: Used) -> Distribution:
    """The distribution of the next token, given what the answer has used.

    `logits` float32 [vocab] is only read; ids from `size` on are padding and get mass 0.  Raises BadLogits for NaN,
    +inf, or a row in which nothing is possible.
    """
    if not 0 < size <= logits.size:
        raise ValueError(f"{size} tokens do not fit a row of {logits.size} logits")
    row = penalties.adjusted(logits[:size], sampling, used)
    maxima = _maxima(row)
    peak = float(maxima.max())
    if not math.isfinite(peak):
        raise BadLogits(penalties.fault(logits[:size]))
    if sampling.greedy:
        return _greedy(row, maxima)
    ids, values = None, row
    if 0 < sampling.top_k < size:
        ids = _largest(row, sampling.top_k, maxima)
        values = row[ids]
    scale = _Scale(peak, sampling.temperature)
    weights = scale.weights(values)
    if sampling.top_p < 1:
        goal = sampling.top_p * float(weights.sum())
        ids, weights = _kept(ids, weights, _nucleus(values, goal, scale, maxima))
    if ids is not None or sampling.min_p > 0:
        # The largest weight is 1, so min-p compares with the weights as they are.
        ids, weights = _kept(ids, weights, np.flatnonzero((weights >= sampling.min_p) & (weights > 0)))
    weights /= weights.sum()
    return Distribution(weights, ids)


def _greedy(row: FloatArray, maxima: FloatArray) -> Distribution:
    """The one-hot row of the largest logit; the lowest id of equal ones."""
    if row.size == 1:
        return one_hot(0)
    best = _largest(row, 2, maxima)  # ascending: of two equal ones the lower id comes first
    first, second = best if row[best[0]] >= row[best[1]] else best[::-1]
    return one_hot(int(first), float(row[first]) - float(row[second]))


def _kept(ids: IntArray | None, weights: Probs, kept: IntArray) -> tuple[IntArray, Probs]:
    """What stands at the indices `kept`."""
    return kept if ids is None else ids[kept], weights[kept]


@dataclass(frozen=True, slots=True)
class _Scale:
    """From logits to weights: exp((logit - peak) / temperature), float64; the largest is exactly 1."""

    peak: float
    temperature: float

    def weights(self, values: FloatArray) -> Probs:
        out: Probs = np.subtract(values, self.peak, dtype=np.float64)
        if self.temperature != 1:
            with np.errstate(over="ignore"):
                out /= self.temperature
        np.exp(out, out=out)
        return out


def _maxima(row: FloatArray) -> FloatArray:
    """Maxima of interleaved blocks, and the few elements that fill no block; NaN and +inf show up here."""
    whole = row.size // BLOCKS * BLOCKS
    return np.concatenate((row[:whole].reshape(BLOCKS, -1).max(axis=0), row[whole:]))


def _largest(row: FloatArray, count: int, maxima: FloatArray) -> IntArray:
    """The indices, ascending, of the `count` largest elements, the lowest ones among equal elements."""
    if count > maxima.size:
        return _from(row, count, np.partition(row, row.size - count)[row.size - count])
    # As many blocks as are asked for reach this threshold, so no element below it is among the largest.
    some = np.flatnonzero(row >= np.partition(maxima, maxima.size - count)[maxima.size - count])
    values = row[some]
    kept: IntArray = some[_from(values, count, np.partition(values, values.size - count)[values.size - count])]
    return kept


def _from(values: FloatArray, count: int, least: float) -> IntArray:
    """The indices of the `count` largest values, the lowest among equal ones; `least` is the smallest value."""
    kept = np.flatnonzero(values >= least)
    extra = kept.size - count
    if extra:
        kept = np.delete(kept, np.flatnonzero(values[kept] == least)[-extra:])
    return kept


def _nucleus(values: FloatArray, goal: float, scale: _Scale, maxima: FloatArray) -> IntArray:
    """The indices of the largest values until their weights reach the goal, the one that crosses it included."""
    if values.size > FIRST_NUCLEUS:
        # Where a few tokens hold the mass, the rest is never sorted.
        some = _largest(values, FIRST_NUCLEUS, maxima)
        if float(scale.weights(values[some]).sum()) * (1 - ROUNDING) > goal:
            return some[_most(values[some], goal, scale)]
    return _most(values, goal, scale)


def _most(values: FloatArray, goal: float, scale: _Scale) -> IntArray:
    ordered = np.sort(values)[::-1]
    mass = 0.0
    for start in range(0, ordered.size, PIECE):
        weights = scale.weights(ordered[start : start + PIECE])
        weights[0] += mass
        cumulated = np.cumsum(weights)
        mass = float(cumulated[-1])
        if mass >= goal:
            last = start + int(np.searchsorted(cumulated, goal))
            return _from(values, last + 1, ordered[last])
    return np.arange(values.size)


def _inverse(probs: Probs, u: float) -> int:
    """The index at u of the cumulated mass; whole stretches are stepped over, since cumulating is slow."""
    whole = probs.size // STRETCH * STRETCH
    if whole == 0:
        return _place(np.cumsum(probs), u)
    sums = np.append(probs[:whole].reshape(-1, STRETCH).sum(axis=1), probs[whole:].sum())
    mass = np.cumsum(sums)
    stretch = _place(mass, u)
    start = stretch * STRETCH
    inside = u * mass[-1] - (mass[stretch] - sums[stretch])
    return start + _place(np.cumsum(probs[start : start + STRETCH]), max(0.0, inside / sums[stretch]))


def _place(mass: Probs, u: float) -> int:
    """The first index whose cumulated mass exceeds u of the whole; the last with any mass where rounding finds none."""
    index = int(np.searchsorted(mass, u * mass[-1], side="right"))
    return index if index < mass.size else int(np.searchsorted(mass, mass[-1]))
