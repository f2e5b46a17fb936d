"""Hindsight against all schedules there are, and against what the engine itself makes of a text."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import Speculation
from engine.costs import Costs
from engine.drafters.lookup import LookupDrafter
from engine.experiments.hindsight import hindsight, right_offers
from engine.experiments.rehearsal import Recording, rehearse

WIDE = {1: 24.0, 2: 45.0, 3: 60.0, 4: 45.0, 5: 62.0, 6: 77.0, 7: 93.0, 8: 77.0}


def cost(width: int, context: int) -> float:
    return WIDE.get(width, 100.0) + 0.01 * width * context


def schedules(place: int, right: list[int], prompt: int) -> Iterator[float]:
    """What each way through an answer takes."""
    if place == len(right):
        yield 0.0
        return
    for k in range(min(right[place], len(right) - place - 1) + 1):
        for rest in schedules(place + k + 1, right, prompt):
            yield cost(k + 1, prompt + place) + rest


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 2000))
def test_it_is_the_fastest_of_all_schedules(right: list[int], prompt: int) -> None:
    alone = sum(cost(1, prompt + place) for place in range(len(right)))
    assert hindsight(prompt, right, cost) == pytest.approx(alone / min(schedules(0, right, prompt)))


def test_no_drafts_and_no_answer() -> None:
    assert hindsight(5, [0, 0, 0], cost) == pytest.approx(1)
    assert hindsight(5, [], cost) is None


def test_right_offers_are_cut_where_they_go_wrong_and_at_the_limit() -> None:
    prompt, answer = [1, 2, 3, 4, 5, 6, 9, 1, 2], [3, 4, 5, 7, 8]
    lookup = LookupDrafter(frozenset())
    assert right_offers(lookup, prompt, answer) == [3, 2, 1, 0, 0]
    assert right_offers(lookup, prompt, answer, 2) == [2, 2, 1, 0, 0]
    assert right_offers(lookup, prompt, answer, 0) == [0] * 5


def test_no_plan_of_the_engine_is_faster() -> None:
    """Both count what follows the first round, which brings one token alone here."""
    prompt = tuple(range(2, 60))
    answer = (1, *range(10, 40), 70, 71, *range(20, 50), 72)
    right = right_offers(LookupDrafter(frozenset()), [*prompt, 1], answer[1:])
    found = hindsight(len(prompt) + 1, right, cost)
    assert found is not None
    recording = Recording(kind="copy", prompt=prompt, answer=answer)
    off = rehearse(recording, Speculation(mode="off"), Costs(cost))
    for speculation in (Speculation(), *(Speculation(mode="fixed", length=n) for n in (1, 3, 7, 20))):
        assert rehearse(recording, speculation, Costs(cost)).pace / off.pace <= found + 1e-9
    assert found > 1.5
