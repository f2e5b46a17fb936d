"""The planner: off, fixed, and the first auto; pure functions over costs and estimates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.acceptance import Estimate
from engine.config import Speculation
from engine.costs import Costs, DraftCost, LiveCosts, Spent
from engine.drafters import Offer
from engine.planner import Experience, Plan, Planner, gains, needed

CPU = Costs(
    lambda width: {1: 28, 2: 47, 3: 60, 4: 72, 5: 91, 6: 106, 7: 123, 8: 128}.get(width, 9.0 * width),
    {"model": DraftCost(15.0)},
)
GPU = Costs(lambda width: 10 + 0.1 * width, {"model": DraftCost(0.6)})
NONE = Spent(0, 0)
LONG = Offer("lookup", 15, match=16)


def auto(costs: Costs, limit: int | None = None) -> Planner:
    """A planner that has made its first plain rounds."""
    experience = Experience(costs)
    experience.since_plain = 0
    return Planner(Speculation(), experience, limit)


def plan(planner: Planner, *offers: Offer, room: int = 100) -> Plan:
    return planner.plan(room, lambda limit: [Offer(o.source, min(o.length, limit), o.match) for o in offers])


def length(planned: Plan) -> int:
    return planned.offer.length if planned.offer else 0


def test_one_pass_that_is_held_up_moves_a_cost_a_little() -> None:
    live = LiveCosts(Costs(GPU.target, {"model": DraftCost(1.0)}))
    usual = live.target(5)
    live.observe(4, "model", Spent(4 * 50.0, 50 * usual))
    assert live.target(5) < 2 * usual
    assert live.draft("model").ms < 2
    for _ in range(8):  # it is followed where it stays
        live.observe(4, "model", Spent(4 * 50.0, 50 * usual))
    assert live.target(5) > 40 * usual
    assert live.draft("model").ms > 40


def test_off_asks_for_no_offers() -> None:
    def never(_: int) -> list[Offer]:
        raise AssertionError("asked")

    assert Planner(Speculation(mode="off"), Experience(GPU)).plan(100, never).offer is None


BOUND = st.one_of(st.none(), st.integers(1, 16))


@given(st.integers(1, 64), st.integers(-1, 100), BOUND, BOUND)
def test_a_fixed_length_is_kept_within_room_width_and_reach(
    asked: int, room: int, width: int | None, reach: int | None
) -> None:
    planner = Planner(Speculation(mode="fixed", length=asked), Experience(CPU), width, reach)
    most = max(0, min(asked, room, room if width is None else width - 1, room if reach is None else reach))
    assert length(plan(planner, Offer("model", 100), room=room)) == most


def test_fixed_takes_the_draft_model_where_there_is_one() -> None:
    planner = Planner(Speculation(mode="fixed", length=3), Experience(CPU))
    both = plan(planner, Offer("lookup", 3, 5), Offer("model", 3)).offer
    assert both is not None
    assert both.source == "model"
    assert length(plan(planner, Offer("lookup", 3, 5))) == 3
    assert plan(planner).offer is None


@given(st.floats(0.6, 1), st.integers(1, 10), st.floats(0.05, 1))
def test_gains_follow_the_theory(alpha: float, k: int, draft: float) -> None:
    flat = gains([alpha] * k, lambda _: 1.0, DraftCost(draft))[-1]
    expected = sum(alpha**i for i in range(k + 1))
    assert flat == pytest.approx(expected / (1 + k * draft))


@given(st.integers(1, 12), st.floats(0, 30))
def test_needed_is_the_least_that_pays(k: int, draft: float) -> None:
    cost = DraftCost(draft)
    least = needed(k, CPU.target, cost)
    if least is None:
        assert max(gains([1.0] * k, CPU.target, cost)) < 1
    else:
        assert max(gains([least] * k, CPU.target, cost)) >= 1
        assert least == 0.01 or max(gains([least - 0.01] * k, CPU.target, cost)) < 1


def test_a_slow_draft_model_is_left_out_and_the_reason_has_both_numbers() -> None:
    planned = plan(auto(CPU), Offer("model", 8))
    assert planned.offer is None
    assert "draft model" in planned.why
    least = needed(8, CPU.target, DraftCost(15.0))
    assert (f"{least:.2f}" if least else "too slow") in planned.why
    assert "0.80" in planned.why


def test_a_long_match_is_copied_where_a_short_one_is_not() -> None:
    assert length(plan(auto(CPU), LONG)) > 3
    assert plan(auto(CPU), Offer("lookup", 15, match=2)).offer is None


def test_a_cheap_draft_pays_on_a_machine_with_cheap_wide_passes() -> None:
    planned = plan(auto(GPU), Offer("model", 16)).offer
    assert planned is not None
    assert planned.source == "model"
    assert planned.length >= 4


def test_acceptance_is_learned_and_forgotten() -> None:
    planner = auto(GPU)
    first = plan(planner, Offer("model", 16))
    for _ in range(60):
        planner.observe(first, 8, 0, NONE)
        planner._learned.since_plain = 0
    low = plan(planner, Offer("model", 16))
    assert length(low) < length(first)
    for _ in range(60):
        planner.observe(first, 8, 8, NONE)
        planner._learned.since_plain = 0
    assert length(plan(planner, Offer("model", 16))) > length(low)


@given(st.lists(st.booleans(), max_size=200))
def test_an_estimate_stays_a_chance(tests: list[bool]) -> None:
    estimate = Estimate(0.8)
    for kept in tests:
        estimate.learn(kept)
        assert 0 < estimate.chance < 1


@given(st.integers(2, 16), st.integers(2, 40), st.integers(1, 63))
def test_auto_never_exceeds_an_offer_nor_the_width(width: int, match: int, offered: int) -> None:
    assert length(plan(auto(CPU, width), Offer("lookup", offered, match))) <= min(offered, width - 1)


def test_a_plain_round_is_made_at_first_and_then_rarely() -> None:
    planner = Planner(Speculation(), Experience(GPU))
    plain = []
    for at in range(200):
        planned = plan(planner, LONG)
        drafted = length(planned)
        planner.observe(planned, drafted, drafted, NONE)
        if not drafted:
            plain.append(at)
    assert plain[:3] == [0, 1, 2]
    assert 6 <= len(plain) <= 12


def test_a_table_that_was_measured_wrongly_is_put_right_by_rounds() -> None:
    """As after a calibration on a busy machine: width 1 seemed slow, so drafting seemed cheap."""
    experience = Experience(Costs(lambda width: 150 if width == 1 else CPU.target(width), CPU.drafts))
    planner = Planner(Speculation(), experience)
    for _ in range(200):
        planned = plan(planner, Offer("model", 8))
        drafted = length(planned)
        planner.observe(planned, drafted, round(drafted * 0.7), Spent(drafted * 15.0, CPU.target(drafted + 1)))
    assert plan(planner, Offer("model", 8)).offer is None


def test_a_machine_that_slows_down_as_a_whole_changes_no_decision() -> None:
    planner = auto(GPU)
    before = plan(planner, LONG)
    for _ in range(50):
        planner._learned.costs.observe(0, None, Spent(0, 5 * GPU.target(1)))
        planner._learned.costs.observe(length(before), "lookup", Spent(0, 5 * GPU.target(length(before) + 1)))
    assert length(plan(planner, LONG)) == length(before)


# A third source

EARLY = Costs(GPU.target, {"exit": DraftCost(3.0, 1.0)})


def test_a_fixed_length_takes_an_early_exit_before_lookup_and_after_a_draft_model() -> None:
    planner = Planner(Speculation(mode="fixed", length=3), Experience(CPU))
    model, early, lookup = Offer("model", 3), Offer("exit", 3), Offer("lookup", 3, 5)
    for offers, source in (((lookup, model, early), "model"), ((lookup, early), "exit"), ((early,), "exit")):
        planned = plan(planner, *offers)
        assert planned.offer is not None
        assert planned.offer.source == source
    assert "early exit up to 3" in plan(planner, early).why


@given(st.floats(0.6, 1), st.integers(1, 8), st.floats(0, 5), st.floats(-1, 3))
def test_what_the_verifying_pass_saves_counts(alpha: float, k: int, ms: float, saved: float) -> None:
    def cost(width: int) -> float:
        return 10.0 + 4.0 * width

    found = gains([alpha] * k, cost, DraftCost(ms, saved))[-1]
    expected = sum(alpha**i for i in range(k + 1))
    assert found == pytest.approx(expected * cost(1) / (cost(k + 1) + k * ms - k * saved))
    assert DraftCost(ms).net == ms


def test_measured_agreement_is_where_learning_begins() -> None:
    def drafted(agreement: float) -> int:
        experience = Experience(EARLY, {"exit": agreement})
        experience.since_plain = 0
        return length(plan(Planner(Speculation(), experience), Offer("exit", 16)))

    assert drafted(0.1) == 0 < drafted(0.7) < drafted(0.95)
    assert Experience(EARLY, {"exit": 0.7}).acceptance.sampled("exit").chance == pytest.approx(0.7)
    assert Experience(EARLY, {"exit": 0.7}).acceptance.sampled("model").chance == pytest.approx(0.8)


def test_each_source_that_samples_learns_alone() -> None:
    experience = Experience(EARLY)
    planner = Planner(Speculation(), experience)
    before = {source: experience.acceptance.sampled(source).chance for source in ("model", "exit")}
    for _ in range(20):
        planner.observe(Plan(Offer("exit", 4), "", Speculation()), 4, 0, NONE)
    assert experience.acceptance.sampled("exit").chance < before["exit"]
    assert experience.acceptance.sampled("model").chance == before["model"]


def test_rounds_teach_what_a_source_costs_and_saves_and_leave_the_target_alone() -> None:
    live = Experience(EARLY).costs
    for _ in range(40):
        live.observe(4, "exit", Spent(4 * 5.0, GPU.target(5) - 4 * 2.0))
    assert live.draft("exit").ms == pytest.approx(5.0)
    assert live.draft("exit").saved == pytest.approx(2.0)
    assert live.draft("model") == DraftCost(0.0)
    assert [live.target(width) for width in (1, 5, 9)] == [GPU.target(width) for width in (1, 5, 9)]
    for _ in range(40):
        live.observe(0, "exit", Spent(1.0, 2.0))  # nothing was sent: what began is no measure of anything
    assert live.draft("exit").ms == pytest.approx(5.0)
    assert live.target(1) == GPU.target(1)
    for _ in range(40):
        live.observe(4, "model", Spent(4 * 0.9, 2 * GPU.target(5)))
    assert live.target(5) == pytest.approx(2 * GPU.target(5))


def test_the_reason_not_to_leave_early_has_both_numbers() -> None:
    experience = Experience(Costs(CPU.target, {"model": DraftCost(15.0), "exit": DraftCost(9.0, 2.0)}), {"exit": 0.3})
    experience.since_plain = 0
    planned = plan(Planner(Speculation(), experience), Offer("model", 8), Offer("exit", 8))
    assert planned.offer is None
    least = needed(8, CPU.target, DraftCost(7.0))
    assert f"early exit: {f'needs {least:.2f}' if least else 'too slow to pay here'}, has 0.30" in planned.why
    assert "draft model" in planned.why


def test_of_all_sources_the_one_that_promises_most_is_taken() -> None:
    experience = Experience(Costs(GPU.target, {"model": DraftCost(3.0), "exit": DraftCost(3.0, 2.5)}), {"exit": 0.8})
    experience.since_plain = 0
    planner = Planner(Speculation(), experience)
    best = plan(planner, Offer("lookup", 8, 2), Offer("model", 8), Offer("exit", 8)).offer
    assert best is not None
    assert best.source == "exit"
