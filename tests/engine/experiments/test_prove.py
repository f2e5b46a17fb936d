"""The proof passes on the rules as they are, and on nothing else: each wrong rule must make it fail."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine import engine as engine_module
from engine.backends.toy import EarlyLM, ToyLM, ToyModel, ToyVocabulary
from engine.config import EngineConfig, Sampling
from engine.engine import Rules, lossless
from engine.errors import ModelError
from engine.experiments import prove_plan
from engine.experiments.prove import prove
from engine.experiments.prove_plan import TEXTS, Plan, Setting
from engine.experiments.prove_records import LEVEL, Compared, Counted, Report, Working
from engine.experiments.sabotage import sabotaged
from engine.loading import load_pair
from engine.model import FloatArray
from engine.noise import Noise
from engine.pair import Pair
from engine.sampling import Distribution
from engine.verify import Coupled, Generator, Rule
from tests.engine.loops import Parts
from tests.engine.mutants import COUNTED, LOOPS, KeepsByChance, KeepsWhatIsPossible, NoiseOfTheLastDraft

VOCAB = 6
HOT = Setting("hot", lambda _row, _guess: Sampling(temperature=1.2, top_k=5, top_p=1.0, min_p=0.0), 2, 3, 800)
USED = Setting("used", lambda _row, _guess: COUNTED, 2, 3, 300)
SHORT = Plan((HOT,), texts=TEXTS[:1], tokens=40, lengths=(2,))


class Stutters(ToyLM):
    """Likes to say the last token again, as penalties are made for."""

    def row(self, ids: Sequence[int]) -> FloatArray:
        row = super().row(ids)
        row[ids[-1]] += 4
        return row


def pair(draft: bool = True, model: type[ToyLM] = ToyLM, **options: object) -> Pair:
    target = model(VOCAB, seed=3, eog=[VOCAB - 1])
    blurred = model(VOCAB, seed=3, blur=0.4, eog=[VOCAB - 1]) if draft else None
    return Pair(target, blurred, draft_name="draft" if draft else None, **options)  # type: ignore[arg-type]


def report_of(rules: Rules = lossless, plan: Plan = SHORT, draft: bool = True) -> Report:
    *_, report = prove(pair(draft), plan, rules)
    assert isinstance(report, Report)
    return report


def failed(report: Report) -> set[tuple[str, str]]:
    return {(test.rule, test.draft) for test in report.counted if not test.passed}


@pytest.mark.parametrize("draft", [True, False])
def test_the_true_rules_pass_with_every_setting(draft: bool) -> None:
    plan = Plan(prove_plan.settings(250), texts=TEXTS[:2], tokens=16)
    report = report_of(plan=plan, draft=draft)
    assert report.passed
    assert failed(report) == set()
    assert len(report.counted) == 4 * len(plan.settings)
    assert {test.draft for test in report.counted} == {"lookup", "model" if draft else "stand-in"}
    assert report.least is not None
    assert report.least >= report.threshold == LEVEL / plan.tests
    assert 50 < report.tests <= plan.tests == 64
    for test in report.counted:
        assert test.impossible == 0
        assert test.kept == pytest.approx(test.kept_expected, abs=0.15)
    assert all(test.equal == 2 and test.difference is None for test in report.compared)
    assert any(test.accepted for test in report.compared)


def test_a_target_that_drafts_for_itself_is_compared_as_text() -> None:
    *_, report = prove(pair(draft=False, model=EarlyLM, exit_layers=6), SHORT)
    assert isinstance(report, Report)
    assert report.passed
    assert any(0 < test.accepted < test.drafted for test in report.compared)


def test_the_same_run_gives_the_same_report() -> None:
    """Only the planner's mode auto looks at the clock, and what it drafts changes no text."""
    assert report_of().counted == report_of().counted


@pytest.mark.parametrize("draft", [True, False])
def test_the_sabotage_is_found_with_every_rule_and_drafter_and_in_the_text(draft: bool) -> None:
    report = report_of(sabotaged, draft=draft)
    assert report.sabotage
    assert not report.passed
    assert failed(report) == {(test.rule, test.draft) for test in report.counted}
    assert any(not test.passed for test in report.compared if test.sampling != "greedy")


class StandingNoise(Noise):
    """The noise does not depend on the position."""

    def race(self, distribution: Distribution, position: int) -> int:
        return super().race(distribution, 0)


class KeepsByGenerator(KeepsByChance):
    """The same over the real noise."""

    def __init__(self, seed: int, start: int) -> None:
        Coupled.__init__(self, Noise(seed))
        self.path = Generator(seed, start)  # type: ignore[assignment]


WRONG_COUPLED: dict[str, Callable[[int, int], Rule]] = {
    "coupled keeps what is possible": lambda seed, _: KeepsWhatIsPossible(Noise(seed)),
    "coupled keeps by chance": KeepsByGenerator,
    "coupled noise is the same everywhere": lambda seed, _: Coupled(StandingNoise(seed)),
    "coupled noise is the last draft's": lambda seed, _: NoiseOfTheLastDraft(Noise(seed)),
}


def rules_of(name: str, parts: Parts) -> Rules:
    """The wrong rule in place of the one that it is a form of."""
    if name in WRONG_COUPLED:
        return lambda rule, seed, start: (
            WRONG_COUPLED[name](seed, start) if rule == "coupled" else lossless(rule, seed, start)
        )
    make: Callable[[Generator], Rule] = parts.rule  # type: ignore[assignment]
    return lambda rule, seed, start: (
        make(Generator(seed, start)) if rule == "rejection" else lossless(rule, seed, start)
    )


COUNTED_LOOPS = [name for name, loop in LOOPS.items() if loop.parts.exit is Parts().exit]
"""A proof counts the drafts of lookup and of a draft model; of an early exit it compares texts alone."""


@pytest.mark.parametrize("name", COUNTED_LOOPS)
def test_a_loop_with_one_wrong_part_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = LOOPS[name]
    monkeypatch.setattr(engine_module, "Context", loop.parts.context)
    monkeypatch.setattr(engine_module, "Sampler", loop.parts.sampler)
    monkeypatch.setattr(engine_module, "ModelDrafter", loop.parts.drafter)
    penalties = loop.sampling == COUNTED
    models = pair(model=Stutters if penalties else ToyLM)
    tests = prove(models, Plan((USED if penalties else HOT,)), rules_of(name, loop.parts))
    assert any(isinstance(test, Counted | Compared) and not test.passed for test in tests)


def test_texts_that_differ_are_told_with_the_place() -> None:
    report = report_of(sabotaged)
    test = next(test for test in report.compared if test.difference)
    assert test.equal < test.prompts
    assert test.difference is not None
    assert test.difference.prompt == TEXTS[0][-1]
    assert 1 <= test.difference.token <= SHORT.tokens
    assert test.difference.off != test.difference.on


@pytest.mark.parametrize(
    ("limit", "modes"), [(None, {"1", "2", "5", "auto"}), (3, {"1", "2", "auto"}), (2, {"1", "auto"}), (1, {"auto"})]
)
def test_lengths_that_strict_exactness_forbids_are_left_out(limit: int | None, modes: set[str]) -> None:
    events = list(prove(pair(width_limit=limit), Plan((), texts=TEXTS[:1], tokens=4)))
    assert {event.mode for event in events if isinstance(event, Compared)} == modes


def test_lengths_over_which_the_cache_cannot_go_back_are_left_out() -> None:
    class Short(ToyLM):
        reach = 1

    events = list(prove(pair(model=Short, width_limit=3), Plan((), texts=TEXTS[:1], tokens=4)))
    assert {event.mode for event in events if isinstance(event, Compared)} == {"1", "auto"}


def test_no_two_tests_share_their_seeds() -> None:
    report = report_of(plan=Plan((HOT, replace(HOT, name="hot again")), texts=()))
    for first, again in zip(report.counted[:4], report.counted[4:], strict=True):
        assert (first.rule, first.draft, first.kept_expected) == (again.rule, again.draft, again.kept_expected)
        assert first.p_values != again.p_values


def test_how_far_it_is_runs_from_0_to_1() -> None:
    shares: dict[str, list[float]] = {}
    for event in prove(pair(), Plan((HOT,), texts=TEXTS[:2], tokens=4)):
        if isinstance(event, Working):
            shares.setdefault(event.what, []).append(event.share)
    assert list(shares) == ["counting answers", "comparing texts"]
    for found in shares.values():
        assert found == sorted(found)
        assert 0 <= found[0] < 0.1
        assert 0.8 < found[-1] < 1


def test_without_a_cache_that_goes_back_there_is_nothing_to_prove() -> None:
    with pytest.raises(ModelError, match="nothing is drafted"):
        list(prove(Pair(ToyLM(VOCAB, kind="recurrent")), SHORT))


def test_without_a_prompt_that_repeats_itself_lookup_cannot_be_tested() -> None:
    with pytest.raises(ModelError, match="lookup cannot be tested"):
        list(prove(Pair(ToyModel(ToyVocabulary([b"\xff", b"\xfe"]))), SHORT))


@pytest.mark.tiny
def test_a_real_model_passes_and_the_sabotage_of_it_does_not(tiny_path: Path) -> None:
    loaded = load_pair(EngineConfig(target=tiny_path, n_ctx=1024, threads=1), lambda _: None)
    setting = replace(prove_plan.settings(250)[2], conversations=prove_plan.CONVERSATIONS[:1])
    plan = Plan((setting,), texts=TEXTS[:1], tokens=8, lengths=(1,))
    with closing(loaded):
        for rules, passes in ((lossless, True), (sabotaged, False)):
            *_, report = prove(loaded, plan, rules)
            assert isinstance(report, Report)
            assert report.passed == passes
