"""Narrow rows: of each row the largest logits and some named ones are enough for its distribution.

A model on a device of its own need not send whole rows (16 x 152,000 float32) to the host.  One invariant: what `after`
makes of candidates is, bit for bit, what engine.sampling makes of the whole row; in any doubt it takes the whole row.

Why it holds: bias and penalties touch few ids, and an untouched token among the k largest after them is among the k
largest untouched ones before them.  So the touched ids and as many others above the border of the selection hold the
whole top k, in the order of their ids, which is all that the filters look at.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from msgspec import structs

from engine.config import Sampling
from engine.model import FloatArray, IntArray
from engine.penalties import Used
from engine.sampling import Distribution
from engine.sampling import after as after_whole

Value = TypeVar("Value", int, float)

SPARE = 64
"""Logits asked for beyond those needed: equal ones at the border call for the whole row, and in 16 bits many are."""
MOST = 4096
"""Logits of one row from which on whole rows are taken."""


@dataclass(frozen=True, slots=True)
class Want:
    """What is asked of each row of a pass."""

    count: int
    """So many of its largest logits."""
    named: tuple[int, ...]
    """And the logits of these real ids."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The largest logits of a row and the named ones; valid as long as the row's pass is the model's last call."""

    ids: IntArray
    """[n] ascending, real ids alone."""
    logits: FloatArray
    """float32 [n]."""
    border: float
    """The least logit selected for its size: none that is missing is above it (NaN is above all)."""
    whole: Callable[[], FloatArray]
    """Fetches the whole row; float32 [columns]."""
    mass: Callable[[], float] | None = None
    """Fetches the logarithm of the sum of exp over all real logits; None: the whole row tells."""

    @classmethod
    def of(
        cls,
        ids: IntArray,
        logits: FloatArray,
        border: float,
        whole: Callable[[], FloatArray],
        mass: Callable[[], float] | None = None,
    ) -> "Candidates":
        """Candidates whose ids come in any order, some of them twice."""
        ordered, places = np.unique(ids, return_index=True)
        return cls(ordered, logits[places], border, whole, mass)


class NarrowRows(Protocol):
    """The rows of one pass."""

    def __getitem__(self, row: int, /) -> Candidates:
        """The candidates of one row, counted from 0."""
        ...


@runtime_checkable
class Narrows(Protocol):
    """A Model that can select on its device, as an extra."""

    @property
    def narrows(self) -> bool:
        """Whether that is faster here than to send whole rows; it never changes."""
        ...

    def forward_narrow(self, tokens: Sequence[int], rows: int, count: int, named: Sequence[int]) -> NarrowRows:
        """As Model.forward; of each row the `count` largest logits of real ids and those of `named`, distinct and real.

        1 <= count <= vocab.size.  What it returns is valid until the next call.
        """
        ...


def wanted(sampling: Sampling, size: int, touched: int) -> int | None:
    """How many of the largest of `size` logits to ask for where `touched` ids are named; None: take whole rows."""
    needed = _needed(sampling)
    count = needed + touched + SPARE
    return count if needed and count <= min(MOST, size) else None


def after(candidates: Candidates, size: int, sampling: Sampling, used: Used) -> Distribution:
    """As engine.sampling.after for the whole row, bit for bit, its errors included."""
    touched = [token for token in {*sampling.logit_bias, *used.recent, *used.counts} if 0 <= token < size]
    places = np.searchsorted(candidates.ids, touched)
    if not _suffice(candidates, touched, places, _needed(sampling)):
        return after_whole(candidates.whole(), size, sampling, used)
    at = dict(zip(touched, places.tolist(), strict=True))
    if sampling.logit_bias:
        sampling = structs.replace(sampling, logit_bias=_moved(sampling.logit_bias, at))
    used = Used({at[token] for token in used.recent if token in at}, _moved(used.counts, at))
    found = after_whole(candidates.logits, candidates.ids.size, sampling, used)
    assert found.ids is not None  # the top k never is all of them
    return Distribution(found.probs, candidates.ids[found.ids], found.lead)


def _needed(sampling: Sampling) -> int:
    """How many of the largest logits after bias and penalties decide the rest; 0: all."""
    return 2 if sampling.greedy else sampling.top_k


def _suffice(candidates: Candidates, touched: Sequence[int], places: IntArray, needed: int) -> bool:
    """Whether all touched ids are here, at `places`, and as many others as are needed above the border.

    The border's own token makes one more than these, so the top k of the candidates is never all of them.  Of NaN and
    +inf the whole row tells.
    """
    if not needed or not (candidates.ids.take(places, mode="clip") == touched).all():
        return False
    above = candidates.logits > candidates.border
    certain = np.count_nonzero(above) - np.count_nonzero(above[places])
    return bool(needed <= certain and candidates.logits.max() < math.inf)


def _moved(values: Mapping[int, Value], at: Mapping[int, int]) -> dict[int, Value]:
    """The values of the tokens that have a place, by place."""
    return {at[token]: value for token, value in values.items() if token in at}
