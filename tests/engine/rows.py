"""Rows for tests of sampling: strategies, and the filter chain once more, written to be obvious and not fast."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import structs

from engine.config import Sampling
from engine.model import FloatArray
from engine.sampling import Distribution

NEAR = 1e-12
steady = settings(deadline=None)
"""No test fails for a machine that is busy."""
PLAIN = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def plain(**changes: Any) -> Sampling:
    """No filter but these."""
    return structs.replace(PLAIN, **changes)


class Borderline(Exception):
    """A token stands so near a filter's border that rounding decides."""


def dense(distribution: Distribution, size: int) -> FloatArray:
    """The probabilities of the ids 0 to size - 1."""
    out = np.zeros(size)
    ids = np.arange(distribution.probs.size) if distribution.ids is None else distribution.ids
    out[ids] = distribution.probs
    return out


def reference(
    logits: Sequence[float], size: int, sampling: Sampling, history: Sequence[int] = (), answer: Sequence[int] = ()
) -> list[float]:
    """Probabilities of the ids 0 to size - 1, by a full sort in plain Python."""
    row = [adjusted(float(logits[token]), token, sampling, history, answer) for token in range(size)]
    order = sorted(range(size), key=lambda token: (-row[token], token))
    peak = row[order[0]]
    if sampling.temperature == 0:
        return [1.0 if token == order[0] else 0.0 for token in range(size)]
    weight = [math.exp((value - peak) / sampling.temperature) for value in row]
    kept = order[: sampling.top_k] if sampling.top_k else order
    if sampling.top_p < 1:
        kept = crossing(kept, weight, sampling.top_p)
    for token in kept:
        if weight[token] < 1 and abs(weight[token] - sampling.min_p) < NEAR * sampling.min_p:
            raise Borderline
    kept = [token for token in kept if weight[token] >= sampling.min_p]
    total = math.fsum(weight[token] for token in kept)
    chosen = set(kept)
    return [weight[token] / total if token in chosen else 0.0 for token in range(size)]


def adjusted(value: float, token: int, sampling: Sampling, history: Sequence[int], answer: Sequence[int]) -> float:
    start = value
    value += sampling.logit_bias.get(token, 0.0)
    recent = history[len(history) - min(sampling.repeat_last, len(history)) :]
    if token in recent:
        value = value / sampling.repeat_penalty if value > 0 else value * sampling.repeat_penalty
    count = list(answer).count(token)
    if count:
        value -= count * sampling.frequency_penalty + sampling.presence_penalty
    return start if value == start else float(np.float32(value))


def crossing(order: Sequence[int], weight: Sequence[float], top_p: float) -> list[int]:
    total = math.fsum(weight[token] for token in order)
    for count, mass in enumerate(accumulate(weight[token] for token in order), 1):
        if 0 < abs(mass / total - top_p) < NEAR:
            raise Borderline
        if mass / total >= top_p:
            return list(order[:count])
    return list(order)


def logit_rows(least: int = 1, most: int = 24) -> st.SearchStrategy[FloatArray]:
    """Float32 rows with ties and impossible tokens, at least one token possible."""
    values = st.one_of(
        st.sampled_from([-math.inf, -3.0, 0.0, 1.0, 2.0]),
        st.floats(-12, 12, width=32),
        st.floats(-(2.0**127), 2.0**127, width=32),
    )
    lists = st.lists(values, min_size=least, max_size=most).filter(lambda row: max(row) > -math.inf)
    return lists.map(lambda row: np.array(row, dtype=np.float32))


def samplings(penalties: bool = False) -> st.SearchStrategy[Sampling]:
    """Every chain of filters, with penalties or without."""
    tokens = st.integers(0, 9)
    return st.builds(
        Sampling,
        temperature=st.sampled_from([0.0, 0.05, 0.7, 1.0, 1.5, 40.0]),
        top_k=st.sampled_from([0, 1, 2, 3, 5, 40]),
        top_p=st.sampled_from([1e-9, 0.3, 0.5, 0.9, 0.95, 1.0]),
        min_p=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
        repeat_penalty=st.sampled_from([0.5, 1.0, 1.3]) if penalties else st.just(1.0),
        repeat_last=st.sampled_from([0, 1, 3, 64]),
        frequency_penalty=st.sampled_from([-1.0, 0.0, 2.0]) if penalties else st.just(0.0),
        presence_penalty=st.sampled_from([-0.5, 0.0, 1.5]) if penalties else st.just(0.0),
        logit_bias=st.dictionaries(tokens, st.sampled_from([-math.inf, -2.0, 5.5, 100.0]), max_size=3)
        if penalties
        else st.just({}),
    )
