"""The pace of updates, with a clock of its own."""

import pytest

from app.pace import MOST_S, Pace


class Work:
    """Seconds of work that the window's thread has done."""

    def __init__(self) -> None:
        self.done = 0.0

    def __call__(self) -> float:
        return self.done


@pytest.mark.parametrize(("cost", "interval"), [(0.001, 0.03), (0.01, 0.04), (0.05, 0.2), (9.0, MOST_S)])
def test_what_an_update_costs_sets_the_time_to_the_next(cost: float, interval: float) -> None:
    work = Work()
    pace = Pace(0.03, share=0.25, busy=work)
    pace.updated()
    work.done += cost
    assert pace.interval_s == pytest.approx(interval)
    pace.updated()
    assert pace.interval_s == pytest.approx(interval)


def test_cheap_updates_after_dear_ones_come_fast_again() -> None:
    work = Work()
    pace = Pace(0.03, busy=work)
    for cost in (0.5, 0.001, 0.001):
        pace.updated()
        work.done += cost
    pace.updated()
    assert pace.interval_s == 0.03


def test_without_a_least_time_nothing_waits() -> None:
    work = Work()
    pace = Pace(0.0, busy=work)
    work.done = 5.0
    pace.updated()
    assert pace.interval_s == 0.0
