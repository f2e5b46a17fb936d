"""The benchmark on the demo's models, whose passes take what a clock is told."""

from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from engine.backends.demo import demo_pair
from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling, Speculation
from engine.costs import Costs, DraftCost, Surface
from engine.engine import Engine
from engine.errors import ConfigError, ModelError
from engine.experiments import bench as module
from engine.experiments.bench import Played, bench, play
from engine.experiments.bench_dump import rendered
from engine.experiments.bench_figures import lines
from engine.experiments.bench_plan import Plan, name
from engine.experiments.bench_prompts import KINDS
from engine.experiments.bench_records import Line, Run, Working
from engine.experiments.bench_texts import FERRY, WORKSHOP
from engine.experiments.compare import Compared, compare, comparison
from engine.experiments.theory import Drafted
from engine.pair import Pair
from tests.fakes import FakeClock, engine_of

PLAN = Plan(kinds=("maths", "chat"), temperatures=(0.0, 0.8), lengths=(2, 4), tokens=60)


def cost(width: int, _context: int) -> float:
    return 28 + 0.6 * (width - 1)


def demo(draft: bool = True, n_ctx: int | None = None) -> Engine:
    """The demo's pair on a clock of its own."""
    clock = FakeClock()
    target, drafter = demo_pair()
    clock.takes(target, lambda n: cost(n, 0) / 1000)
    clock.takes(drafter, lambda n: (3 + 0.2 * (n - 1)) / 1000)
    costs = Costs(cost, {"model": DraftCost(3.0)} if draft else {})
    return Engine(Pair(target, drafter if draft else None, costs=costs), clock)


@pytest.fixture(scope="module")
def events() -> Sequence[Working | Run]:
    return list(bench(demo(), PLAN))


@pytest.fixture(scope="module")
def runs(events: Sequence[Working | Run]) -> list[Run]:
    return [event for event in events if isinstance(event, Run)]


def test_modes_take_turns_within_a_prompt_and_a_temperature(runs: list[Run]) -> None:
    cells = [(run.kind, run.prompt, run.temperature) for run in runs]
    wanted = [(kind, prompt, t) for kind in ("maths", "chat") for prompt in (0, 1) for t in (0.0, 0.8)]
    assert cells == [cell for cell in wanted for _ in range(8)]
    modes = ["off", "fixed 2", "fixed 4", "auto"]
    assert [run.mode for run in runs[:8]] == [*modes, *reversed(modes)]
    assert [run.turn for run in runs[:8]] == [0] * 4 + [1] * 4


def test_progress_goes_from_nothing_to_nearly_all(events: Sequence[Working | Run]) -> None:
    shares = [event.share for event in events if isinstance(event, Working)]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1
    assert {event.what for event in events if isinstance(event, Working)} >= {"maths, greedy", "chat, T 0.8"}


def test_every_run_finds_the_prompt_in_both_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Played] = []

    def noting(engine: Engine, request: Request) -> Played:
        played.append(play(engine, request))
        return played[-1]

    monkeypatch.setattr(module, "play", noting)
    list(bench(demo(), replace_plan(tokens=20)))
    cells = [played[at : at + 9] for at in range(0, len(played), 9)]
    assert len(cells) == 4
    for reads, *counted in cells:
        assert len(reads.answer.ids) <= 2
        for one in counted:
            assert one.prompt == reads.prompt
            assert one.answer.cache.target.read <= 1
            assert one.answer.cache.draft is not None
            assert one.answer.cache.draft.read <= 1


def replace_plan(**changes: object) -> Plan:
    given = {name: getattr(PLAN, name) for name in Plan.__dataclass_fields__}
    return Plan(**{**given, "kinds": ("chat",), **changes})


def test_speed_is_that_of_the_passes_and_theory_is_near(runs: list[Run]) -> None:
    found = {(line.kind, line.temperature, line.mode): line for line in lines(runs)}
    assert len(found) == 16
    for (_, temperature, mode), line in found.items():
        assert isinstance(line, Line)
        if mode == "off":
            assert line.tps == pytest.approx(1000 / 28)
            assert (line.ratio, line.acceptance_rate, line.predicted) == (1, None, 1)
        elif temperature == 0:
            assert line.ratio is not None
            assert line.ratio > 1.2
            assert line.predicted == pytest.approx(line.ratio, rel=0.2)
        assert line.hindsight is not None
        assert line.hindsight >= 1


def test_theory_asks_for_costs_behind_what_the_conversation_held(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[Drafted] = []

    def noting(asked: Iterable[Drafted], chance: float | None, cost: Surface) -> float | None:
        rounds.extend(asked)
        return 1.0

    monkeypatch.setattr(module, "predicted", noting)
    engine = demo()
    played = play(engine, replace(ASKED, speculation=Speculation(mode="fixed", length=3)))
    module._expected(engine, played)
    emitted = 0
    for one, seen in zip(rounds, played.rounds, strict=True):
        assert one == Drafted(seen.drafted, 3.0 if seen.drafted else 0.0, len(played.prompt) + emitted)
        emitted += seen.emitted
    assert emitted == len(played.answer.ids) == 60


def test_texts_are_the_same_in_all_modes() -> None:
    texts: set[tuple[int, ...]] = set()
    engine = demo()
    for speculation in PLAN.modes:
        message = (module.Message(role="user", content="Hello"),)
        asked = Request(messages=message, sampling=PLAN.at(0.8), speculation=speculation, max_tokens=40)
        texts.add(tuple(play(engine, asked).answer.ids))
    assert len(texts) == 1


def test_lookup_alone_is_a_benchmark_too() -> None:
    found = [event for event in bench(demo(draft=False), replace_plan(temperatures=(0.0,))) if isinstance(event, Run)]
    assert len(found) == 16
    assert all(run.plan for run in found if run.mode == "auto")


def test_nothing_is_remembered_from_turn_to_turn() -> None:
    """Lookup drafts the same each time: an answer that was given before is not copied from."""
    asked = replace_plan(kinds=("summarizing",), temperatures=(0.0,), turns=3, lengths=(5,), tokens=120)
    found = [event for event in bench(demo(draft=False), asked) if isinstance(event, Run) and event.mode == "fixed 5"]
    counts = {(run.prompt, run.rounds, run.drafted, run.accepted) for run in found}
    assert len(counts) == 2
    assert all(drafted for _, _, drafted, _ in counts)


def test_no_run_is_planned_by_one_to_the_same_prompt() -> None:
    """What auto learns of an answer may not help it to the same answer in the next turn."""
    asked = replace_plan(kinds=("summarizing",), temperatures=(0.0,), turns=3, lengths=(5,), tokens=120)
    found = [event for event in bench(demo(draft=False), asked) if isinstance(event, Run) and event.mode == "auto"]
    assert len({(run.prompt, run.rounds, run.drafted, run.accepted, run.plan) for run in found}) == 2
    engine = demo(draft=False)
    list(compare(engine, Request(messages=(Message(role="user", content="Say it again, again and again."),)), 1))
    assert engine.learned.classes


def test_a_target_that_cannot_go_back_is_refused() -> None:
    engine = engine_of(ToyLM(6, seed=3, kind="recurrent"))
    with pytest.raises(ModelError, match="take another pair"):
        list(bench(engine, PLAN))
    with pytest.raises(ModelError, match="take another pair"):
        list(compare(engine, Request(messages=())))


@pytest.mark.parametrize(
    "changes", [{"turns": 0}, {"tokens": 1}, {"lengths": (65,)}, {"lengths": (0,)}, {"temperatures": (-1.0,)}]
)
def test_plans_are_in_range(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        replace_plan(**changes)


def test_names_of_modes() -> None:
    assert [name(mode) for mode in PLAN.modes] == ["off", "fixed 2", "fixed 4", "auto"]
    assert {mode.rule for mode in replace_plan(rule="rejection").modes} == {"rejection"}


def test_prompts_are_of_eight_kinds_and_of_the_size_they_should_have() -> None:
    assert list(KINDS) == [
        "chat",
        "writing",
        "reasoning",
        "maths",
        "coding",
        "editing",
        "summarizing",
        "translation",
    ]
    assert all(len(set(kind.prompts)) >= 2 for kind in KINDS.values())
    assert 60 <= len(WORKSHOP.splitlines()) <= 100
    assert "->" not in WORKSHOP
    compile(WORKSHOP, "workshop", "exec")
    assert 550 <= len(FERRY.split()) <= 700
    assert len(FERRY.splitlines()) == 2 * 5 - 1
    assert Plan().work / 30 < 30 * 60  # seconds at 30 tokens a second, were nothing gained


def test_prompts_are_written_out_as_the_model_reads_them() -> None:
    engine = demo()
    texts = rendered(engine.pair.target.vocab, ("chat", "editing"))
    assert list(texts) == ["chat-1", "chat-2", "editing-1", "editing-2"]
    for label, text in texts.items():
        kind, number = label.split("-")
        prompt = KINDS[kind].prompts[int(number) - 1]
        assert text.decode() == f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    engine.pair.target.vocab.bos = engine.pair.target.vocab.control["<|im_start|>"]
    again = rendered(engine.pair.target.vocab, ("chat",))
    assert again["chat-1"] == texts["chat-1"].removeprefix(b"<|im_start|>")


def compared(engine: Engine, request: Request, turns: int = 2) -> list[Compared]:
    return [event for event in compare(engine, request, turns) if isinstance(event, Compared)]


ASKED = Request(
    messages=(module.Message(role="user", content="Hello"),), sampling=Sampling(temperature=0, seed=7), max_tokens=60
)


def test_off_and_on_take_turns_and_are_compared() -> None:
    engine = demo()
    found = compared(engine, ASKED)
    assert [(run.mode, run.turn) for run in found] == [("off", 0), ("auto", 0), ("auto", 1), ("off", 1)]
    told = comparison(engine, found)
    assert list(told.modes) == ["off", "auto"]
    assert told.modes["off"].tps == pytest.approx([1000 / 28] * 2)
    assert told.modes["off"].ttft_s == pytest.approx([0.028] * 2)
    assert list(told.ratios) == ["auto"]
    ratio = told.ratios["auto"]
    assert ratio.low is not None
    assert 1.2 < ratio.low <= (ratio.ratio or 0)
    assert (told.text.verdict, told.text.first_difference) == ("identical", None)


def test_a_fixed_length_is_compared_by_its_name() -> None:
    engine = demo()
    told = comparison(engine, compared(engine, replace(ASKED, speculation=Speculation(mode="fixed", length=3)), 1))
    assert list(told.ratios) == ["fixed 3"]
    assert told.ratios["fixed 3"].low is None


def test_the_first_difference_of_texts_is_told() -> None:
    engine = demo()
    found = compared(engine, ASKED, 1)
    ids = found[1].ids
    other = replace(found[1], ids=[*ids[:4], ids[4] + 1, *ids[5:]])
    told = comparison(engine, [found[0], other]).text
    assert told.verdict == "differs"
    assert told.first_difference is not None
    assert told.first_difference.token == 5
    assert told.first_difference.off != told.first_difference.on


def test_a_comparison_that_was_interrupted_says_what_it_can() -> None:
    engine = demo()
    found = compared(engine, ASKED, 1)
    for part in ([], found[:1], found[1:]):
        assert comparison(engine, part).text.verdict is None
    assert comparison(engine, found[:1]).ratios == {}
    assert comparison(engine, []).modes == {}
    assert comparison(engine, found[1:]).ratios["auto"].ratio is None
