"""Things measured in turns, and how sure their ratio is.

What is compared runs close together and in changing order, so a machine that grows slower meanwhile does so for all:
only figures of one turn are ever divided by each other.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from engine.config import Frozen

RESAMPLES = 2000
LEVEL = 0.95


class Ratio(Frozen, frozen=True, kw_only=True):
    """How many times as fast, and between what two bounds that lies; None where there is too little to say."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def order(sides: int, turn: int) -> Iterator[int]:
    """A B C in the first turn, C B A in the second, and so on."""
    return iter(range(sides) if turn % 2 == 0 else range(sides - 1, -1, -1))


def in_turns(sides: Sequence[Callable[[], float]], turns: int) -> list[list[float]]:
    """The figures of each side, in order of the turns."""
    found: list[list[float]] = [[] for _ in sides]
    for turn in range(turns):
        for side in order(len(sides), turn):
            found[side].append(sides[side]())
    return found


def ratios(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """a / b, turn by turn."""
    return [x / y for x, y in zip(a, b, strict=True)]


def middle(groups: Sequence[Sequence[float]]) -> float | None:
    """The geometric mean of the medians of groups: prompts, each with its turns.  None where all are empty."""
    medians = [statistics.median(group) for group in groups if group]
    return mean(medians)


def mean(values: Sequence[float]) -> float | None:
    """The geometric mean, which treats twice as fast and half as fast alike; None of none."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def ratio_of(groups: Sequence[Sequence[float]]) -> Ratio:
    """The middle of ratios by prompt and turn, with a percentile bootstrap over the turns of each prompt.

    It says how far the turns bear the ratio out on these prompts, not what other prompts would give.  No bounds where
    no prompt has two turns.  The draws have a fixed seed.  (Efron & Tibshirani 1993, chapter 13.)
    """
    groups = [group for group in groups if group]
    found = middle(groups)
    if found is None or max(map(len, groups)) < 2:
        return Ratio(ratio=found)
    generator = np.random.default_rng(0)
    logs = np.zeros(RESAMPLES)
    for group in groups:
        drawn = generator.choice(np.asarray(group, np.float64), (RESAMPLES, len(group)))
        logs += np.log(np.median(drawn, axis=1))
    outside = (1 - LEVEL) / 2
    low, high = np.exp(np.quantile(logs / len(groups), (outside, 1 - outside)))
    return Ratio(ratio=found, low=float(low), high=float(high))
