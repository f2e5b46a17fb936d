"""Turns: who runs when, and what ratios of turns are worth."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.experiments.turns import Ratio, in_turns, mean, middle, order, ratio_of, ratios

GROUPS = st.lists(st.lists(st.floats(0.5, 4), max_size=6), min_size=1, max_size=4)


def test_each_turn_runs_the_other_way_round() -> None:
    ran: list[str] = []

    def side(name: str) -> float:
        ran.append(name)
        return float(len(ran))

    found = in_turns([lambda: side("A"), lambda: side("B"), lambda: side("C")], 3)
    assert "".join(ran) == "ABCCBAABC"
    assert found == [[1, 6, 7], [2, 5, 8], [3, 4, 9]]
    assert ratios(found[0], found[1]) == [0.5, 1.2, 7 / 8]
    assert [list(order(3, turn)) for turn in (0, 1)] == [[0, 1, 2], [2, 1, 0]]


def test_prompts_count_alike_and_turns_by_their_median() -> None:
    assert middle([[1.0, 2.0, 9.0], [], [8.0]]) == pytest.approx(4)
    assert middle([[], []]) is None
    assert mean([0.5, 2.0]) == pytest.approx(1)
    assert mean([]) is None


@given(GROUPS)
def test_bounds_hold_the_ratio_and_lie_among_the_figures(groups: list[list[float]]) -> None:
    found = ratio_of(groups)
    assert found == ratio_of(groups)
    if found.ratio is None:
        assert not any(groups)
        return
    assert found.ratio == middle(groups)
    if max(map(len, groups)) < 2:
        assert found == Ratio(ratio=found.ratio)
        return
    assert found.low is not None
    assert found.high is not None
    full = [group for group in groups if group]
    least, most = (math.exp(sum(math.log(end(g)) for g in full) / len(full)) for end in (min, max))
    assert least - 1e-9 <= found.low <= found.high <= most + 1e-9


def test_bounds_narrow_with_agreement() -> None:
    calm, wild = ratio_of([[1.1, 1.11, 1.12, 1.1, 1.11]]), ratio_of([[0.7, 1.11, 1.6, 0.9, 1.3]])
    assert calm.low is not None
    assert calm.high is not None
    assert calm.low > 1.09
    assert wild.low is not None
    assert wild.high is not None
    assert wild.high - wild.low > 10 * (calm.high - calm.low)
    held_up = ratio_of([[1.1, 1.12, 1.1, 1.11, 1.1, 1.12, 1.11, 50.0]])
    assert (held_up.high or 50) < 1.2
    same = ratio_of([[2.0, 2.0], [0.5, 0.5]])
    assert (same.ratio, same.low, same.high) == pytest.approx((1, 1, 1))
