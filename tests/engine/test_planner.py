"""The planner: off, fixed, and the first auto; pure functions over costs and estimates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Speculation
from engine.drafters import Offer
from engine.planner import MARGIN, Costs, Estimate, Planner, gains, needed

CPU = Costs(lambda width: {1: 28, 2: 47, 3: 60, 4: 72, 5: 91, 6: 106, 7: 123, 8: 128}.get(width, 9.0 * width), 15.0)
GPU = Costs(lambda width: 10 + 0.1 * width, 0.6)
LONG = Offer("lookup", 15, match=16)


def auto(costs: Costs, limit: int | None = None) -> Planner:
    return Planner(Speculation(), costs, limit)


def test_off_never_drafts_whatever_is_offered() -> None:
    planner = Planner(Speculation(mode="off"), GPU)
    assert planner.limit(100) == 0
    assert planner.plan([LONG]).source is None


@given(st.integers(1, 64), st.integers(0, 100), st.one_of(st.none(), st.integers(1, 16)))
def test_a_fixed_length_is_kept_within_room_and_width(length: int, room: int, width: int | None) -> None:
    planner = Planner(Speculation(mode="fixed", length=length), CPU, width)
    assert planner.limit(room) == min(length, room, room if width is None else width - 1)


def test_fixed_takes_the_draft_model_where_there_is_one() -> None:
    planner = Planner(Speculation(mode="fixed", length=3), CPU)
    assert planner.plan([Offer("lookup", 3, 5), Offer("model", 3)]).source == "model"
    assert planner.plan([Offer("lookup", 3, 5)]).source == "lookup"
    assert planner.plan([]).source is None


@given(st.floats(0, 1), st.integers(1, 10), st.floats(0.05, 1))
def test_gains_follow_the_theory(alpha: float, length: int, draft: float) -> None:
    flat = gains([alpha] * length, lambda _: 1.0, draft)[-1]
    expected = sum(alpha**i for i in range(length + 1))
    assert flat == pytest.approx(expected / (1 + length * draft))


def test_a_slow_draft_model_is_left_out_and_the_reason_has_both_numbers() -> None:
    plan = auto(CPU).plan([Offer("model", 8)])
    assert plan.source is None
    assert "draft model" in plan.why
    assert needed(8, CPU.target, 15.0) is None or f"{needed(8, CPU.target, 15.0):.2f}" in plan.why


def test_a_long_match_is_copied_where_a_short_one_is_not() -> None:
    assert auto(CPU).plan([LONG]).length > 3
    assert auto(CPU).plan([Offer("lookup", 15, match=2)]).source is None


def test_a_cheap_draft_pays_on_a_machine_with_cheap_wide_passes() -> None:
    plan = auto(GPU).plan([Offer("model", 16)])
    assert plan.source == "model"
    assert plan.length >= 4


def test_acceptance_is_learned_and_forgotten() -> None:
    planner = auto(GPU)
    plan = planner.plan([Offer("model", 16)])
    for _ in range(60):
        planner.observe(plan, 8, 0)
    low = planner.plan([Offer("model", 16)])
    assert low.length < plan.length
    for _ in range(60):
        planner.observe(plan, 8, 8)
    assert planner.plan([Offer("model", 16)]).length > low.length


@given(st.lists(st.booleans(), max_size=200))
def test_an_estimate_stays_a_chance(tests: list[bool]) -> None:
    estimate = Estimate(0.8)
    for kept in tests:
        estimate.learn(kept)
        assert 0 < estimate.chance < 1


@given(st.integers(2, 16), st.integers(2, 40), st.integers(1, 63))
def test_auto_never_exceeds_an_offer_and_never_drafts_without_a_margin(width: int, match: int, length: int) -> None:
    planner = auto(CPU, width)
    plan = planner.plan([Offer("lookup", min(length, planner.limit(63)), match)])
    assert plan.length <= min(length, width - 1)
    if plan.source:
        assert MARGIN > 1
        assert plan.length > 0
