"""Logits to a distribution over ids, filter by filter.

One invariant: a distribution is a function of its row of logits, the settings and the history alone, bit for bit;
no chance enters here, and draft and target rows go the same way.

The order is logit bias; penalties; temperature; top-k (ties by lowest id); top-p on the renormalized rest (the token
that crosses p stays); min-p relative to the largest probability then; renormalize.  Temperature 0 is the one-hot row
of the largest logit.  Rows are wide (150,000 tokens) and passes over them cost, so the filters look at as little as
they can: the maxima of interleaved blocks give a threshold that no token of the top k falls below.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.config import Sampling
from engine.errors import BadLogits
from engine.model import FloatArray, IntArray

BLOCKS = 64
"""Elements behind one block maximum."""
FIRST_NUCLEUS = 512
"""Tokens in which top-p is looked for before the whole row is sorted."""
FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Probabilities over token ids: dense where `ids` is None, else those of the ids listed; the rest has mass 0."""

    probs: npt.NDArray[np.float64]
    """[n], sums to 1."""
    ids: IntArray | None
    """[n] ascending, or None: probs[i] belongs to id i."""

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


def one_hot(token: int) -> Distribution:
    """All mass on one id."""
    return Distribution(np.ones(1), np.array([token], dtype=np.int64))


def distribution(
    logits: FloatArray, size: int, sampling: Sampling, history: Sequence[int], answer: Sequence[int]
) -> Distribution:
    """The distribution of the next token.

    `logits` float32 [vocab] is only read; ids from `size` on are padding and get mass 0.  `history` is prompt and
    answer (the repetition penalty looks at its end), `answer` the answer alone (frequency and presence).  Raises
    BadLogits for NaN, +inf, or a row in which nothing is possible.
    """
    if not 0 < size <= logits.size:
        raise ValueError(f"{size} tokens do not fit a row of {logits.size} logits")
    row = _adjusted(logits[:size], sampling, history, answer)
    maxima = _maxima(row)
    peak = float(maxima.max())
    if not math.isfinite(peak):
        raise BadLogits(_fault(logits[:size]))
    if sampling.greedy:
        return one_hot(int(row.argmax()))
    top_k, top_p = sampling.top_k, sampling.top_p
    ids, values = (None, row) if not 0 < top_k < size else _largest(row, top_k, maxima)
    weights = _weights(values, peak, sampling.temperature)
    if top_p < 1:
        ids, values = _nucleus(ids, values, weights, sampling, maxima)
        weights = _weights(values, peak, sampling.temperature)
    return _normalized(ids, weights, sampling.min_p)


def _normalized(ids: IntArray | None, weights: npt.NDArray[np.float64], min_p: float) -> Distribution:
    """The last two steps; the largest weight is 1, so min-p compares with the weights as they are."""
    if ids is not None or min_p > 0:
        kept = np.flatnonzero((weights >= min_p) & (weights > 0))
        if kept.size < weights.size:
            ids, weights = kept if ids is None else ids[kept], weights[kept]
    return Distribution(weights / weights.sum(), ids)


def _weights(values: FloatArray, peak: float, temperature: float) -> npt.NDArray[np.float64]:
    """exp((value - peak) / temperature), float64: the largest is exactly 1, so nothing overflows."""
    out: npt.NDArray[np.float64] = np.subtract(values, peak, dtype=np.float64)
    if temperature != 1:
        with np.errstate(over="ignore"):
            out /= temperature
    np.exp(out, out=out)
    return out


def _adjusted(row: FloatArray, sampling: Sampling, history: Sequence[int], answer: Sequence[int]) -> FloatArray:
    """The row after bias and penalties: a copy where anything changes."""
    changed: dict[int, float] = {}
    recent = history[-sampling.repeat_last :] if sampling.repeat_last and sampling.repeat_penalty != 1 else ()
    counted = answer if sampling.frequency_penalty or sampling.presence_penalty else ()
    _bias(changed, row, sampling.logit_bias)
    _repetition(changed, row, recent, sampling.repeat_penalty)
    _frequency(changed, row, counted, sampling)
    if not changed:
        return row
    ids = np.fromiter(changed.keys(), np.int64, len(changed))
    values = np.fromiter(changed.values(), np.float64, len(changed))
    if np.isnan(row[ids]).any() or (row[ids] == math.inf).any():
        raise BadLogits(_fault(row))
    finite = np.where(np.isneginf(values), values, np.clip(values, -FLOAT32_MAX, FLOAT32_MAX))
    out = row.copy()
    out[ids] = finite
    return out


def _bias(changed: dict[int, float], row: FloatArray, bias: Mapping[int, float]) -> None:
    for token, amount in bias.items():
        if token < row.size:
            changed[token] = float(row[token]) + amount


def _repetition(changed: dict[int, float], row: FloatArray, recent: Sequence[int], penalty: float) -> None:
    for token in set(recent):
        if 0 <= token < row.size:
            value = changed.get(token, float(row[token]))
            changed[token] = value / penalty if value > 0 else value * penalty


def _frequency(changed: dict[int, float], row: FloatArray, answer: Sequence[int], sampling: Sampling) -> None:
    for token, count in Counter(answer).items():
        if 0 <= token < row.size:
            value = changed.get(token, float(row[token]))
            changed[token] = value - count * sampling.frequency_penalty - sampling.presence_penalty


def _maxima(row: FloatArray) -> FloatArray:
    """Maxima of interleaved blocks, and the few elements that fill no block; NaN and +inf show up here."""
    whole = row.size // BLOCKS * BLOCKS
    return np.concatenate((row[:whole].reshape(BLOCKS, -1).max(axis=0), row[whole:]))


def _largest(row: FloatArray, count: int, maxima: FloatArray) -> tuple[IntArray, FloatArray]:
    """The `count` largest elements (ties by lowest id): their ids, ascending, and values."""
    if count <= maxima.size:
        ids = np.flatnonzero(row >= np.partition(maxima, maxima.size - count)[maxima.size - count])
        values = row[ids]
    else:
        ids, values = np.arange(row.size), row
    return _cut(ids, values, count)


def _cut(ids: IntArray, values: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    """Keep the `count` largest values, the lowest ids among equal ones."""
    surplus = values.size - count
    if surplus <= 0:
        return ids, values
    least = np.partition(values, surplus)[surplus]
    keep = values >= least
    extra = int(np.count_nonzero(keep)) - count
    if extra:
        keep[np.flatnonzero(values == least)[-extra:]] = False
    return ids[keep], values[keep]


def _nucleus(
    ids: IntArray | None,
    values: FloatArray,
    weights: npt.NDArray[np.float64],
    sampling: Sampling,
    maxima: FloatArray,
) -> tuple[IntArray, FloatArray]:
    """The most likely tokens up to the mass top-p, the one that crosses it included."""
    goal = sampling.top_p * float(weights.sum())
    peak = float(maxima.max())
    if ids is None and values.size > FIRST_NUCLEUS:
        some, their = _largest(values, FIRST_NUCLEUS, maxima)
        count = _crossing(their, peak, sampling.temperature, goal)
        if count <= some.size:
            return _cut(some, their, count)
    count = _crossing(values, peak, sampling.temperature, goal)
    return _cut(np.arange(values.size) if ids is None else ids, values, count)


def _crossing(values: FloatArray, peak: float, temperature: float, goal: float) -> int:
    """How many of the values, largest first, it takes to reach the goal; one more than there are if they do not."""
    mass = np.cumsum(_weights(np.sort(values)[::-1], peak, temperature))
    return int(np.searchsorted(mass, goal)) + 1


def _inverse(probs: npt.NDArray[np.float64], u: float) -> int:
    """The first index whose cumulated mass exceeds u of the whole; the last with any mass where rounding finds none."""
    mass = np.cumsum(probs)
    index = int(np.searchsorted(mass, u * mass[-1], side="right"))
    return index if index < mass.size else int(np.searchsorted(mass, mass[-1]))
