"""The formula of Leviathan et al. against its own sums and against chance."""

import random

import pytest

from engine.experiments.theory import Drafted, predicted, tokens_per_round


def flat(width: int, context: int) -> float:
    return 1.0


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.85, 1.0])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_tokens_per_round_are_the_sum_of_the_chances_to_get_there(chance: float, length: int) -> None:
    assert tokens_per_round(chance, length) == pytest.approx(sum(chance**at for at in range(length + 1)))


def test_equal_rounds_give_the_formula() -> None:
    a, g, c = 0.8, 4, 0.1
    rounds = [Drafted(length=g, draft_ms=c, context=at) for at in range(9)]
    assert predicted(rounds, a, flat) == pytest.approx((1 - a ** (g + 1)) / ((1 - a) * (g * c + 1)))


def test_a_wide_pass_costs_what_was_measured_behind_its_context() -> None:
    """Where a draft takes 7 ms against 24 and 45 over four, 0.85 gives about 1.15."""
    table = {1: 24.0, 4: 45.0}
    found = predicted([Drafted(length=3, draft_ms=7.0, context=40)], 0.85, lambda width, _: table[width])
    assert found == pytest.approx(1.158, abs=0.001)
    dearer = predicted([Drafted(3, 0.0, 1000)], 0.85, lambda width, context: width * context)
    assert dearer == pytest.approx(tokens_per_round(0.85, 3) / 4)


def test_rounds_without_drafts_count_as_plain_ones() -> None:
    mixed = [Drafted(0, 0.0, 1), Drafted(2, 0.0, 1)]
    assert predicted(mixed, 0.5, flat) == pytest.approx((1 + 1.75) / 2)
    assert predicted(mixed[:1], None, flat) == 1
    assert predicted([], 0.5, flat) is None


def test_it_is_what_chance_gives() -> None:
    draws = random.Random(5)
    emitted = 0
    for _ in range(20_000):
        emitted += 1 + next((at for at in range(4) if draws.random() >= 0.7), 4)
    assert emitted / 20_000 == pytest.approx(tokens_per_round(0.7, 4), rel=0.01)
