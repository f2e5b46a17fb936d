"""Logit bias and the penalties on tokens that were used: the first steps from logits to a distribution.

One invariant: the counts come from the ids handed in and from nothing else, so a drafted token that was refused
leaves no trace.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.config import Sampling
from engine.errors import BadLogits
from engine.model import FloatArray

FLOAT32_MAX = float(np.finfo(np.float32).max)
CHECK_FILE = "its file may be damaged, so verify it or fetch it again"


def adjusted(row: FloatArray, sampling: Sampling, history: Sequence[int], answer: Sequence[int]) -> FloatArray:
    """The row after bias and penalties: a copy where anything changes, else the row itself.

    `row` float32 [size] is only read.  Ids outside it are passed over.  Raises BadLogits where a touched logit is NaN
    or +inf, which a bias could hide.
    """
    repeats = sampling.repeat_penalty != 1 and sampling.repeat_last > 0
    recent = set(history[-sampling.repeat_last :]) if repeats else set()
    counts = Counter(answer) if sampling.frequency_penalty or sampling.presence_penalty else Counter()
    touched = [token for token in {*sampling.logit_bias, *recent, *counts} if 0 <= token < row.size]
    if not touched:
        return row
    values = row[touched]
    if not (values < math.inf).all():
        raise BadLogits(fault(row))
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


def fault(logits: FloatArray) -> str:
    """What is wrong with a row, and what to do."""
    for name, wrong in (("NaN", np.isnan(logits)), ("+inf", np.isposinf(logits))):
        if wrong.any():
            return f"the model gave {name} as the logit of token {int(wrong.argmax())}: {CHECK_FILE}"
    if np.isneginf(logits).all():
        return f"the model gave -inf as the logit of every token: {CHECK_FILE}"
    return "the logit bias forbids every token that the model allows: take some -inf out of it"
