"""A seed fixes the text (row A10): other code that draws, a busy window and broken turns change nothing."""

import random
from collections.abc import Callable, Sequence
from contextlib import closing

import numpy as np
import pytest

from engine.backends.toy import EarlyLM, ToyLM
from engine.config import Request, Rule, Sampling, Speculation
from engine.engine import Engine
from engine.events import Finished
from tests.fakes import FakeClock, engine_of, request

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
RULES: list[Rule] = ["rejection", "coupled"]
MODES = [Speculation(mode="off"), Speculation(mode="fixed", length=1), Speculation(mode="fixed", length=4)]


def new() -> Engine:
    return engine_of(ToyLM(16, seed=1), ToyLM(16, seed=1, blur=0.4))


def alone() -> Engine:
    """The same target, which drafts for itself."""
    return engine_of(EarlyLM(16, seed=1), exit_layers=6)


def asked(seed: int | None, rule: Rule, mode: Speculation = MODES[2]) -> Request:
    sampling = Sampling(temperature=1.0, seed=seed)
    return request(sampling, Speculation(mode=mode.mode, length=mode.length, rule=rule), max_tokens=20)


def said(engine: Engine, wanted: Request, between: Callable[[], object] = lambda: None) -> list[int]:
    """The answer's ids; `between` is called after each event."""
    ids: list[int] = []
    for event in engine.answer_ids(PROMPT, wanted):
        between()
        if isinstance(event, Finished):
            ids = event.answer.ids
    assert len(ids) == 20
    return ids


@pytest.mark.parametrize("new", [new, alone])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", RULES)
def test_a_seed_gives_the_same_ids_and_other_seeds_give_others(
    rule: Rule, mode: Speculation, new: Callable[[], Engine]
) -> None:
    answers = [said(new(), asked(seed, rule, mode)) for seed in range(20)]
    assert [said(new(), asked(seed, rule, mode)) for seed in range(20)] == answers
    engine = new()
    assert [said(engine, asked(seed, rule, mode)) for seed in range(20)] == answers
    assert len(set(map(tuple, answers))) >= 19


def test_with_the_coupled_rule_the_seed_alone_decides() -> None:
    for seed in range(20):
        first, *others = (
            said(engine(), asked(seed, "coupled", mode)) for engine in (new, alone) for mode in [*MODES, Speculation()]
        )
        assert others == [first] * 7


@pytest.mark.parametrize("rule", RULES)
def test_other_code_that_draws_changes_nothing(rule: Rule) -> None:
    wanted = asked(7, rule)
    plain = said(new(), wanted)

    def draws() -> None:
        np.random.seed(0)
        np.random.random(3)
        random.seed(0)

    assert said(new(), wanted, draws) == plain
    other = new()
    busy = other.answer_ids([5, 5, 5], asked(7, rule))
    assert said(new(), wanted, lambda: next(busy, None)) == plain


@pytest.mark.parametrize("rule", RULES)
def test_turns_that_were_broken_off_change_nothing(rule: Rule) -> None:
    wanted = asked(7, rule)
    plain = said(new(), wanted)
    total = len(list(new().answer_ids(PROMPT, wanted)))
    for cut in range(total):
        engine = new()
        with closing(engine.answer_ids(PROMPT, wanted)) as events:
            for _ in range(cut + 1):
                next(events)
        assert said(engine, wanted) == plain


def test_the_time_that_passes_changes_nothing_where_the_planner_goes_by_it() -> None:
    def at(milliseconds: Sequence[float]) -> list[int]:
        engine, clock = new(), FakeClock()
        engine._clock = clock
        for cache, slow in zip(engine.context.caches, milliseconds, strict=True):
            clock.takes(cache.model, lambda width, slow=slow: slow * width / 1000)  # type: ignore[arg-type]
        return said(engine, asked(7, "coupled", Speculation()))

    assert at([1.0, 50.0]) == at([50.0, 1.0]) == said(new(), asked(7, "coupled", MODES[0]))


@pytest.mark.parametrize("rule", RULES)
def test_without_a_seed_each_answer_is_another(rule: Rule) -> None:
    assert len({tuple(said(new(), asked(None, rule))) for _ in range(5)}) == 5
