"""Chances of drafted tokens: what teaches them, and what does not."""

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


def test_where_a_long_copy_began_the_next_one_is_trusted_sooner() -> None:
    quote, other = 7, 8
    acceptance = Acceptance()
    mark = Mark(2)
    before = acceptance.copied(mark, 0, quote)
    for match in range(2, 40):
        acceptance.learn_copied(Offer("lookup", 1, [5], [Mark(match)], opener=quote), [5])
    after, elsewhere = acceptance.copied(mark, 0, quote), acceptance.copied(mark, 0, other)
    assert before < elsewhere < after
    for _ in range(20):
        acceptance.learn_copied(Offer("lookup", 1, [5], [mark], opener=quote), [6])
    assert acceptance.copied(mark, 0, quote) == acceptance.copied(mark, 0, other)
