"""Lookup drafting against a slow and obvious search of all there is."""

import random
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.drafters import Mark, Offer
from engine.drafters.library import ORDER, Library
from engine.drafters.library_file import LibraryFile
from engine.drafters.lookup import THROWN_OFF, WORTH, LookupDrafter
from engine.drafters.places import SEPARATOR, GrowingPlaces, SortedPlaces
from engine.drafters.trail import FRESH, KEPT, LONGEST

IDS = st.lists(st.integers(0, 3), max_size=60)
FEW = st.lists(st.integers(0, 12), max_size=FRESH + 2)
"""So short that no place is ever out of view."""


def match_at(text: Sequence[int], place: int, ids: Sequence[int]) -> int:
    """How many tokens before a place are the last of `ids`."""
    match = 0
    while match < min(place, len(ids), LONGEST) and text[place - 1 - match] == ids[len(ids) - 1 - match]:
        match += 1
    return match


def tail_of(ids: Sequence[int], place: int, limit: int) -> list[int]:
    """What goes on from a place of the conversation, which repeats itself where it ends."""
    text = list(ids)
    for step in range(limit):
        text.append(text[place + step])
    return text[len(ids) :]


def brute(ids: Sequence[int], limit: int) -> list[tuple[int, Mark]]:
    """Tokens and marks, by asking every place at every step."""
    places = [(match_at(ids, place, ids), place) for place in range(1, len(ids))]
    longest = max((match for match, _ in places), default=0)
    voters = sorted(((m, p) for m, p in places if 3 * m > 2 * longest and (m > 1 or longest == 1)), reverse=True)
    found: list[tuple[int, Mark]] = []
    for step in range(limit if longest else 0):
        nexts = [tail_of(ids, place, limit)[step] for _, place in voters]
        token = max(nexts, key=nexts.count)
        voters = [voter for voter, its in zip(voters, nexts, strict=True) if its == token]
        found.append((token, Mark(voters[0][0] + step, len(voters), len(nexts) - len(voters))))
    return found


def shown(offer: Offer | None) -> list[tuple[int, Mark]]:
    """Tokens and marks of an offer."""
    return list(zip(offer.tokens, offer.marks, strict=True)) if offer else []


@given(FEW, st.integers(1, 8), st.integers(1, 10))
def test_the_vote_of_the_longest_matches_is_offered(ids: list[int], limit: int, step: int) -> None:
    drafter = LookupDrafter(frozenset())
    drafter.begin(ids[:1], 0)
    offer = None
    for end in [*range(1, len(ids), step), len(ids)]:
        offer = drafter.offer(ids[:end], limit)
    assume(not (offer and offer.marks[0].near))
    assert shown(offer) == brute(ids, limit)
    assert [p.token for p in drafter.propose(limit)] == [token for token, _ in shown(offer)]
    assert all(p.draft is None for p in drafter.propose(limit))


@given(IDS, st.integers(1, 8), st.integers(1, 10))
def test_every_mark_is_true(ids: list[int], limit: int, step: int) -> None:
    drafter = LookupDrafter(frozenset())
    for end in [*range(1, len(ids), step), len(ids)]:
        said = list(ids[:end])
        for token, mark in shown(drafter.offer(ids[:end], limit)):
            places = [p for p in range(1, len(said)) if said[p] == token and match_at(said, p, said) >= mark.match]
            assert places, (said, token, mark)
            assert mark.agree + mark.other <= max(KEPT, FRESH)
            said.append(token)


@given(IDS)
def test_no_latest_place_matches_far_longer_than_what_is_offered(ids: list[int]) -> None:
    drafter = LookupDrafter(frozenset())
    for end in range(len(ids) + 1):
        now = ids[:end]
        latest = [p for p in range(2, end) if now[p - 2 : p] == now[-2:]][-FRESH:]
        best = max((match_at(now, place, now) for place in latest), default=0)
        offer = drafter.offer(now, 1)
        near = WORTH if offer and offer.marks[0].near else 0
        assert 3 * ((offer.match if offer else 0) + near) > 2 * best - (best == 0)


def test_after_an_edit_copying_goes_on_near_where_it_was() -> None:
    text = list(range(100, 140))
    edited = [*text[:10], 7, *text[11:13]]
    elsewhere = [text[12], 55]  # said later, so it would be the latest place
    drafter = LookupDrafter(frozenset())
    drafter.begin([*text, *elsewhere], 0)
    offers = [drafter.offer([*text, *elsewhere, *edited[:end]], 5) for end in range(1, len(edited) + 1)]
    marks = [offer.marks[0] if offer else None for offer in offers]
    assert [mark.near if mark else None for mark in marks[4:10]] == [True] * 6
    assert marks[10] is None  # the edit itself stands nowhere
    resumed = offers[11]
    assert resumed is not None
    assert (list(resumed.tokens), resumed.marks[0].match, resumed.marks[0].near) == (text[12:17], 1, True)


@pytest.mark.parametrize(("since", "near"), [(THROWN_OFF - 1, True), (THROWN_OFF, False)])
def test_copying_is_not_looked_for_forever(since: int, near: bool) -> None:
    text = list(range(100, 200))
    ids = [*text, *text[:8]]
    drafter = LookupDrafter(frozenset())
    drafter.begin(ids, 0)
    drafter.offer(ids, 5)
    new = list(range(1000, 1000 + since))
    resumed = drafter.offer([*ids, *new, text[8 + since]], 5)
    assert resumed is not None
    assert resumed.marks[0].near == near


def test_what_is_far_from_where_copying_was_is_not_near() -> None:
    text = list(range(100, 200))
    drafter = LookupDrafter(frozenset())
    ids = [*text, *text[:8]]
    drafter.begin(ids, 0)
    for _ in range(2):
        drafter.offer(ids, 5)
    jumped = drafter.offer([*ids, *text[60:62]], 5)
    assert jumped is not None
    assert (jumped.match, jumped.marks[0].near) == (2, False)


@given(IDS, IDS, st.integers(0, 60))
def test_a_changed_history_is_forgotten(old: list[int], new: list[int], keep: int) -> None:
    shared = min(keep, len(old))
    changed = old[:shared] + new
    used, unused = LookupDrafter(frozenset()), LookupDrafter(frozenset())
    used.offer(old, 4)
    used.begin(changed, shared)
    unused.begin(changed, 0)
    assert used.offer(changed, 4) == unused.offer(changed, 4)


@given(IDS, IDS, st.lists(st.integers(0, 3), max_size=8), st.integers(1, 8))
def test_what_is_drafted_ahead_counts_as_said_and_leaves_no_trace(
    ids: list[int], more: list[int], ahead: list[int], limit: int
) -> None:
    drafter, undisturbed = LookupDrafter(frozenset()), LookupDrafter(frozenset())
    for end in range(len(more) + 1):
        now = [*ids, *more[:end]]
        assert drafter.offer(now, limit) == undisturbed.offer(now, limit)
        expected = deepcopy(undisturbed).offer([*now, *ahead], limit)
        assert drafter.offer(now, limit, ahead) == expected


@given(IDS, st.integers(1, 4), st.lists(st.integers(0, 60), max_size=8))
def test_an_index_goes_back_and_on(ids: list[int], order: int, lengths: list[int]) -> None:
    text: list[int] = []
    places = GrowingPlaces(text, order)
    for length in [*lengths, len(ids)]:
        places.shrink(length)
        del text[length:]
        text.extend(ids[len(text) : length])
        places.grow()
        run = text[-order:]
        there = [at for at in range(order, len(text)) if text[at - order : at] == run]
        assert places.latest(text, 3) == there[::-1][:3]


@given(IDS, IDS)
def test_a_sorted_index_finds_what_a_growing_one_finds(text: list[int], ids: list[int]) -> None:
    growing = GrowingPlaces(text, 3)
    growing.grow()
    assert SortedPlaces(np.array(text, np.int64), 3).latest(ids, 4) == growing.latest(ids, 4)


def test_a_long_sorted_index_keeps_the_order_of_places() -> None:
    text = random.Random(1).choices(range(3), k=3000)
    growing = GrowingPlaces(text, 3)
    growing.grow()
    assert SortedPlaces(np.array(text, np.int64), 3).latest([0, 1, 2], 40) == growing.latest([0, 1, 2], 40)


def test_an_offer_ends_behind_an_end() -> None:
    offer = LookupDrafter(frozenset({9})).offer([1, 2, 3, 9, 4, 1, 2], 5)
    assert offer == Offer("lookup", 2, [3, 9], [Mark(2), Mark(3)])


def test_a_text_that_ends_in_its_own_repetition_goes_on_with_it() -> None:
    offer = LookupDrafter(frozenset()).offer([7, 1, 2, 3, 1, 2], 7)
    assert offer is not None
    assert offer.tokens == [3, 1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("ids", [[], [1], [1, 2], [1, 2, 3]])
def test_nothing_is_offered_where_nothing_repeats(ids: list[int]) -> None:
    assert LookupDrafter(frozenset()).offer(ids, 4) is None


ANSWER = list(range(100, 130))


def library(folder: Path, *answers: Sequence[int]) -> Library:
    found = Library(LibraryFile(folder / "answers", SEPARATOR))
    for answer in answers:
        found.add(answer)
    return found


@pytest.mark.parametrize("opened_again", [False, True])
def test_earlier_answers_are_copied_where_they_match_longer(tmp_path: Path, opened_again: bool) -> None:
    kept = library(tmp_path, ANSWER)
    drafter = LookupDrafter(frozenset(), library(tmp_path) if opened_again else kept)
    assert drafter.offer([5, 100, 101], 4) is None
    offer = drafter.offer([5, 100, 101, 102], 4)
    assert offer == Offer("lookup", 4, ANSWER[3:7], [Mark(match, library=True) for match in range(3, 7)])
    here = [101, 102, 103, 7, 100, 101, 102, 103]
    drafter.begin(here, 0)
    offer = drafter.offer(here, 2)
    assert offer == Offer("lookup", 2, [104, 105], [Mark(4, library=True), Mark(5, library=True)])
    tie = [101, 102, 103, 7, 8, 101, 102, 103]
    drafter.begin(tie, 0)
    offer = drafter.offer(tie, 1)
    assert offer == Offer("lookup", 1, [7], [Mark(3)])


def test_a_copy_ends_with_its_answer(tmp_path: Path) -> None:
    drafter = LookupDrafter(frozenset(), library(tmp_path, ANSWER, range(200, 230)))
    offer = drafter.offer(ANSWER[:-2], 9)
    assert offer is not None
    assert offer.tokens == ANSWER[-2:]
    assert drafter.offer([*ANSWER], 9) is None


LONG = st.lists(st.integers(0, 3), min_size=16, max_size=40)


@given(LONG, LONG, IDS)
def test_a_library_that_is_opened_again_offers_the_same(
    tmp_path_factory: pytest.TempPathFactory, answer: list[int], other: list[int], ids: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("library")
    grown = library(folder, answer, other)
    drafters = [LookupDrafter(frozenset(), grown), LookupDrafter(frozenset(), library(folder))]
    for end in range(len(ids) + 1):
        offers = [drafter.offer(ids[:end], 6) for drafter in drafters]
        assert offers[0] == offers[1]
        for at, (_, mark) in enumerate(shown(offers[0])):
            if mark.library:
                run = [*ids[:end], *offers[0].tokens[: at + 1]][-ORDER - 1 :]
                assert any(run == text[p - ORDER : p + 1] for text in (answer, other) for p in range(len(text)))
