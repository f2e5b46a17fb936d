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
from collections.abc import Sequence
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
STRETCH = 512
"""Elements that a draw steps over at once."""
FLOAT32_MAX = float(np.finfo(np.float32).max)
CHECK_FILE = "its file may be damaged, so verify it or fetch it again"


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
    repeats = sampling.repeat_penalty != 1 and sampling.repeat_last > 0
    recent = set(history[-sampling.repeat_last :]) if repeats else set()
    counts = Counter(answer) if sampling.frequency_penalty or sampling.presence_penalty else Counter()
    touched = [token for token in {*sampling.logit_bias, *recent, *counts} if 0 <= token < row.size]
    if not touched:
        return row
    values = row[touched]
    if not (values < math.inf).all():
        raise BadLogits(_fault(row))
    out = row.copy()
    out[touched] = [
        _penalized(float(value), sampling.logit_bias.get(token, 0.0), token in recent, counts[token], sampling)
        for token, value in zip(touched, values, strict=True)
    ]
    return out


def _penalized(value: float, bias: float, recent: bool, count: int, sampling: Sampling) -> float:
    """One logit after its bias and penalties, in this order: bias, repetition, frequency and presence."""
    if -math.inf in (value, bias):
        return -math.inf
    value += bias
    if recent:
        value = _finite(value / sampling.repeat_penalty if value > 0 else value * sampling.repeat_penalty)
    if count:
        value -= _finite(count * sampling.frequency_penalty + sampling.presence_penalty)
    return _finite(value)


def _finite(value: float) -> float:
    """The value within float32, so that no finite setting makes a token certain or impossible by overflow."""
    return min(max(value, -FLOAT32_MAX), FLOAT32_MAX)


def _fault(logits: FloatArray) -> str:
    """What is wrong with a row, and what to do."""
    for name, wrong in (("NaN", np.isnan(logits)), ("+inf", np.isposinf(logits))):
        if wrong.any():
            return f"the model gave {name} as the logit of token {int(wrong.argmax())}: {CHECK_FILE}"
    if np.isneginf(logits).all():
        return f"the model gave -inf as the logit of every token: {CHECK_FILE}"
    return "the logit bias forbids every token that the model allows: take some -inf out of it"


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


def _place(mass: npt.NDArray[np.float64], u: float) -> int:
    """The first index whose cumulated mass exceeds u of the whole; the last with any mass where rounding finds none."""
    index = int(np.searchsorted(mass, u * mass[-1], side="right"))
    return index if index < mass.size else int(np.searchsorted(mass, mass[-1]))
