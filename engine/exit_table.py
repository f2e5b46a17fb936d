"""After how many layers a model is best left to draft for itself: what each number agrees and costs, measured.

The one invariant: the early rows and the whole rows that are compared stand behind the same ids, so an agreement is the
share of drafts that a greedy target would keep.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from engine.calibration import Progress
from engine.calibration_text import sample_ids
from engine.config import Frozen
from engine.cost_table import STEADY
from engine.costs import Cost, DraftCost
from engine.early import LeavesEarly
from engine.gain import MARGIN, gains
from engine.model import FloatArray, IntArray

CONTEXT, PLACES = 32, 96
"""Ids that are read first, and places behind them at which the rows are compared."""
WIDTH = 5
"""Tokens of the verifying pass that is timed."""
LONGEST = 8
"""Drafts up to this length are thought through."""


class ExitPoint(Frozen, frozen=True):
    """What the first `layers` layers are worth as a draft."""

    layers: int
    agreement: float
    """Share of places at which their first choice is the whole model's."""
    ms: float
    """One token through them and the head."""
    saved_ms: float
    """What a verifying pass takes less for each token that has left early; below 0 where it takes more."""

    @property
    def cost(self) -> DraftCost:
        """As the planner counts it."""
        return DraftCost(self.ms, self.saved_ms)


class ExitTable(Frozen, frozen=True):
    """The exits of one model."""

    points: tuple[ExitPoint, ...]
    steady: bool = True
    """Whether the machine was quiet enough for it to be kept: like runs took alike."""

    def at(self, layers: int) -> ExitPoint | None:
        """The exit after so many layers."""
        return next((point for point in self.points if point.layers == layers), None)


def exits(layers: int) -> tuple[int, ...]:
    """Exits that are worth a look: from one to six eighths of the layers, none after the last."""
    return tuple(sorted({max(1, layers * eighths // 8) for eighths in range(1, 7)} - {layers}))


def gain(point: ExitPoint, cost: Cost) -> float:
    """Tokens per millisecond relative to not drafting, by the best length; `cost` is the whole model's by width."""
    return max(gains([point.agreement] * LONGEST, cost, point.cost))


def best_exit(points: Iterable[ExitPoint], cost: Cost) -> ExitPoint:
    """The exit of the largest expected gain, the earliest of equals; ValueError where there are none."""
    return max(sorted(points, key=lambda point: point.layers), key=lambda point: gain(point, cost))


def choose(table: ExitTable, asked: int, layers: int, cost: Cost) -> tuple[ExitPoint | None, str]:
    """The exit asked for, or for 0 the best one if it pays, and a sentence for the user about the model of `layers`."""
    point = table.at(asked) or best_exit(table.points, cost)
    worth = (
        f"after {point.layers} of {layers} layers its choice is the whole model's in {point.agreement:.0%} of places, "
        f"and a draft takes {point.cost.net / cost(1):.2f} of the time of a token"
    )
    if gain(point, cost) > MARGIN:
        return point, f"early exit: {worth}"
    if asked:
        return point, f"early exit: {worth}, which is not expected to pay here"
    return None, f"early exit is not used, as no number of layers is expected to pay here: {worth}"


def measure_exit(
    model: LeavesEarly,
    tried: Sequence[int],
    progress: Progress = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> ExitTable:
    """Leave after each of the numbers `tried`; the cache is empty afterwards.  CannotRewind where it cannot go back."""
    measuring = _Measuring(model, tried, progress, clock)
    model.rewind(0)
    try:
        return measuring.run()
    finally:
        model.rewind(0)


class _Measuring:
    """One run of `measure_exit`."""

    def __init__(
        self, model: LeavesEarly, tried: Sequence[int], progress: Progress, clock: Callable[[], float]
    ) -> None:
        self._model, self._tried, self._progress, self._clock = model, tried, progress, clock
        self._width = max(2, min(WIDTH, model.n_batch))
        self._ids = sample_ids(model.vocab, min(CONTEXT + PLACES, model.n_ctx - self._width))
        self._context = min(CONTEXT, len(self._ids) // 4)
        self._done = 0
        self._steady = True

    def run(self) -> ExitTable:
        for part in self._parts(0, self._context):
            self._model.forward(part, 0)
        whole = self._choices(lambda part: self._model.forward(part, len(part)))
        plain = self._least(lambda: None, lambda tokens: self._model.forward(tokens, self._width))
        found = [self._point(layers, whole, plain) for layers in self._tried]
        return ExitTable(points=tuple(found), steady=self._steady)

    def _point(self, layers: int, whole: IntArray, plain: float) -> ExitPoint:
        model, width = self._model, self._width
        early = self._choices(lambda part: model.leave(part, len(part), layers))
        ms = self._least(lambda: None, lambda tokens: model.leave(tokens[:1], 1, layers))
        taken = self._least(
            lambda: model.leave(self._ids[: width - 1], 1, layers), lambda tokens: model.forward(tokens, width)
        )
        agreement = float(np.mean(early == whole))
        return ExitPoint(layers=layers, agreement=agreement, ms=ms, saved_ms=(plain - taken) / (width - 1))

    def _parts(self, start: int, end: int) -> Iterator[list[int]]:
        for at in range(start, end, self._model.n_batch):
            yield self._ids[at : min(end, at + self._model.n_batch)]

    def _choices(self, run: Callable[[list[int]], FloatArray]) -> IntArray:
        """The likeliest real token behind each place; int64 [places]."""
        size = self._model.vocab.size
        found = [run(part)[:, :size].argmax(axis=1) for part in self._parts(self._context, len(self._ids))]
        self._step()
        return np.concatenate(found)

    def _least(self, before: Callable[[], object], run: Callable[[list[int]], object]) -> float:
        """Milliseconds of a pass over the first `width` ids; whatever else runs only adds time."""
        times = []
        for _ in range(3):
            before()
            start = self._clock()
            run(self._ids[: self._width])
            times.append(1e3 * (self._clock() - start))
            self._model.rewind(self._context)
        self._steady = self._steady and sorted(times)[1] <= STEADY * min(times)
        self._step()
        return min(times)

    def _step(self) -> None:
        """Back to where the comparison begins, and tell how far it is."""
        self._model.rewind(self._context)
        self._done += 1
        self._progress(self._done / (2 + 3 * len(self._tried)))
