"""Costs by width and context: on lines between those measured, kept if the machine was quiet, put right by rounds."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.calibration_store import CalibrationStore, Key
from engine.cost_book import TRIES, CostBook
from engine.cost_table import COST_WIDTHS, CostTable, measure_costs, timings
from engine.costs import MOST_APART, Costs, DraftCost, LiveCosts, Spent
from engine.errors import Interrupted
from engine.model import FloatArray
from tests.fakes import FakeClock

KEY = Key(file="f", library="l", cpu="c", device="cpu", threads=2)
CPU = CostTable(at={0: {1: 28.0, 2: 47.0, 4: 72.0, 8: 128.0, 16: 146.0, 32: 254.0, 64: 461.0}})


class TimedLM(ToyLM):
    """Takes 10 ms a pass, 2 ms a token of it, and `slope` for each pair of a token and one that is held."""

    def __init__(self, clock: FakeClock, slope: float = 0.0, **options: object) -> None:
        super().__init__(24, **options)  # type: ignore[arg-type]
        self.clock, self.slope = clock, slope
        self.late: dict[int, float] = {}
        """Seconds that passes take longer, by their number."""
        self.passes = 0

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        width = len(tokens)
        self.clock.now += 0.010 + 0.002 * width + self.slope * width * self.length + self.late.get(self.passes, 0.0)
        self.passes += 1
        return super().forward(tokens, rows)


# The table


def test_between_and_beyond_the_widths_measured() -> None:
    table = CostTable(at={0: {1: 24.0, 4: 45.0, 8: 77.0}})
    assert [table.cost(width) for width in (1, 2, 4, 6, 8, 16, 130)] == [24, 31, 45, 61, 77, 154, 1251.25]


def test_between_contexts_on_the_line_and_beyond_straight_on() -> None:
    table = CostTable(at={0: {1: 20.0, 8: 80.0}, 1000: {1: 30.0, 8: 120.0}})
    assert [table.cost(1, context) for context in (0, 500, 1000, 2000)] == [20, 25, 30, 40]
    assert [table.cost(8, context) for context in (0, 500, 1000, 2000)] == [80, 100, 120, 160]


def test_no_cost_falls_beyond_the_last_context() -> None:
    table = CostTable(at={0: {1: 30.0}, 1000: {1: 20.0}})
    assert table.cost(1, 9000) == 20


def test_widths_that_were_not_timed_behind_a_context_follow_those_that_were() -> None:
    table = CostTable(at={0: {1: 20.0, 4: 40.0, 16: 100.0}, 1000: {1: 20.0, 16: 200.0}})
    assert table.cost(16, 1000) == 200
    assert table.cost(4, 1000) == pytest.approx(40 * (1 + 3 / 15))
    assert CostTable(at=CPU.at).cost(24, 5000) == CPU.cost(24, 0), "one context says nothing of others"


@given(
    st.dictionaries(st.integers(1, 64), st.floats(1, 500), min_size=1),
    st.dictionaries(st.integers(1, 64), st.floats(1, 500), min_size=1),
    st.integers(1, 70),
    st.integers(0, 5000),
)
def test_what_was_measured_is_what_it_costs(
    near: dict[int, float], far: dict[int, float], width: int, context: int
) -> None:
    table = CostTable(at={40: near, 1500: far})
    surface = table.surface()
    for known, ms in near.items():
        assert surface(known, 40) == pytest.approx(ms)
    for known, ms in far.items():
        assert surface(known, 1500) == pytest.approx(ms)
    assert surface(width, context) > 0


def test_a_context_is_far_by_a_factor_and_by_a_distance() -> None:
    assert [CPU.is_far(context) for context in (100, 511, 512)] == [False, False, True]
    table = CPU.adding(1500, 1, 30.0)
    assert [table.is_far(context) for context in (800, 2900, 3000)] == [False, False, True]


# Timing


def test_the_least_time_counts_and_the_cache_is_left_alone() -> None:
    model = TimedLM(FakeClock())
    model.forward([1, 2, 3], 0)
    shares: list[float] = []
    table = measure_costs(model, (1, 4, 16), shares.append, model.clock)
    assert table.at[3] == pytest.approx({1: 12, 4: 18, 16: 42})
    assert model.length == 3
    assert shares[-1] == 1.0
    assert measure_costs(ToyLM(24, n_ctx=64), widths=(1, 65, 100)).at[0].keys() == {1}


def test_at_each_step_the_cache_holds_what_it_held() -> None:
    model = TimedLM(FakeClock())
    model.forward([1, 2, 3], 0)
    assert [model.length for _ in timings(model, (1, 20), model.clock)] == [3] * 5


def test_a_first_pass_that_takes_long_once_leaves_costs_steady() -> None:
    """Shapes may be captured in it."""
    model = TimedLM(FakeClock())
    model.late = {0: 0.5, 3: 0.5}
    assert [timed.steady for timed in timings(model, (1, 2), model.clock) if timed] == [True, True]


# The book


def test_what_was_timed_on_a_busy_machine_is_used_and_not_kept(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path)
    model = TimedLM(FakeClock())
    model.late = {1: 0.1, 2: 0.1}  # passes of the first width, after the one that opens
    book = CostBook(model, store, KEY, model.clock)
    book.measure_now((1, 2), lambda _: None, 100)
    assert book.table.at[0].keys() == {1, 2}
    kept = store.get(KEY, CostTable)
    assert kept is not None
    assert kept.at[0].keys() == {2}
    assert book.lacking((1, 2)) == [1]
    again = CostBook(model, store, KEY, model.clock)
    assert again.lacking((1, 2)) == [1]


def test_a_width_is_not_tried_for_ever(tmp_path: Path) -> None:
    model = TimedLM(FakeClock())
    model.late = {number: 0.1 * number for number in range(1, 100)}
    book = CostBook(model, CalibrationStore(tmp_path), KEY, model.clock)
    for _ in range(TRIES):
        assert book.lacking((1,)) == [1]
        book.measure_now((1,), lambda _: None, 100)
    assert book.lacking((1,)) == []


def test_a_measurement_that_is_cut_short_keeps_what_it_has(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path)
    model = TimedLM(FakeClock())

    def stop(tokens: Sequence[int]) -> None:
        if len(tokens) == 3:
            model.interrupt()

    model.on_pass = stop
    with pytest.raises(Interrupted):
        CostBook(model, store, KEY, model.clock).measure_now(COST_WIDTHS, lambda _: None, 100)
    assert model.length == 0
    book = CostBook(model, store, KEY, model.clock)
    assert book.lacking(COST_WIDTHS) == list(COST_WIDTHS[2:])


def test_a_budget_ends_it(tmp_path: Path) -> None:
    model = TimedLM(FakeClock())
    book = CostBook(model, CalibrationStore(tmp_path), KEY, model.clock)
    book.measure_now(COST_WIDTHS, lambda _: None, 0.0)
    assert book.table.at[0].keys() == {1}


# Live costs


def live(*widths: int, times: float = 1.0, costs: LiveCosts | None = None, rounds: int = 60) -> LiveCosts:
    """After rounds of these widths in turns, each taking so many times what was measured."""
    costs = costs or LiveCosts(Costs(CPU.surface(), {"model": DraftCost(9.0)}))
    for number in range(rounds):
        width = widths[number % len(widths)]
        costs.observe(width - 1, None, Spent(0, times * CPU.cost(width)), 0)
    return costs


def apart(costs: LiveCosts, width: int) -> float:
    """How much dearer a width seems than measured, relative to a single pass."""
    return costs.target(width, 0) / costs.target(1, 0) * CPU.cost(1) / CPU.cost(width)


@pytest.mark.parametrize("before", [(1,), (1, 5, 8), (1, 1, 1, 16)])
def test_plain_passes_that_are_held_up_do_not_make_wide_ones_look_free(before: tuple[int, ...]) -> None:
    costs = live(1, times=4.0, costs=live(*before))
    assert costs.target(1, 0) == pytest.approx(4 * CPU.cost(1), rel=0.1)
    for width in (3, 8, 16, 64):
        assert 0.6 < apart(costs, width) < 1.2


def test_a_width_that_is_dearer_than_measured_is_found_out() -> None:
    costs = LiveCosts(Costs(CPU.surface()))
    for _ in range(30):
        costs.observe(15, None, Spent(0, 1.7 * CPU.cost(16)), 0)
        costs.observe(0, None, Spent(0, CPU.cost(1)), 0)
    assert apart(costs, 16) == pytest.approx(1.7, rel=0.1)


def test_no_width_strays_without_end() -> None:
    costs = LiveCosts(Costs(CPU.surface()))
    for _ in range(500):
        costs.observe(7, None, Spent(0, 0.001), 0)
        costs.observe(0, None, Spent(0, 1e6), 0)
    assert MOST_APART**-2.01 <= apart(costs, 8) <= MOST_APART**2.01


def test_what_was_learned_of_a_width_far_away_counts_less_here() -> None:
    costs = LiveCosts(Costs(CPU.surface()))
    for _ in range(30):
        costs.observe(15, None, Spent(0, 2 * CPU.cost(16)), 4000)
        costs.observe(0, None, Spent(0, CPU.cost(1)), 4000)
    there = costs.target(16, 4000) / costs.target(1, 4000)
    here = costs.target(16, 0) / costs.target(1, 0)
    assert there == pytest.approx(2 * CPU.cost(16) / CPU.cost(1), rel=0.1)
    assert here < 1.3 * CPU.cost(16) / CPU.cost(1)


def test_more_measurements_replace_what_was_made_of_single_widths() -> None:
    costs = live(1, 16, times=2.0)
    costs.observe(15, None, Spent(0, 5 * CPU.cost(16)), 0)
    costs.rebase(Costs(CPU.adding(1500, 16, 300.0).surface()))
    assert apart(costs, 16) == 1
    assert costs.target(1, 0) == pytest.approx(2 * CPU.cost(1), rel=0.3), "a slow machine is still slow"


def test_drafts_slow_down_with_the_machine() -> None:
    costs = live(1, times=3.0, costs=live(1, 5, 8))
    assert costs.draft("model").ms == pytest.approx(27, rel=0.25)
    assert costs.read("model", 10) == pytest.approx(135, rel=0.25)


def test_reading_costs_what_was_measured_of_wide_passes() -> None:
    costs = LiveCosts(Costs(CPU.surface(), {"model": DraftCost(9.0)}, {"model": lambda tokens: 4.0 * tokens + 5}))
    assert costs.read("model", 20) == 85
    assert costs.read("model", 0) == 0
    assert costs.read("lookup", 20) == 0
