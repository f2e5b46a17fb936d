"""Which pass widths give the logits of single passes bit for bit, and by how much the others differ.

A pass over n tokens runs other kernels than n passes over one, and sums in another order.  Nothing here is known in
advance: it is measured on the model at hand, at several context lengths, and holds for this file, machine, thread
count and setting alone (calibration_store keeps it).  The one invariant: a width counts as equal only if every bit of
every row was equal, at every context measured, after passes whose drafts were refused and rewound as well.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine.calibration_text import sample_ids
from engine.config import CacheType, FlashAttention, Frozen
from engine.errors import CannotRewind
from engine.model import FloatArray, Model
from engine.stats import HeldAs
from engine.verdict import Change

Progress = Callable[[float], None]
"""Told the share that is done, 0 to 1, between passes; what it raises ends the measurement."""

WIDTHS = (2, 3, 4, 5, 6, 7, 8, 12, 16)
"""Pass widths that are compared with width 1."""
CONTEXTS = (40, 250, 760, 1520)
"""Where: the cache is padded to 256 tokens, and the last three stretches step over such a border."""
STRETCH = 32
"""Tokens compared at each context: changed cache entries have to add up to be seen."""


class Setting(Frozen, frozen=True):
    """What decides the kernels of attention."""

    kv: HeldAs
    flash_attention: Literal["on", "off"]


class Widths(Frozen, frozen=True):
    """What was measured about widths."""

    equal: tuple[int, ...] = (1,)
    """Widths whose logits equal those of width 1, bit for bit, at all contexts."""
    change: Change = Change()
    """Most that another width was seen to change."""
    contexts: tuple[int, ...] = ()
    """Context lengths at which this was measured."""

    @property
    def group(self) -> int:
        """The largest w such that all widths from 1 to w are equal."""
        width = 1
        while width + 1 in self.equal:
            width += 1
        return width


@dataclass(frozen=True, slots=True)
class WidthPlan:
    """What to measure."""

    widths: tuple[int, ...] = WIDTHS
    contexts: tuple[int, ...] = CONTEXTS
    group_only: bool = False
    """Only the group that begins at 1 matters: widths above a failed one are dropped, too."""
    at_least: int = 1
    """With `group_only`: stop as soon as the group is smaller than this."""
    leads: bool = False
    """Whether a width that failed is measured at the other contexts too, for its leads: slower, a safer bound."""

    def fitting(self, n_ctx: int) -> tuple[int, ...]:
        """The contexts that can be measured in a cache of so many tokens."""
        return tuple(c for c in self.contexts if c + STRETCH + max(self.widths, default=1) <= n_ctx)


def measure_widths(model: Model, plan: WidthPlan | None = None, progress: Progress = lambda _: None) -> Widths:
    """Compare wide passes with single ones; the model's cache is empty afterwards, whatever happens."""
    model.rewind(0)
    measuring = Measuring(model, plan or WidthPlan())
    with closing(measuring.steps()) as steps:
        for share in steps:
            progress(share)
    return measuring.found


class Measuring:
    """One comparison, a pass at a time; `found` is what came of it, nothing before its end."""

    def __init__(self, model: Model, plan: WidthPlan) -> None:
        self._model, self._plan, self._held = model, plan, model.length
        self._widths = tuple(w for w in plan.widths if w <= model.n_batch)
        self._contexts = tuple(c for c in plan.fitting(model.n_ctx) if c >= model.length)
        self._ids = sample_ids(model.vocab, max(self._contexts, default=0) + STRETCH)
        self._alive = list(self._widths)
        self._change = Change()
        self.found = Widths()

    def steps(self) -> Generator[float, None, None]:
        """The share that is done, after each pass; in the end, whatever happens, the cache holds what it held."""
        try:
            yield from self._run()
        except CannotRewind:
            return
        finally:
            self._model.rewind(self._held)

    def _run(self) -> Iterator[float]:
        for place, context in enumerate(self._contexts):
            yield from self._read(context, place)
            yield from self._compare(context, place)
            if self._enough():
                break
        if self._contexts:
            self.found = Widths(equal=(1, *self._alive), change=self._change, contexts=self._contexts[: place + 1])
            yield 1.0

    def _enough(self) -> bool:
        if self._plan.group_only and Widths(equal=(1, *self._alive)).group < self._plan.at_least:
            return True
        return not self._alive and not self._plan.leads

    def _share(self, place: int, part: float) -> float:
        return (place + part) / len(self._contexts)

    def _read(self, context: int, place: int) -> Iterator[float]:
        """Read up to `context` as prompts are read: in chunks that end at multiples of the batch size."""
        model = self._model
        first = model.length
        while (start := model.length) < context:
            stop = min(context, start - start % model.n_batch + model.n_batch)
            model.forward(self._ids[start:stop], 0)
            yield self._share(place, 0.5 * (stop - first) / (context - first))

    def _compare(self, context: int, place: int) -> Iterator[float]:
        stretch = self._ids[context : context + STRETCH]
        rows = []
        for token in stretch:
            rows.append(self._model.forward([token], 1).copy())
            yield self._share(place, 0.5)
        single = np.concatenate(rows)
        self._model.rewind(context)
        tested = list(self._widths if self._plan.leads else self._alive)
        for done, width in enumerate(tested, 1):
            if width not in self._alive and not self._plan.leads:
                continue
            equal = True
            for same in self._passes(width, stretch, single):
                equal = equal and same
                yield self._share(place, 0.5 + 0.5 * done / (len(tested) + 1))
            if not equal:
                self._alive = [w for w in self._alive if w != width and not (self._plan.group_only and w > width)]
            self._model.rewind(context)

    def _passes(self, width: int, stretch: Sequence[int], single: FloatArray) -> Iterator[bool]:
        """Whether each pass of `width` gives the rows `single`; an unequal width goes on for its leads' sake."""
        for start, kept, tokens in rounds_of(width, stretch):
            rows = self._model.forward(tokens, len(tokens))[:kept]
            wanted = single[start : start + kept]
            equal = np.array_equal(_bits(rows), _bits(wanted))
            if not equal and not self._plan.group_only:
                self._change = most(self._change, change(wanted, rows))
            self._model.rewind(self._model.length - len(tokens) + kept)
            yield equal
            if not equal and self._plan.group_only:
                return


def rounds_of(width: int, stretch: Sequence[int]) -> Iterator[tuple[int, int, list[int]]]:
    """Passes as drafting makes them: all kept, half kept, a single one, and so on: (start, kept, tokens)."""
    start, turn = 0, 0
    while start < len(stretch):
        left = len(stretch) - start
        size = 1 if turn % 3 == 2 else width
        kept = min(left, max(1, size // 2) if turn % 3 == 1 else size)
        wrong = [stretch[(start + i + 1) % len(stretch)] for i in range(size - kept)]
        yield start, kept, [*stretch[start : start + kept], *wrong]
        start, turn = start + kept, turn + 1


def change(single: FloatArray, wide: FloatArray) -> Change:
    """Largest change of a lead and of its two logits; the first two tokens of either row count: [rows, vocab] each."""
    worst = Change()
    for a, b in zip(single.astype(np.float64), wide.astype(np.float64), strict=True):
        for row in (a, b):
            second, first = np.argpartition(row, -2)[-2:]
            of_first, of_second = float(b[first] - a[first]), float(b[second] - a[second])
            logit = max(abs(of_first), abs(of_second))
            worst = most(worst, Change(lead=abs(of_first - of_second), logit=logit))
    return worst


def most(a: Change, b: Change) -> Change:
    """The larger of each."""
    return Change(lead=max(a.lead, b.lead), logit=max(a.logit, b.logit))


def _bits(rows: FloatArray) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint32]]":
    return np.ascontiguousarray(rows).view(np.uint32)


def candidates(kv: CacheType | None, flash_attention: FlashAttention) -> list[Setting]:
    """The settings that strict exactness may choose from; what the user gave explicitly is kept."""
    if kv == "q4_0":
        return [Setting(kv="q4_0", flash_attention="on")]
    every = [
        Setting(kv="f16", flash_attention="off"),
        Setting(kv="f16", flash_attention="on"),
        Setting(kv="q8_0", flash_attention="on"),
    ]
    return [s for s in every if kv in (None, s.kv) and flash_attention in ("auto", s.flash_attention)]


LEADS_PLAN = WidthPlan(widths=(2, 3, 4, 6, 8, 16), contexts=(40, 250), leads=True)
"""What tells how far wide passes move leads: about as long as 300 tokens take.  From 8 on, widths hardly differ.

A prompt is read ahead in passes no wider than the widest (prepare.PIECE), so what was measured here holds for it too.
"""
STRICT_PLAN = WidthPlan(widths=tuple(range(2, 17)), group_only=True)


def strict_setting(
    make_model: Callable[[Setting], Model],
    settings: Sequence[Setting],
    progress: Progress = lambda _: None,
) -> tuple[Setting, Widths]:
    """The setting with the largest group of widths from 1 up, the first of equals; each model made is closed."""
    found: dict[Setting, Widths] = {}
    for done, setting in enumerate(reversed(settings)):  # the quantized cache first: it rules out others early
        best = max((widths.group for widths in found.values()), default=1)
        plan = replace(STRICT_PLAN, at_least=best)
        with closing(make_model(setting)) as model:
            found[setting] = measure_widths(model, plan, _part(progress, done, len(settings)))
    return max(((s, found[s]) for s in settings), key=lambda pair: pair[1].group)


def _part(progress: Progress, done: int, count: int) -> Progress:
    return lambda share: progress((done + share) / count)
