"""Chances of drafted tokens: what teaches them, and what does not."""

import pytest

from engine.acceptance import RESTED, Acceptance
from engine.drafters import Mark, Offer


def offer(length: int) -> Offer:
    return Offer("lookup", length, range(length), [Mark(2 + at) for at in range(length)])


def test_nothing_is_learned_of_what_stands_behind_a_wrong_token() -> None:
    one, longer = Acceptance(), Acceptance()
    one.learn_copied(offer(1), [9])
    longer.learn_copied(offer(6), [9, 1, 2, 3, 4, 5])
    assert longer.learned == one.learned


def test_what_was_right_is_learned_by_its_place_in_the_copy() -> None:
    acceptance = Acceptance()
    acceptance.learn_copied(offer(3), [0, 1, 2])
    assert sorted(acceptance.learned.classes.values()) == [(1.0, 1.0)] * 3
    assert acceptance.learned.moods["lookup"] > 0


def test_a_mood_rests_between_answers_and_classes_do_not() -> None:
    acceptance = Acceptance()
    acceptance.learn_copied(offer(3), [0, 1, 2])
    before = acceptance.learned
    acceptance.rest()
    assert acceptance.learned.moods == {source: RESTED * mood for source, mood in before.moods.items()}
    assert acceptance.learned.classes == before.classes


def test_copies_of_a_token_are_trusted_as_they_have_fared() -> None:
    name, bracket, other = 7, 8, 9
    acceptance = Acceptance()

    def chance(token: int) -> float:
        return next(acceptance.copied(Offer("lookup", 1, [token], [Mark(2)])))

    for _ in range(8):
        acceptance.learn_copied(Offer("lookup", 1, [bracket], [Mark(2)]), [bracket])
        acceptance.learn_copied(Offer("lookup", 1, [name], [Mark(2)]), [other])
    assert chance(name) < chance(other) < chance(bracket)
    again = Acceptance(learned=acceptance.learned)
    assert [next(again.copied(Offer("lookup", 1, [token], [Mark(2)]))) for token in (name, bracket)] == [
        chance(name),
        chance(bracket),
    ]


def test_of_the_tokens_those_copied_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.acceptance.MOST_TOKENS", 2)
    acceptance = Acceptance()
    for token in (1, 2, 3, 1):
        acceptance.learn_copied(Offer("lookup", 1, [token], [Mark(2)]), [token])
    acceptance.rest()
    assert list(acceptance.learned.tokens) == [3, 1]
