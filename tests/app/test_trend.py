"""The speed over an answer: bounded, from the beginning on, and true to the totals."""

from hypothesis import given
from hypothesis import strategies as st

from app.trend import Trend

ROUNDS = st.lists(st.tuples(st.integers(0, 64), st.integers(1, 5000)), max_size=60)


@given(rounds=ROUNDS)
def test_it_stays_bounded_and_spans_the_whole_answer(rounds: list[tuple[int, int]]) -> None:
    trend = Trend(most=8, step_ms=50)
    for tokens, ms in rounds:
        trend.add(tokens, ms)
    assert len(trend.speeds) < 8
    total = sum(ms for _, ms in rounds)
    step = 50.0
    while step * 8 <= total:
        step *= 2
    assert abs(len(trend.speeds) - total / step) <= 1


def test_a_steady_speed_is_a_level_line() -> None:
    trend = Trend(most=8, step_ms=50)
    for _ in range(1000):
        trend.add(2, 10)
    assert all(abs(speed - 200) < 1e-6 for speed in trend.speeds)


def test_a_change_is_seen_where_it_was() -> None:
    trend = Trend(most=64, step_ms=100)
    for tokens in (1, 1, 1, 4, 4):
        trend.add(tokens, 100)
    assert trend.speeds == (10, 10, 10, 40, 40)


def test_a_long_round_is_spread_and_one_without_time_loses_nothing() -> None:
    trend = Trend(most=64, step_ms=100)
    trend.add(8, 0)
    trend.add(8, 400)
    assert trend.speeds == (100, 20, 20, 20)
