"""Lookup drafting against a slow and obvious search of the whole history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.lookup import LONGEST, PLACES, LookupDrafter

IDS = st.lists(st.integers(0, 3), max_size=60)


def brute(ids: list[int]) -> tuple[int, list[int]]:
    """The longest match of the end of `ids` among the latest places, the latest of equals: (length, continuation)."""
    places = [p for p in range(2, len(ids)) if ids[p - 2 : p] == ids[-2:]][-PLACES:]
    best, found = 0, []
    for place in reversed(places):
        match = 2
        while match < min(place, LONGEST) and ids[place - match - 1] == ids[len(ids) - match - 1]:
            match += 1
        if match > best:
            best, found = match, ids[place:]
    return best, found


@given(IDS, st.integers(1, 8), st.integers(1, 10))
def test_the_longest_and_latest_match_is_offered(ids: list[int], limit: int, step: int) -> None:
    drafter = LookupDrafter(frozenset())
    offer = None
    drafter.begin(ids[:1], 0)
    for end in [*range(1, len(ids), step), len(ids)]:
        offer = drafter.offer(ids[:end], limit)
    match, found = brute(ids)
    assert (offer.match if offer else 0) == match
    assert [p.token for p in drafter.propose(limit)] == (found * limit)[:limit] if offer else not found


@given(IDS, IDS, st.integers(0, 60))
def test_a_changed_history_is_forgotten(old: list[int], new: list[int], keep: int) -> None:
    changed = old[:keep] + new
    used, unused = LookupDrafter(frozenset()), LookupDrafter(frozenset())
    used.offer(old, 4)
    used.begin(changed, min(keep, len(old)))
    assert used.offer(changed, 4) == unused.offer(changed, 4)


def test_drafts_are_certain_and_stop_behind_an_end() -> None:
    drafter = LookupDrafter(frozenset({9}))
    offer = drafter.offer([1, 2, 3, 9, 4, 1, 2], 5)
    assert offer is not None
    assert [(p.token, p.draft) for p in drafter.propose(5)] == [(3, None), (9, None)]


@pytest.mark.parametrize("ids", [[], [1], [1, 2], [1, 2, 3]])
def test_nothing_is_offered_where_nothing_repeats(ids: list[int]) -> None:
    assert LookupDrafter(frozenset()).offer(ids, 4) is None
