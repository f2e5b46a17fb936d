"""The record of a half answer and of what goes on from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from engine.joining import whole_answer
from engine.stats import Answer, Verdict
from tests.engine.host_fake import answer_of

KINDS = ["identical", "clear", "unmeasured", "near_ties", "not_greedy"]


def judged(ids: list[int], kind: str = "clear", threshold: float | None = None, near: tuple[int, ...] = ()) -> Answer:
    verdict = Verdict(kind=kind, threshold=threshold, near_ties=list(near))  # type: ignore[arg-type]
    return structs.replace(answer_of(ids), verdict=verdict)


@given(st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_the_worse_verdict_holds_for_both(first: str, second: str) -> None:
    whole = whole_answer(judged([1, 2], first), "1 2 ", judged([3], second))
    assert whole.verdict.kind == KINDS[max(KINDS.index(first), KINDS.index(second))]


def test_near_ties_stand_where_their_tokens_do() -> None:
    before = judged([5, 6, 7], "near_ties", 0.25, (1,))
    more = judged([8, 9], "near_ties", 0.5, (0, 2))
    whole = whole_answer(before, before.text, more)
    assert whole.ids == [5, 6, 7, 8, 9]
    assert whole.verdict == Verdict(kind="near_ties", threshold=0.5, near_ties=[1, 3, 5])
    clear = whole_answer(before, before.text, judged([8], "identical"))
    assert clear.verdict == Verdict(kind="near_ties", threshold=0.25, near_ties=[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", [None, judged([])], ids=["no record", "a record without ids"])
def test_without_the_ids_of_the_half_nothing_is_claimed(kind: str, before: Answer | None) -> None:
    whole = whole_answer(before, "half ", judged([3, 4], kind, 0.5, (1,)))
    assert (whole.text, whole.ids) == ("half 3 4 ", [])
    assert whole.verdict == Verdict(kind="not_greedy" if kind == "not_greedy" else "unmeasured")


def test_a_half_of_nothing_is_known() -> None:
    assert whole_answer(judged([]), "", judged([3])).ids == [3]


def test_what_is_replaced_goes_and_all_other_figures_are_the_new_part_s() -> None:
    before = structs.replace(judged([1, 2], "not_greedy"), forgotten=2)
    more = structs.replace(judged([3], "not_greedy"), text="é", replaces=1, forgotten=4, notes=["a note"])
    whole = whole_answer(before, "ab\ufffd", more)
    assert whole.text == "abé"
    assert whole == structs.replace(more, text="abé", ids=[1, 2, 3], replaces=0)
