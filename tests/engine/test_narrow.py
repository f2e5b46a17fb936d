"""Narrow rows: what candidates give is what the whole row gives, bit for bit, and the loop says the same with them."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine import narrow
from engine.backends.toy import ToyLM
from engine.config import Request, Sampling, Speculation
from engine.context import Cache, Context
from engine.errors import DecodeFailed, Interrupted
from engine.model import FloatArray
from engine.narrow import MOST, SPARE, Candidates, wanted
from engine.penalties import Used
from engine.sampler import Sampler
from engine.sampling import FIRST_NUCLEUS, after
from engine.stats import Answer
from tests.engine.narrowing import Case, NarrowToy, cases, outcome, pick
from tests.engine.rows import Borderline, dense, plain, reference, steady
from tests.fakes import engine_of, last, request

SIZE = 300
"""Tokens of the toys: enough for a selection with spare ones."""
PROMPT = (3, 1, 4, 1, 5)


def never() -> FloatArray:
    raise AssertionError("the whole row was fetched")


def narrowed(case: Case, order: int, named: Sequence[int]) -> Candidates:
    return pick(case.row, case.size, case.count, named, lambda: case.row, order)


# One row

LOWERED = Case(np.array([5, 4, 3, 3], np.float32), 4, plain(top_k=2, logit_bias={0: -99.0}), [], [], 0, [])
"""A touched token is selected and then falls behind a tie at the border."""


@settings(steady, max_examples=400)
@given(cases(), st.integers(0, 3))
@example(LOWERED, 0)
@example(LOWERED, 1)
def test_candidates_give_what_the_whole_row_gives(case: Case, order: int) -> None:
    chosen = narrowed(case, order, case.named)
    found = outcome(lambda: narrow.after(chosen, case.size, case.sampling, case.used))
    assert found == outcome(lambda: after(case.row, case.size, case.sampling, case.used))


@steady
@given(cases(), st.integers(0, 3), st.sets(st.integers(0, 9)))
@example(Case(np.array([5, 4, 3, 2], np.float32), 4, plain(top_k=1, logit_bias={3: 99.0}), [], [], 0, []), 0, {3})
def test_a_touched_id_that_nobody_named_costs_time_alone(case: Case, order: int, lost: set[int]) -> None:
    chosen = narrowed(case, order, [token for token in case.named if token not in lost])
    found = outcome(lambda: narrow.after(chosen, case.size, case.sampling, case.used))
    assert found == outcome(lambda: after(case.row, case.size, case.sampling, case.used))


@steady
@given(cases(faulty=False), st.integers(0, 3))
def test_candidates_give_what_the_slow_reference_says(case: Case, order: int) -> None:
    bias = case.sampling.logit_bias
    assume(any(case.row[token] + bias.get(token, 0.0) > -math.inf for token in range(case.size)))
    try:
        wanted_row = np.array(reference(case.row, case.size, case.sampling, case.prompt + case.answer, case.answer))
    except Borderline:
        assume(False)
    found = narrow.after(narrowed(case, order, case.named), case.size, case.sampling, case.used)
    np.testing.assert_allclose(dense(found, case.size), wanted_row, rtol=1e-9, atol=1e-15)


@steady
@given(
    st.permutations(range(24)),
    cases(faulty=False),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([0.0, 0.8]),
)
@example(list(range(24)), Case(np.zeros(1), 1, plain(logit_bias={0: -2.0, 3: -100.0}), [], [], 1, []), 2, 0.0)
def test_distinct_logits_never_need_the_whole_row(order: list[int], case: Case, top_k: int, temperature: float) -> None:
    row = np.array(order, np.float32)
    case.sampling = plain(
        temperature=temperature, top_k=top_k, repeat_penalty=case.sampling.repeat_penalty,
        frequency_penalty=case.sampling.frequency_penalty, logit_bias=case.sampling.logit_bias,
    )  # fmt: skip
    case.size = row.size
    asked = (2 if case.sampling.greedy else top_k) + len(case.named) + 1
    assume(asked < row.size)
    chosen = pick(row, row.size, asked, case.named, never)
    found = outcome(lambda: narrow.after(chosen, row.size, case.sampling, case.used))
    assert found == outcome(lambda: after(row, row.size, case.sampling, case.used))


@pytest.mark.parametrize("top_k", [1, 40, FIRST_NUCLEUS - 1, FIRST_NUCLEUS + 1, 900])
@pytest.mark.parametrize("step", [2.0**-20, 2.0**-4, 1.0])
def test_wide_rows_with_many_ties(top_k: int, step: float) -> None:
    generator = np.random.default_rng(top_k)
    row = (np.round(generator.standard_normal(5000) * 3 / step) * step).astype(np.float32)
    used = Used(set(range(0, 5000, 50)), dict.fromkeys(range(0, 5000, 125), 2))
    for filters in (
        {"temperature": 0.0},
        {"top_p": 1.0, "min_p": 0.0},
        {"top_p": 0.95, "min_p": 0.0, "temperature": 4.0},
        {"top_p": 0.3, "min_p": 0.01},
        {"top_p": 0.99, "repeat_penalty": 1.3, "frequency_penalty": 0.7},
        {"top_p": 0.99, "repeat_penalty": 0.6, "presence_penalty": -2.0, "logit_bias": {7: 9.0, 4999: -math.inf}},
    ):
        sampling = Sampling(**{"top_k": top_k, **filters})
        named = sorted({*used.recent, *used.counts, *sampling.logit_bias})
        count = wanted(sampling, row.size, len(named))
        assert count is not None
        chosen = pick(row, row.size, count, named, lambda: row, order=1)
        found = outcome(lambda c=chosen, s=sampling: narrow.after(c, row.size, s, used))
        assert found == outcome(lambda s=sampling: after(row, row.size, s, used))


def test_what_is_wanted() -> None:
    assert wanted(Sampling(temperature=0, top_k=0), SIZE, 0) == 2 + SPARE
    assert wanted(Sampling(top_k=40), SIZE, 5) == 45 + SPARE
    assert wanted(Sampling(top_k=0), 10**6, 0) is None
    assert wanted(Sampling(top_k=SIZE), SIZE, 0) is None
    assert wanted(Sampling(top_k=40), 40 + SPARE - 1, 0) is None
    assert wanted(Sampling(top_k=40), 10**6, MOST) is None


# All rows of a round


@steady
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.lists(st.integers(0, 40), max_size=8),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([1.0, 1.4]),
    st.sampled_from([0, 1, 3, 64]),
    st.sampled_from([0.0, 0.7]),
)
def test_all_that_a_round_touches_is_named_before_its_pass(
    prompt: list[int], answer: list[int], ahead: list[int], repeat: float, back: int, frequency: float
) -> None:
    sampling = plain(
        top_k=5, repeat_penalty=repeat, repeat_last=back, frequency_penalty=frequency, logit_bias={41: -1.0, SIZE: 2.0}
    )
    sampler, ids = Sampler(sampling, SIZE, frozenset(), len(prompt)), prompt + answer
    want = sampler.want(ids, ahead)
    assert want is not None
    assert len(set(want.named)) == len(want.named)
    assert max(want.named) < SIZE
    row = np.random.default_rng(0).permutation(SIZE).astype(np.float32)
    for i in range(len(ahead) + 1):
        chosen = pick(row, SIZE, want.count, want.named, never)
        found, whole = (outcome(partial(sampler, kind, ids, ahead[:i])) for kind in (chosen, row))
        assert found == whole


def test_whole_rows_are_wanted_where_everything_may_be_drawn() -> None:
    assert Sampler(plain(), SIZE, frozenset(), 1).want([1, 2], [3]) is None


# The loop

SAMPLINGS = {
    "greedy": Sampling(temperature=0),
    "greedy with penalties": Sampling(temperature=0, repeat_penalty=1.3, repeat_last=4, frequency_penalty=0.5),
    "default": Sampling(seed=5),
    "hot": Sampling(temperature=1.5, top_k=60, top_p=1.0, min_p=0.0, seed=6),
    "penalties": Sampling(
        temperature=1.2,
        repeat_penalty=0.7,
        repeat_last=3,
        presence_penalty=1.0,
        logit_bias={2: 4.0, 9: -math.inf},
        seed=7,
    ),
    "all kept": Sampling(top_k=0, temperature=1.2, seed=8),
}


def answered(target: ToyLM, draft: ToyLM | None, asked: Request) -> Answer:
    return last(engine_of(target, draft).answer_ids(PROMPT, asked))


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("rule", ["rejection", "coupled"])
@pytest.mark.parametrize("length", [0, 3])
def test_the_loop_says_the_same_with_narrow_rows(name: str, rule: str, length: int) -> None:
    mode = {"mode": "fixed", "length": length} if length else {"mode": "off"}
    asked = request(SAMPLINGS[name], Speculation(rule=rule, **mode), max_tokens=60)  # type: ignore[arg-type]
    target, draft = NarrowToy(SIZE, seed=1, eog=[0]), NarrowToy(SIZE, seed=1, blur=0.2, eog=[0])
    found = answered(target, draft, asked)
    whole = answered(ToyLM(SIZE, seed=1, eog=[0]), ToyLM(SIZE, seed=1, blur=0.2, eog=[0]), asked)
    assert (found.ids, found.finish_reason, found.verdict) == (whole.ids, whole.finish_reason, whole.verdict)
    assert found.speculation.drafted == whole.speculation.drafted
    assert found.speculation.accepted == whole.speculation.accepted
    used = [target, draft] if length else [target]
    for model in used:
        kind, other = ("whole", "narrow") if name == "all kept" else ("narrow", "whole")
        assert model.asked[kind] > 0
        assert model.asked[other] == model.asked["fetched"] == 0


def test_ties_at_the_border_fetch_whole_rows_while_they_are_valid() -> None:
    class Coarse(NarrowToy):
        def row(self, ids: Sequence[int]) -> FloatArray:
            return np.minimum(np.round(super().row(ids)), 1)

    class CoarseWhole(Coarse):
        narrows = False

    asked = request(Sampling(temperature=1, top_k=30, seed=3), Speculation(mode="fixed", length=3))
    target = Coarse(SIZE, seed=1)
    found = answered(target, Coarse(SIZE, seed=1), asked)
    plain_target = CoarseWhole(SIZE, seed=1)
    assert found.ids == answered(plain_target, CoarseWhole(SIZE, seed=1), asked).ids
    assert target.asked["fetched"] > 0
    assert plain_target.asked["narrow"] == 0


def test_narrow_rows_see_what_a_pass_sees() -> None:
    context = Context(NarrowToy(SIZE, seed=1))
    context.begin(PROMPT)
    sampler = Sampler(Sampling(top_k=5), SIZE, frozenset(), len(PROMPT))
    rows = context.advance_for(sampler.want, context.target, [7, 8], 3)
    for i in range(3):
        whole = ToyLM(SIZE, seed=1).row([*PROMPT, 7, 8][: len(PROMPT) + i])
        np.testing.assert_array_equal(rows[i].logits, whole[rows[i].ids])
    assert context.target.length == len(PROMPT) + 2
    assert context.holds_wide


@pytest.mark.parametrize(
    ("error", "kept"), [(Interrupted("stopped"), 3), (ValueError(), 3), (DecodeFailed("broken"), 0)]
)
def test_a_narrow_pass_that_fails_counts_as_any_other(error: Exception, kept: int) -> None:
    model = NarrowToy(SIZE)
    cache = Cache(model)
    cache.forward([1, 2, 3], 0)

    def fail() -> None:
        raise error

    model.on_narrow = fail
    with pytest.raises(type(error)):
        cache.forward_narrow([4], 1, narrow.Want(70, ()))
    assert cache.length == kept
