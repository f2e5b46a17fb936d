"""Cheaper drafts for this machine: forms of a draft are made and measured, and the best of them is left.

Type of the weights, layers, tokens are tried one after the other, each on the best form so far.  The one invariant: the
target is never touched, so whatever comes of this, texts do not change.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine import pairing
from engine.backends.llamacpp_quantize import Form, quantize
from engine.calibration_text import TEXT
from engine.cost_table import CostTable
from engine.costs import DraftCost
from engine.errors import EngineError, ModelError, PairMismatch
from engine.experiments.tune_measure import CONTEXT, Recorded, acceptance, least, passes, record, target_passes
from engine.experiments.tune_plan import Plan
from engine.experiments.tune_records import Acceptance, DraftForm, Failed, Measured, Report, Working
from engine.experiments.tune_tokens import kept_tokens, text_of
from engine.gain import gains, needed
from engine.mapped import MappedModel
from engine.model import Model
from engine.pair import Pair

LONGEST = 16
"""Drafts are thought through up to here."""
MARGIN = 1.01
"""Times the gain of the form to be beaten that another must promise: less than that is noise."""
TURNS = 3
"""Times that two forms are timed in turns."""
STEPS_AFTER = 8
"""Steps behind the recording of answers, for the share that is done."""

Event = Working | Measured | Failed | Report


@dataclass(frozen=True, slots=True)
class Source:
    """The draft's file, and where and how its forms are made."""

    file: Path
    layers: int
    folder: Path
    """Forms lie here; all but the best are deleted on the way."""
    open: Callable[[Path], Model]
    """Opens a form as the draft will be opened."""
    used: Sequence[Sequence[int]] = ()
    """Texts of the user's, as ids of the target."""


def tune(pair: Pair, source: Source, plan: Plan) -> Generator[Event, None, None]:
    """Measure forms of a pair's draft; the last event is the Report, whose best form lies at `path_of`.

    It is open until this is closed.  ModelError where the pair has no draft model or the target answers nothing.
    """
    if pair.draft is None:
        raise ModelError("there is no draft model to tune: take a pair that has one")
    answers: list[Recorded] = []
    for number, prompt in enumerate(plan.prompts):
        yield Working(what="recording answers", share=0.5 * number / len(plan.prompts))
        answers.append(record(pair.target, prompt, plan.tokens))
    if not any(known.answer for known in answers):
        raise ModelError("the target answers nothing, so no draft can be measured: take another pair")
    yield Working(what="measuring the draft as it is", share=0.5)
    yield from _Search(pair, source, plan, answers).run()


def path_of(source: Source, form: DraftForm) -> Path:
    """Where a form lies; the file as it is stays where it is."""
    if form == DraftForm():
        return source.file
    parts = [form.weights or "same", "-".join(map(str, form.without)) or "all", str(form.tokens or "all")]
    return source.folder / f"{'_'.join(parts)}.gguf"


class _Search:
    """One search; what is to be beaten stays open, so that it and each new form are timed in turns."""

    def __init__(self, pair: Pair, source: Source, plan: Plan, answers: Sequence[Recorded]) -> None:
        assert pair.draft is not None
        self.pair, self.source, self.plan, self.answers = pair, source, plan, answers
        self.failed: list[Failed] = []
        self._steps = 0
        self._draft = self._model = pair.draft
        self._target = target_passes(pair.target)
        self._best = self._measured(DraftForm(), passes(self._draft), acceptance(self._draft, answers))

    def run(self) -> Iterator[Event]:
        """The original, then the forms, at last the report."""
        original = self._best
        yield original
        try:
            for stage in (self._by_weights, self._by_layers, self._by_tokens):
                for form in stage():
                    yield self._working(f"measuring: {form}")
                    yield self._try(form)
                self._tidy()
            yield self._working("measuring in turns")
            yield self._report(original)
        finally:
            self._close()

    def _working(self, what: str) -> Working:
        self._steps += 1
        return Working(what=what, share=min(0.99, 0.5 + 0.5 * self._steps / (STEPS_AFTER + 1)))

    def _by_weights(self) -> list[DraftForm]:
        return [DraftForm(weights) for weights in self.plan.weights]

    def _by_layers(self) -> list[DraftForm]:
        """Parts of the middle: the first layers make words of tokens, the last ones choose among them."""
        counts = {max(1, round(self.source.layers * share)) for share in self.plan.left_out}
        middles = [(count, (self.source.layers - count) // 2) for count in sorted(counts) if count < self.source.layers]
        return [self._with(without=tuple(range(start, start + count))) for count, start in middles]

    def _by_tokens(self) -> list[DraftForm]:
        size = _inner(self._draft).vocab.size
        return [self._with(tokens=tokens) for tokens in self.plan.sizes if tokens < size]

    def _with(self, **changes: object) -> DraftForm:
        return msgspec.structs.replace(self._best.form, **changes)

    def _try(self, form: DraftForm) -> Measured | Failed:
        """Make a form and measure it; it is left, and open, where it is better than the best one so far."""
        path = path_of(self.source, form)
        try:
            self._make(form, path)
            return self._compare(form, self._open(path))
        except EngineError as error:
            path.unlink(missing_ok=True)
            self.failed.append(Failed(form=form, why=str(error)))
            return self.failed[-1]
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _compare(self, form: DraftForm, draft: Model) -> Measured:
        """Measure an open form beside the best one, and close the worse of the two."""
        try:
            best, ms = self._in_turns(self._model, draft)
            measured = self._measured(form, ms, acceptance(draft, self.answers))
        except BaseException:
            draft.close()
            raise
        self._best = self._again(self._best, best)
        if measured.gain >= MARGIN * self._best.gain:
            self._close()
            self._best, self._model = measured, draft
        else:
            draft.close()
            path_of(self.source, form).unlink()
        return measured

    def _close(self) -> None:
        """Close the best form, if it is not the original, which is the pair's."""
        if self._model is not self._draft:
            self._model.close()

    def _tidy(self) -> None:
        """Delete all forms but the best one; within a stage others are made from the one before."""
        for path in self.source.folder.glob("*.gguf"):
            if path != path_of(self.source, self._best.form):
                path.unlink()

    def _make(self, form: DraftForm, path: Path) -> None:
        """Write a form; fewer tokens are cut from the form with all of them, which is there as the best one."""
        if form.tokens is None:
            quantize(self.source.file, path, Form(weights=form.weights, without=form.without))
            return
        from engine.backends.llamacpp_cut import cut

        vocab, target = _inner(self._draft).vocab, self.pair.target.vocab
        texts = [TEXT, *self.plan.texts, *(text_of(target, ids) for ids in self.source.used)]
        whole = path_of(self.source, msgspec.structs.replace(form, tokens=None))
        cut(whole, path, kept_tokens(vocab, texts, form.tokens))

    def _open(self, path: Path) -> Model:
        """A form as the target's tokens see it."""
        draft = self.source.open(path)
        fit = pairing.compare(self.pair.target.vocab, draft.vocab)
        if fit.kind == "none":
            draft.close()
            raise PairMismatch(f"it no longer fits the target: {fit.reason}")
        return draft if fit.map is None else MappedModel(draft, fit.map)

    def _measured(self, form: DraftForm, ms: dict[int, float], kept: Acceptance) -> Measured:
        scale = gains([kept.chance] * LONGEST, self._cost, DraftCost(ms[1]))
        return Measured(
            form=form,
            bytes=path_of(self.source, form).stat().st_size,
            ms=ms[1],
            ms_two=ms[2],
            acceptance=kept,
            gain=max(scale),
            length=scale.index(max(scale)) + 1,
        )

    def _cost(self, width: int) -> float:
        """Milliseconds of a pass of the target's: timed here, as the pair's own table may be from a busier moment."""
        return CostTable(at={CONTEXT: self._target}).cost(width, CONTEXT)

    def _again(self, known: Measured, ms: dict[int, float]) -> Measured:
        """A form that was timed once more."""
        return self._measured(known.form, least({1: known.ms, 2: known.ms_two}, ms), known.acceptance)

    def _report(self, original: Measured) -> Report:
        """Time the target again, the best form and the original in turns, and decide."""
        self._target = least(self._target, target_passes(self.pair.target))
        times = self._in_turns(self._draft, self._model)
        original, best = self._again(original, times[0]), self._again(self._best, times[1])
        better = self._model is not self._draft and best.gain >= MARGIN * original.gain
        return Report(
            target=self.pair.target_name,
            draft=self.pair.draft_name or "",
            target_ms=self._target,
            context=CONTEXT,
            places=sum(len(known.answer) for known in self.answers),
            original=original,
            best=best if better else None,
            needed=needed(LONGEST, self._cost, DraftCost((best if better else original).ms)),
            failed=self.failed,
        )

    def _in_turns(self, *both: Model) -> list[dict[int, float]]:
        """The least times of two drafts, in turns: whatever else runs meanwhile slows down both."""
        turns = [[passes(model) for model in both] for _ in range(TURNS)]
        return [least(*times) for times in zip(*turns, strict=True)]


def _inner(draft: Model) -> Model:
    """The draft with its own vocabulary."""
    return draft.inner if isinstance(draft, MappedModel) else draft
