"""Logit bias and the penalties on tokens that were used: the first steps from logits to a distribution.

One invariant: the counts come from the ids handed in and from nothing else, so a drafted token that was refused
leaves no trace.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.config import Sampling
from engine.errors import BadLogits
from engine.model import FloatArray

FLOAT32_MAX = float(np.finfo(np.float32).max)
Values = npt.NDArray[np.float64]
CHECK_FILE = "its file may be damaged, so verify it or fetch it again"


@dataclass(frozen=True, slots=True)
class Used:
    """The ids that penalties look at, as one position sees them."""

    recent: Set[int] = frozenset()
    """What the repetition penalty touches: the last tokens of prompt and answer."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """How often the answer has used each token, for frequency and presence."""

    @classmethod
    def of(cls, sampling: Sampling, history: Sequence[int], answer: Sequence[int]) -> "Used":
        """What of prompt and answer (`history`), and of the answer alone, these settings look at."""
        recent = set(history[-sampling.repeat_last :]) if looks_back(sampling) else frozenset()
        return cls(recent, Counter(answer) if counts_answer(sampling) else {})


def looks_back(sampling: Sampling) -> bool:
    """Whether the repetition penalty does anything."""
    return sampling.repeat_penalty != 1 and sampling.repeat_last > 0


def counts_answer(sampling: Sampling) -> bool:
    """Whether the frequency or the presence penalty does anything."""
    return sampling.frequency_penalty != 0 or sampling.presence_penalty != 0


def adjusted(row: FloatArray, sampling: Sampling, used: Used) -> FloatArray:
    """The row after bias and penalties: a copy where anything changes, else the row itself.

    `row` float32 [size] is only read.  Ids outside it are passed over.  Raises BadLogits where a touched logit is NaN
    or +inf, which a bias could hide.
    """
    touched = [token for token in {*sampling.logit_bias, *used.recent, *used.counts} if 0 <= token < row.size]
    if not touched:
        return row
    values = row[touched].astype(np.float64)
    if not (values < math.inf).all():
        raise BadLogits(fault(row))
    out = row.copy()
    out[touched] = _penalized(values, touched, sampling, used)
    return out


def _penalized(values: Values, tokens: Sequence[int], sampling: Sampling, used: Used) -> Values:
    """Logits of `tokens` after bias, repetition, frequency and presence, in this order; float64 [len(tokens)].

    What was finite stays within float32, so that no finite setting makes a token certain or impossible by overflow.
    """
    values = values + np.array([sampling.logit_bias.get(token, 0.0) for token in tokens])
    possible = values > -math.inf
    recent = np.array([token in used.recent for token in tokens])
    counts = np.array([used.counts.get(token, 0) for token in tokens])
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(values > 0, values / sampling.repeat_penalty, values * sampling.repeat_penalty)
        values = np.where(recent, _within(scaled), values)
        taken = _within(counts * sampling.frequency_penalty + sampling.presence_penalty)
        values = np.where(counts > 0, values - taken, values)
    return np.where(possible, _within(values), -math.inf)


def _within(values: Values) -> Values:
    """The values within float32."""
    return np.clip(values, -FLOAT32_MAX, FLOAT32_MAX)


def fault(logits: FloatArray) -> str:
    """What is wrong with a row, and what to do."""
    for name, wrong in (("NaN", np.isnan(logits)), ("+inf", np.isposinf(logits))):
        if wrong.any():
            return f"the model gave {name} as the logit of token {int(wrong.argmax())}: {CHECK_FILE}"
    if np.isneginf(logits).all():
        return f"the model gave -inf as the logit of every token: {CHECK_FILE}"
    return "the logit bias forbids every token that the model allows: take some -inf out of it"
