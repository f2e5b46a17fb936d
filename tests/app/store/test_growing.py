from collections.abc import Iterator

import pytest

from app.store.growing import EVERY_S, Growing
from app.store.store import Store
from app.transcript import Entry
from tests.engine.host_fake import answer_of


class Clock:
    """A time that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(None)
    opened.add(opened.create(), None, Entry("user", "hi"))
    yield opened
    opened.close()


def kept(store: Store) -> list[tuple[str, str]]:
    return [(node.entry.text, node.entry.ending) for node in store.get(1).path[1:]]


def test_an_answer_is_kept_at_once_and_then_every_second(store: Store) -> None:
    clock = Clock()
    growing = Growing(store, 1, 1, clock=clock)
    growing.add("")
    assert kept(store) == []
    growing.add("a")
    assert kept(store) == [("a", "broken off")]
    growing.add("b")
    clock.now += EVERY_S * 0.9
    growing.add("c")
    assert kept(store) == [("a", "broken off")]
    clock.now += EVERY_S * 0.2
    growing.add("d")
    assert kept(store) == [("abcd", "broken off")]
    growing.add("e")
    assert growing.end() == 2
    assert kept(store) == [("abcde", "broken off")]


def test_the_end_takes_the_place_of_what_grew(store: Store) -> None:
    growing = Growing(store, 1, 1)
    growing.add("0 ")
    assert growing.end(Entry.of_answer(answer_of([0, 1], "stop"))) == 2
    assert kept(store) == [("0 1 ", "")]


def test_an_answer_that_says_nothing_is_kept_only_where_it_ends(store: Store) -> None:
    assert Growing(store, 1, 1).end() is None
    assert kept(store) == []
    assert Growing(store, 1, 1).end(Entry("assistant", "")) == 2
    assert kept(store) == [("", "")]


def test_an_answer_goes_on_where_it_is(store: Store) -> None:
    begun = store.add(1, 1, Entry("assistant", "half", None, "stopped"))
    assert Growing(store, 1, 1, begun).end() == begun.id
    assert kept(store) == [("half", "stopped")]
    growing = Growing(store, 1, 1, begun)
    growing.add(" and half")
    assert growing.end() == begun.id
    assert kept(store) == [("half and half", "broken off")]


def test_a_thought_that_its_prompt_opened_is_kept_with_it_and_stays_when_it_goes_on(store: Store) -> None:
    growing = Growing(store, 1, 1)
    growing.open("<think>")
    growing.add("hm")
    growing.end()
    half = store.get(1).path[-1]
    assert half.entry.opening == "<think>"
    growing = Growing(store, 1, None, half)
    growing.add(", so")
    assert [(node.entry.text, node.entry.opening) for node in store.get(1).path[1:]] == [("hm, so", "<think>")]
