"""Tuning: forms are made, measured and compared; the best one is left, and only if it is better than what there was."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.toy import ScriptLM, ToyVocabulary
from engine.costs import Costs, DraftCost
from engine.errors import ModelError
from engine.experiments import tune as tuning
from engine.experiments.tune import Event, Source, path_of, tune
from engine.experiments.tune_measure import ROWS, TARGET_WIDTHS, acceptance, passes, record, target_passes
from engine.experiments.tune_plan import Plan
from engine.experiments.tune_records import DraftForm, Failed, Measured, Report, Working
from engine.experiments.tune_tokens import kept_tokens, text_of
from engine.gain import gains
from engine.mapped import MappedModel
from engine.model import FloatArray, Model
from engine.pair import Pair
from tests.tiny_gguf import WORDS, Tiny, write_llama

SIZE = len(WORDS) + 250
"""Tokens of which a few are left out."""
PLAN = Plan(prompts=("The harbour wakes.", "Two crates."), tokens=6, weights=("q4_0",), left_out=(0.25,), sizes=(SIZE,))
TUNED_AT_ONCE = 4 * ROWS
"""Tokens of an answer that take several passes."""
COSTS = Costs(lambda width, _: 9.0 + width, {"model": DraftCost(1.0)})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    target = write_llama(folder / "target.gguf", Tiny(layers=4, merges=WORDS))
    return target, write_llama(folder / "draft.gguf", Tiny(layers=4, merges=WORDS, blur=0.05))


class Bench:
    """A pair, and a clock that says what a pass of each form takes."""

    def __init__(self, files: tuple[Path, Path], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ms: dict[str, float] = {}
        self.pair = Pair(self._open(files[0]), self._open(files[1]), costs=COSTS)
        self.source = Source(file=files[1], layers=4, folder=folder, open=self._open)
        self.opened: list[Path] = []
        monkeypatch.setattr(tuning, "passes", self._passes)
        monkeypatch.setattr(tuning, "target_passes", self._target_passes)

    def _open(self, path: Path) -> LlamaCppModel:
        model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))
        self.opened = [*getattr(self, "opened", []), path]
        return model

    def _passes(self, model: Model) -> dict[int, float]:
        inner = model.inner if isinstance(model, MappedModel) else model
        assert isinstance(inner, LlamaCppModel)
        ms = self.ms.get(inner.file.stem, 5.0)
        return {1: ms, 2: 2 * ms}

    def _target_passes(self, model: Model) -> dict[int, float]:
        assert model is self.pair.target
        return {width: self.pair.costs.target(width, 0) for width in TARGET_WIDTHS}

    def run(self, plan: Plan = PLAN) -> list[Event]:
        return list(tune(self.pair, self.source, plan))

    def left(self) -> list[str]:
        return sorted(path.name for path in self.source.folder.iterdir())


@pytest.fixture
def bench(files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(files, tmp_path, monkeypatch)


def report_of(events: Sequence[Event]) -> Report:
    assert isinstance(events[-1], Report)
    return events[-1]


def test_the_best_of_all_is_left_and_is_built_on_the_best_before(bench: Bench) -> None:
    bench.ms = {"q4_0_all_all": 3.0, "q4_0_1_all": 2.9, f"q4_0_all_{SIZE}": 0.5, "draft": 8.0}
    events = bench.run()
    forms = [event.form for event in events if isinstance(event, Measured)]
    assert forms[:2] == [DraftForm(), DraftForm("q4_0")]
    assert forms[2] == DraftForm("q4_0", without=(1,))
    assert forms[3].tokens == SIZE
    report = report_of(events)
    assert report.best is not None
    assert report.best.form == DraftForm("q4_0", tokens=SIZE)
    assert (report.original.ms, report.best.ms, report.failed) == (8.0, 0.5, [])
    assert bench.left() == [f"q4_0_all_{SIZE}.gguf"]
    assert path_of(bench.source, report.best.form).stat().st_size == report.best.bytes < report.original.bytes
    assert report.best.gain > report.original.gain
    shares = [event.share for event in events if isinstance(event, Working)]
    assert shares == sorted(shares)
    assert shares[-1] < 1


def test_a_form_that_is_slower_is_not_left(bench: Bench) -> None:
    bench.ms = {"draft": 1.0}
    report = report_of(bench.run())
    assert report.best is None
    assert bench.left() == []


def test_forms_are_timed_in_turns_and_the_best_at_last_with_the_original(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original is quick at last, when nothing else slows it down: then the best form is not better any more."""
    bench.ms = {"draft": 8.0, "q4_0_all_all": 0.5}
    timed: list[str] = []

    def in_turns(model: Model) -> dict[int, float]:
        inner = model.inner if isinstance(model, MappedModel) else model
        assert isinstance(inner, LlamaCppModel)
        timed.append(inner.file.stem)
        if timed.count("draft") > 1 + tuning.TURNS:
            bench.ms["draft"] = 0.1
        return bench._passes(model)

    monkeypatch.setattr(tuning, "passes", in_turns)
    report = report_of(bench.run())
    others = ["q4_0_1_all", f"q4_0_all_{SIZE}"]
    turns = [("draft", "q4_0_all_all"), *(("q4_0_all_all", other) for other in others), ("draft", "q4_0_all_all")]
    assert timed == ["draft", *(name for both in turns for name in both * tuning.TURNS)]
    assert report.original.ms == 0.1
    assert report.best is None


def test_a_form_that_was_slowed_down_once_is_not_worse_for_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second form on all passes take ten times as long: the first form was timed before that."""
    bench.ms = {"draft": 8.0, "q4_0_all_all": 0.5, "q4_0_1_all": 0.5, f"q4_0_all_{SIZE}": 0.5}

    def slowed(model: Model) -> dict[int, float]:
        factor = 1 if len(bench.opened) < 2 else 10
        return {width: factor * ms for width, ms in bench._passes(model).items()}

    monkeypatch.setattr(tuning, "passes", slowed)
    report = report_of(bench.run())
    assert report.best is not None
    assert (report.best.form, report.best.ms, report.original.ms) == (DraftForm("q4_0"), 0.5, 8.0)


def test_what_is_opened_is_closed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Path] = []

    class Watched(LlamaCppModel):
        def close(self) -> None:
            closed.append(self.file)
            super().close()

    def open_watched(path: Path) -> LlamaCppModel:
        bench.opened.append(path)
        return Watched(LlamaCppOptions(path=path, n_ctx=256, threads=1))

    bench.source = replace(bench.source, open=open_watched)
    bench.ms = {"draft": 8.0, "q4_0_all_all": 2.0, f"q4_0_all_{SIZE}": 0.5}
    bench.run()
    assert sorted(closed) == sorted(bench.opened)
    assert len(closed) == 3


def test_a_target_for_which_no_draft_pays_says_so(bench: Bench) -> None:
    bench.pair.costs = Costs(lambda width, _: 10.0 * width)
    report = report_of(bench.run())
    assert not report.pays
    assert report.needed is None
    assert report.original.gain < 1


def test_the_target_is_timed_here_and_once_more_at_the_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the pair was loaded with, or the first time, may have been taken while something else was running."""
    slow = [3.0, 1.0]

    def target_passes(model: Model) -> dict[int, float]:
        factor = slow.pop(0)
        return {width: factor * ms for width, ms in bench._target_passes(model).items()}

    monkeypatch.setattr(tuning, "target_passes", target_passes)
    report = report_of(bench.run())
    assert slow == []
    assert report.target_ms == {width: 9.0 + width for width in TARGET_WIDTHS}
    kept = report.original.acceptance.chance
    assert report.original.gain == pytest.approx(max(gains([kept] * 16, lambda w: 9.0 + w, DraftCost(5.0))))


def test_a_form_that_cannot_be_made_is_told_and_the_rest_go_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, target: Path, form: object) -> None:
        target.write_text("half")
        raise ModelError("no such form")

    monkeypatch.setattr(tuning, "quantize", fail)
    bench.ms = {"draft": 8.0, f"same_all_{SIZE}": 0.5}
    events = bench.run()
    failed = [event for event in events if isinstance(event, Failed)]
    assert [event.why for event in failed] == ["no such form"] * 2
    report = report_of(events)
    assert report.failed == failed
    assert report.best is not None
    assert report.best.form == DraftForm(tokens=SIZE)
    assert bench.left() == [f"same_all_{SIZE}.gguf"]


def test_an_interrupt_leaves_no_half_form(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(source: Path, target: Path, form: object) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "quantize", stop)
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.left() == []


def test_there_must_be_a_draft_and_an_answer(bench: Bench) -> None:
    bench.pair.draft = None
    with pytest.raises(ModelError, match="no draft model to tune"):
        bench.run()
    silent = ToyVocabulary([b"", b"a"], control={"<end>": 0}, eog=[0], chat_template="{{ messages[0]['content'] }}")
    bench.pair = Pair(ScriptLM(silent, lambda _: 0), ScriptLM(silent, lambda _: 0))
    with pytest.raises(ModelError, match="answers nothing"):
        bench.run()


def test_a_draft_that_is_the_target_is_always_right(files: tuple[Path, Path]) -> None:
    models = [
        LlamaCppModel(LlamaCppOptions(path=path, n_ctx=512, threads=1)) for path in (files[0], files[0], files[1])
    ]
    target, same, other = models
    answers = [record(target, prompt, 8) for prompt in PLAN.prompts]
    assert target.length == 0
    ids = [*answers[0].prompt, *answers[0].answer]
    rows = target.forward(ids, len(ids))[len(answers[0].prompt) - 1 : -1]
    assert rows.argmax(1).tolist() == list(answers[0].answer)
    found = acceptance(same, answers)
    assert (found.greedy, found.sampled) == (1.0, pytest.approx(1.0, abs=1e-3))
    assert 0 < acceptance(other, answers).chance < 1
    assert passes(same).keys() == {1, 2}
    assert target_passes(target).keys() == set(TARGET_WIDTHS)
    assert (same.length, other.length) == (0, 0)
    for model in models:
        model.close()


def letters() -> ToyVocabulary:
    vocab = ToyVocabulary.letters(6)
    vocab.chat_template = "{{ messages[0]['content'] }}"
    return vocab


def test_acceptance_counts_first_choices_and_common_mass() -> None:
    """The draft is wrong at each fourth place, and sure of itself."""
    target = ScriptLM(letters(), lambda ids: len(ids) % 4)
    draft = ScriptLM(letters(), lambda ids: len(ids) % 4 or 5)
    answers = [record(target, prompt, count) for prompt, count in (("ab", 40), ("cad", TUNED_AT_ONCE), ("ba", 0))]
    assert list(answers[0].answer[:4]) == [2, 3, 0, 1]
    found = acceptance(draft, answers)
    assert found.greedy == 0.75
    assert found.sampled == pytest.approx(0.75)
    assert acceptance(target, answers).chance == pytest.approx(1.0)


def test_a_draft_that_is_sure_where_the_target_is_not_is_right_half_the_time() -> None:
    class Undecided(ScriptLM):
        def row(self, ids: Sequence[int]) -> FloatArray:
            out = super().row(ids)
            out[5] = out.max()
            return out

    answers = [record(Undecided(letters(), lambda ids: len(ids) % 4), "ab", 8)]
    found = acceptance(ScriptLM(letters(), lambda ids: len(ids) % 4), answers)
    assert found.greedy == 1.0, "of two that are equal the lower id is the first choice"
    assert found.sampled == pytest.approx(0.5)
    assert found.chance == pytest.approx(0.75)


def test_tokens_kept_are_roles_then_bytes_then_what_texts_use_then_the_lowest() -> None:
    pieces = [b"a", b"b", b"ab", b"ba", b"aba", b"abab", b"", b"bb"]
    vocab = ToyVocabulary(pieces, control={"<end>": 6}, eog=[6])
    assert kept_tokens(vocab, ["abab"], 4) == [0, 1, 5, 6]
    assert kept_tokens(vocab, ["abab"], 5) == [0, 1, 2, 5, 6]
    assert kept_tokens(vocab, ["bb", "abab", "bb"], 4) == [0, 1, 6, 7]
    assert kept_tokens(vocab, [], 1) == [0, 1, 6], "these are never left out"
    assert kept_tokens(vocab, [], 100) == list(range(8))
    assert text_of(vocab, [2, 6, 7, 99]) == "abbb"
