"""Narrow rows for tests: rows with all that can go wrong, a slow selector with ties by chance, a toy that narrows."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.config import Sampling
from engine.errors import BadLogits
from engine.model import FloatArray
from engine.narrow import Candidates
from engine.penalties import Used
from engine.sampling import Distribution
from tests.engine.rows import samplings

Outcome = tuple[object, ...]


def outcome(make: Callable[[], Distribution]) -> Outcome:
    """All bits of a distribution, or the error in its place."""
    try:
        found = make()
    except BadLogits as error:
        return (str(error),)
    ids = None if found.ids is None else (found.ids.dtype.name, found.ids.tolist())
    return found.probs.tobytes(), ids, found.lead


@dataclass
class Case:
    """A row of logits and all that its distribution depends on."""

    row: FloatArray
    size: int
    sampling: Sampling
    prompt: list[int]
    answer: list[int]
    spare: int
    """How many of the largest logits are selected beyond those needed and touched; may be negative."""
    more: list[int]
    """Ids that are named though nothing touches them."""

    @property
    def count(self) -> int:
        needed = 2 if self.sampling.greedy else self.sampling.top_k
        return max(1, min(self.size, needed + len(self.touched) + self.spare))

    @property
    def used(self) -> Used:
        return Used.of(self.sampling, self.prompt + self.answer, self.answer)

    @property
    def touched(self) -> set[int]:
        return {t for t in {*self.sampling.logit_bias, *self.used.recent, *self.used.counts} if 0 <= t < self.size}

    @property
    def named(self) -> list[int]:
        return list(self.touched | {t for t in self.more if t < self.size})


@st.composite
def cases(draw: st.DrawFn, faulty: bool = True) -> Case:
    """Rows with ties, padding, and impossible tokens; with NaN and +inf where `faulty`."""
    values = [-math.inf, -3.0, -0.0, 0.0, 1.0, 2.0, *([math.inf, math.nan] if faulty else [])]
    numbers = st.one_of(st.sampled_from(values[:6]), st.floats(-12, 12, width=32))
    if faulty and draw(st.integers(0, 3)) == 0:
        numbers = st.one_of(st.sampled_from(values), numbers)
    row = draw(st.lists(numbers, min_size=draw(st.sampled_from([1, 12])), max_size=24))
    padding = draw(st.lists(st.sampled_from([-math.inf, 0.0, 99.0, math.inf, math.nan]), max_size=3))
    ids = st.lists(st.integers(-2, 9), max_size=12)
    return Case(
        np.array([*row, *padding], np.float32),
        len(row),
        draw(samplings(penalties=True)),
        draw(ids),
        draw(ids),
        draw(st.integers(-2, 4)),
        draw(st.lists(st.integers(0, 30), max_size=2)),
    )


def pick(
    row: FloatArray, size: int, count: int, named: Sequence[int], whole: Callable[[], FloatArray], order: int = 0
) -> Candidates:
    """The candidates of a row by a full sort; `order` says which of equal logits come first."""
    chance = np.random.default_rng(order).random(size)
    value = [math.inf if math.isnan(v) else float(v) for v in row[:size]]
    best = sorted(range(size), key=lambda t: (not math.isnan(row[t]), -value[t], chance[t]))[:count]
    ids = np.array([*best, *named], np.int64)
    return Candidates.of(ids, row[ids], float(row[best[-1]]), whole)


class NarrowToy(ToyLM):
    """A ToyLM that narrows, and notes how often it was asked how; its whole rows are gone with the next pass."""

    narrows = True

    def __init__(self, size: int, *, seed: int = 0, blur: float = 0.0, eog: Sequence[int] = ()) -> None:
        super().__init__(size, seed=seed, blur=blur, eog=eog)
        self.asked = {"narrow": 0, "whole": 0, "fetched": 0}
        self.on_narrow: Callable[[], None] = lambda: None

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        self.asked["whole"] += rows > 0
        return super().forward(tokens, rows)

    def forward_narrow(self, tokens: Sequence[int], rows: int, count: int, named: Sequence[int]) -> list[Candidates]:
        self.asked["narrow"] += 1
        self.on_narrow()
        out = super().forward(tokens, rows)

        def whole(i: int) -> FloatArray:
            self.asked["fetched"] += 1
            return out[i]

        return [
            pick(row, self.vocab.size, count, named, lambda i=i: whole(i), order=len(tokens))
            for i, row in enumerate(out)
        ]
