"""The planner: off, fixed and auto; pure functions over costs and chances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Speculation
from engine.costs import Costs, DraftCost, LiveCosts, Spent
from engine.drafters import Mark, Offer
from engine.experience import Experience
from engine.gain import gains, needed
from engine.planner import Drafting, Planner
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Proposal

CPU = Costs(
    lambda width, _: {1: 28, 2: 47, 3: 60, 4: 72, 5: 91, 6: 106, 7: 123, 8: 128}.get(width, 16.0 * width),
    {"model": DraftCost(15.0)},
)
GPU = Costs(lambda width, _: 10 + 0.1 * width, {"model": DraftCost(0.6)})


def lookup(length: int, match: int, other: int = 0) -> Offer:
    return Offer("lookup", length, range(length), [Mark(match + i, 1, other) for i in range(length)])


LONG = lookup(15, 32)


def auto(costs: Costs, limit: int | None = None, **agreed: float) -> Planner:
    return Planner(Speculation(), Experience(costs, agreed), limit)  # type: ignore[arg-type]


def row(lead: float = 2.0) -> Distribution:
    return Distribution(np.ones(1), np.zeros(1, np.int64), lead)


def draft(
    planner: Planner, *offers: Offer, room: int = 100, leads: tuple[float, ...] = (), plain: bool = False
) -> Drafting:
    """A round's drafting as the loop does it; a draft model's rows lead by `leads`, then by 2; `plain` where due."""
    if not plain:
        planner._learned._drafted = 0
    drafting = planner.begin(room, 0)
    while (left := drafting.room - drafting.drafted) > 0:
        on_offer = [
            Offer(o.source, min(o.length, left), o.tokens[:left], o.marks[:left], o.lag)
            for o in offers
            if not (o.tokens and drafting.drafted)
        ]
        wanted = drafting.next(on_offer)
        if wanted is None:
            break
        if wanted.tokens:
            drafting.took(wanted, [Proposal(token, None) for token in wanted.tokens[: wanted.length]], 0.0)
            continue
        at = drafting.drafted
        next_row = row(leads[at]) if at < len(leads) else row()
        sent = drafting.submits([next_row])
        drafting.took(wanted, [Proposal(0, next_row)] if sent else [], 0.0)
    return drafting


def learn(planner: Planner, drafting: Drafting, accepted: int, target_ms: float = 0.0) -> None:
    emitted = [proposal.token for proposal in drafting.proposals[:accepted]] + [-1]
    planner.observe(drafting, emitted, accepted, target_ms, 0)


def cost(costs: Costs):  # type: ignore[no-untyped-def]
    return lambda width: costs.target(width, 0)


def test_one_pass_that_is_held_up_moves_a_cost_a_little() -> None:
    live = LiveCosts(Costs(GPU.target, {"model": DraftCost(1.0)}))
    live.observe(4, "model", Spent(4 * 50.0, 50 * live.target(5, 0), 4), 0)
    assert live.target(5, 0) < 3 * GPU.target(5, 0)
    assert live.draft("model").ms < 2


def test_off_drafts_nothing() -> None:
    assert Planner(Speculation(mode="off"), Experience(GPU)).begin(100, 0).next([LONG]) is None


BOUND = st.one_of(st.none(), st.integers(1, 16))


@given(st.integers(1, 64), st.integers(-1, 100), BOUND, BOUND, st.sampled_from(["model", "exit", "lookup"]))
def test_a_fixed_length_is_kept_within_room_width_and_reach(
    asked: int, room: int, width: int | None, reach: int | None, source: Source
) -> None:
    planner = Planner(Speculation(mode="fixed", length=asked), Experience(CPU), width, reach)
    most = max(0, min(asked, room, room if width is None else width - 1, room if reach is None else reach))
    offer = lookup(100, 4) if source == "lookup" else Offer(source, 100)
    assert draft(planner, offer, room=room).drafted == most


@given(st.floats(0.7, 1), st.integers(1, 10), st.floats(0.05, 1))
def test_gains_follow_the_theory(alpha: float, k: int, ms: float) -> None:
    flat = gains([alpha] * k, lambda _: 1.0, DraftCost(ms))[-1]
    expected = sum(alpha**i for i in range(k + 1))
    assert flat == pytest.approx(expected / (1 + k * ms))


@given(st.integers(1, 12), st.floats(0, 30))
def test_needed_is_the_least_that_pays(k: int, ms: float) -> None:
    dear = DraftCost(ms)
    least = needed(k, cost(CPU), dear)
    if least is None:
        assert max(gains([1.0] * k, cost(CPU), dear)) < 1
    else:
        assert max(gains([least] * k, cost(CPU), dear)) >= 1
        assert least == 0.01 or max(gains([least - 0.01] * k, cost(CPU), dear)) < 1


def test_a_draft_model_that_cannot_pay_is_left_out_and_never_tried() -> None:
    planner = auto(CPU)
    for _ in range(500):
        drafting = draft(planner, Offer("model", 8))
        assert not drafting.drafted
        assert drafting._passes == 0
        learn(planner, drafting, 0, 28.0)
    assert "draft model: too slow to pay here, has 0.75" in drafting.reason.text
    assert drafting.reason.needed is None
    assert drafting.reason.observed == pytest.approx(0.75)


def test_a_draft_model_that_could_pay_is_tried_within_a_hundredth_of_the_time() -> None:
    """Its chance is far too low; the milliseconds of its passes count as lost."""
    dear = Costs(GPU.target, {"model": DraftCost(4.0)})
    planner = auto(dear, model=0.02)
    spent = explored = 0.0
    for _ in range(3000):
        drafting = draft(planner, Offer("model", 8))
        learn(planner, drafting, 0, GPU.target(1 + drafting.drafted, 0))
        spent += GPU.target(1, 0)
        explored += 4.0 * drafting._passes
    assert 0 < explored < 0.015 * spent
    learned = planner._learned.acceptance
    assert learned.sampled("model", True) < 0.1


def test_a_long_match_is_copied_where_a_short_one_is_not() -> None:
    assert draft(auto(CPU), LONG).drafted > 3
    assert not draft(auto(CPU), lookup(15, 2)).drafted
    assert draft(auto(CPU), lookup(15, 32)).drafted > draft(auto(CPU), lookup(15, 32, other=1)).drafted


def test_a_cheap_draft_pays_on_a_machine_with_cheap_wide_passes() -> None:
    drafting = draft(auto(GPU), Offer("model", 16))
    assert drafting.drafted >= 4
    assert set(drafting.sources) == {"model"}


def test_what_a_draft_model_has_to_read_first_must_pay_as_well() -> None:
    assert not draft(auto(GPU), Offer("model", 16, lag=5000)).drafted
    assert draft(auto(GPU), Offer("model", 16, lag=10)).drafted


@pytest.mark.parametrize("source", ["model", "lookup"])
def test_acceptance_is_learned_and_forgotten(source: Source) -> None:
    offer = Offer("model", 16) if source == "model" else lookup(16, 4)
    planner = auto(GPU)
    first = draft(planner, offer)
    for _ in range(20):
        learn(planner, first, 0)
    low = draft(planner, offer)
    assert low.drafted < first.drafted
    for _ in range(20):
        learn(planner, first, first.drafted)
    assert draft(planner, offer).drafted > low.drafted


def test_copies_are_learned_from_without_being_drafted() -> None:
    planner = auto(CPU)
    offer = lookup(20, 2)
    assert not draft(planner, offer).drafted
    for _ in range(60):
        drafting = planner.begin(100, 0)
        drafting.next([offer])
        planner.observe(drafting, [0], 0, 28.0, 0)  # the token that was offered came
    assert draft(planner, offer).drafted


def test_a_draft_model_that_is_unsure_stops() -> None:
    """Its first rows say that they are worth much, or little."""
    dear = Costs(lambda width, _: 10.0 + 3.5 * (width - 1), {"model": DraftCost(0.5)})
    sure, unsure = draft(auto(dear), Offer("model", 16)), draft(auto(dear), Offer("model", 16), leads=(9.0, 0.01))
    assert sure.drafted > unsure.drafted == 1
    assert unsure._passes == 2
    assert not draft(auto(dear), Offer("model", 16), leads=(0.01,)).drafted


def test_what_is_sure_is_learned_by_class() -> None:
    planner = auto(GPU)
    drafting = draft(planner, Offer("model", 3), leads=(9.0, 0.1, 9.0))
    before = [planner._learned.acceptance.sampled("model", True, row(lead)) for lead in (9.0, 0.1)]
    for _ in range(30):
        learn(planner, drafting, 1)
    after = [planner._learned.acceptance.sampled("model", True, row(lead)) for lead in (9.0, 0.1)]
    assert after[0] / before[0] > after[1] / before[1]


def test_a_copy_goes_on_with_the_draft_model() -> None:
    """Another piece is planned behind what was copied."""
    drafting = draft(auto(GPU), lookup(4, 30), Offer("model", 16))
    assert drafting.sources[:4] == ["lookup"] * 4
    assert "model" in drafting.sources[4:]


@given(st.integers(2, 16), st.integers(2, 40), st.integers(1, 63))
def test_auto_never_exceeds_an_offer_nor_the_width(width: int, match: int, offered: int) -> None:
    assert draft(auto(CPU, width), lookup(offered, match)).drafted <= min(offered, width - 1)


def test_plain_rounds_become_rare() -> None:
    planner = auto(GPU)
    plain = []
    for at in range(2000):
        drafting = planner.begin(100, 0)
        if wanted := drafting.next([LONG]):
            drafting.took(wanted, [Proposal(token, None) for token in wanted.tokens], 0.0)
        learn(planner, drafting, drafting.drafted, GPU.target(1 + drafting.drafted, 0))
        if not drafting.drafted:
            plain.append(at)
    assert plain[0] <= 32
    assert len(plain) <= 12


def test_a_table_that_was_measured_wrongly_is_put_right_by_rounds() -> None:
    """As after a calibration on a busy machine: width 1 seemed slow, so drafting seemed cheap."""
    planner = auto(Costs(lambda width, _: 150 if width == 1 else CPU.target(width, 0), CPU.drafts))
    for _ in range(600):
        drafting = draft(planner, Offer("model", 8), plain=True)
        learn(planner, drafting, round(drafting.drafted * 0.7), CPU.target(drafting.drafted + 1, 0))
    assert not draft(planner, Offer("model", 8)).drafted


def test_a_machine_that_slows_down_as_a_whole_changes_no_decision() -> None:
    planner = auto(GPU)
    before = draft(planner, LONG).drafted
    for _ in range(50):
        planner._learned.costs.observe(0, None, Spent(0, 5 * GPU.target(1, 0)), 0)
        planner._learned.costs.observe(before, None, Spent(0, 5 * GPU.target(before + 1, 0)), 0)
    assert draft(planner, LONG).drafted == before


def test_what_was_learned_is_taken_up_again() -> None:
    planner = auto(GPU)
    first = draft(planner, Offer("model", 16))
    for _ in range(20):
        learn(planner, first, 0)
    again = Planner(Speculation(), Experience(GPU, learned=planner._learned.learned))
    assert draft(again, Offer("model", 16)).drafted == draft(planner, Offer("model", 16)).drafted < first.drafted


# A third source

EARLY = Costs(GPU.target, {"exit": DraftCost(3.0, 1.0)})


def test_a_fixed_length_takes_an_early_exit_before_lookup_and_after_a_draft_model() -> None:
    planner = Planner(Speculation(mode="fixed", length=3), Experience(CPU))
    model, early, copied = Offer("model", 3), Offer("exit", 3), lookup(3, 5)
    for offers, source in (((copied, model, early), "model"), ((copied, early), "exit"), ((early,), "exit")):
        drafting = draft(planner, *offers)
        assert drafting.sources == [source] * 3
    assert "early exit up to 3" in drafting.reason.text


@given(st.floats(0.7, 1), st.integers(1, 8), st.floats(0, 5), st.floats(-1, 3))
def test_what_the_verifying_pass_saves_counts(alpha: float, k: int, ms: float, saved: float) -> None:
    def wide(width: int) -> float:
        return 10.0 + 4.0 * width

    found = gains([alpha] * k, wide, DraftCost(ms, saved))[-1]
    expected = sum(alpha**i for i in range(k + 1))
    assert found == pytest.approx(expected * wide(1) / (wide(k + 1) + k * ms - k * saved))
    assert DraftCost(ms).net == ms


def test_measured_agreement_is_where_learning_begins() -> None:
    def drafted(agreement: float) -> int:
        planner = auto(EARLY, exit=agreement)
        planner._learned.acceptance  # noqa: B018
        chance = planner._learned.acceptance.sampled("exit", True)
        assert chance == pytest.approx(agreement)
        drafting = planner.begin(100, 0)
        assert isinstance(drafting.next([Offer("exit", 16)]), Offer) == (agreement > 0.5)
        return int(drafting.reason.text.split()[4].rstrip(":")) if agreement > 0.5 else 0

    assert drafted(0.1) == 0 < drafted(0.7) < drafted(0.95)


def test_each_source_that_samples_learns_alone() -> None:
    planner = auto(Costs(GPU.target, {"exit": DraftCost(0.3, 0.1)}))
    acceptance = planner._learned.acceptance
    before = {source: acceptance.sampled(source, True) for source in ("model", "exit")}
    drafting = draft(planner, Offer("exit", 4))
    for _ in range(20):
        learn(planner, drafting, 0)
    assert acceptance.sampled("exit", True) < before["exit"]
    assert acceptance.sampled("model", True) == before["model"]


def test_rounds_teach_what_a_source_costs_and_saves() -> None:
    live = Experience(EARLY).costs
    for _ in range(40):
        live.observe(4, "exit", Spent(4 * 5.0, GPU.target(5, 0) - 4 * 2.0, 4), 0)
    assert live.draft("exit").ms == pytest.approx(5.0)
    assert live.draft("exit").saved == pytest.approx(2.0)
    assert live.draft("model") == DraftCost(0.0)
    for width in (1, 5, 9):
        assert live.target(width, 0) == pytest.approx(GPU.target(width, 0))


def test_an_exit_in_vain_says_nothing_of_what_a_plain_round_costs() -> None:
    """The verifying pass takes up the layers that have run, so it is cheaper than one without."""
    planner = auto(Costs(lambda width, _: 8.0 + 6.0 * width, {"exit": DraftCost(0.5, 0.5)}), exit=0.8)
    for _ in range(5):
        drafting = draft(planner, Offer("exit", 4), leads=(0.0,))
        assert (drafting.drafted, drafting.sampling) == (0, "exit")
        planner.observe(drafting, [1], 0, 14.0 - 0.5, 0)
    assert planner._learned.costs.target(1, 0) == pytest.approx(14.0)
    assert planner._learned.costs.draft("exit").saved == pytest.approx(0.5)


@pytest.mark.parametrize("copied", [(), (lookup(1, 1, 3),)])
def test_what_was_asked_in_vain_is_told(copied: tuple[Offer, ...]) -> None:
    drafting = draft(auto(Costs(CPU.target, {"model": DraftCost(1.0)})), *copied, Offer("model", 8), leads=(0.0,))
    assert not drafting.drafted
    assert drafting.reason.text.startswith("off: draft model: not sure enough of what comes next")
    assert ("a match of 1" in drafting.reason.text) == bool(copied)
    assert drafting.reason.source == ("lookup" if copied else "model")


@pytest.mark.parametrize("agreement", [0.0, 1.0])
def test_an_exit_that_agreed_nowhere_or_everywhere_is_not_beyond_doubt(agreement: float) -> None:
    acceptance = auto(EARLY, exit=agreement)._learned.acceptance
    for _ in range(50):
        for seen in (row(), None):
            assert 0 < acceptance.sampled("exit", True, seen) < 1
        acceptance.learn_sampled("exit", True, row(), bool(agreement))


def test_the_reason_not_to_leave_early_has_both_numbers() -> None:
    planner = auto(Costs(CPU.target, {"model": DraftCost(15.0), "exit": DraftCost(9.0, 2.0)}), exit=0.3)
    drafting = draft(planner, Offer("model", 8), Offer("exit", 8))
    assert not drafting.drafted
    least = needed(8, cost(CPU), DraftCost(7.0))
    assert f"early exit: {f'needs {least:.2f}' if least else 'too slow to pay here'}, has 0.30" in drafting.reason.text
    assert "draft model" in drafting.reason.text


def test_of_all_sources_the_one_that_promises_most_is_taken() -> None:
    planner = auto(Costs(GPU.target, {"model": DraftCost(3.0), "exit": DraftCost(3.0, 2.5)}), exit=0.8)
    assert draft(planner, lookup(8, 2), Offer("model", 8), Offer("exit", 8)).sources[0] == "exit"


def test_only_one_source_that_samples_has_a_part_in_a_round() -> None:
    planner = auto(Costs(GPU.target, {"model": DraftCost(0.5), "exit": DraftCost(0.5, 0.2)}), exit=0.8)
    assert set(draft(planner, Offer("model", 2), Offer("exit", 8)).sources) == {"exit"}


def test_after_one_source_that_samples_no_other_is_asked_in_the_round() -> None:
    planner = auto(Costs(GPU.target, {"model": DraftCost(0.5), "exit": DraftCost(0.5, 0.2)}), exit=0.9)
    drafting = planner.begin(100, 0)
    drafting.took(Offer("model", 8), [Proposal(0, row())], 0.5)
    assert drafting.next([Offer("exit", 8)]) is None
    assert drafting.next([Offer("model", 8)]) is not None


def test_drafts_behind_a_refused_piece_teach_nothing() -> None:
    """A copy of two of which one was kept, and a token of the draft model behind it."""
    planner = auto(GPU)
    drafting = planner.begin(100, 0)
    copied = lookup(2, 30)
    drafting.next([copied])
    drafting.took(copied, [Proposal(0, None), Proposal(1, None)], 0.0)
    drafting.took(Offer("model", 1), [Proposal(2, row())], 0.5)
    before = planner._learned.acceptance.sampled("model", True)
    planner.observe(drafting, [0, 7], 1, 10.0, 0)
    assert planner._learned.acceptance.sampled("model", True) == before
    planner.observe(drafting, [0, 1, 7], 2, 10.0, 0)
    assert planner._learned.acceptance.sampled("model", True) < before
