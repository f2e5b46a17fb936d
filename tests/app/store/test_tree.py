"""The tree against a model of it in plain Python: what is shown is always one branch, and nothing is ever lost."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.errors import NotStored
from app.store.store import Store
from app.transcript import Entry


class Trees(RuleBasedStateMachine):
    """Adds and chooses at random places, in two conversations at once."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store.open(None)
        self.numbers = [self.store.create(), self.store.create()]
        self.parents: dict[int, int | None] = {}
        self.home: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        self.last_used: list[int] = []

    def teardown(self) -> None:
        self.store.close()

    def nodes(self, conversation: int) -> list[int]:
        return [node for node, home in self.home.items() if home == conversation]

    def up(self, node: int | None) -> Iterator[int]:
        while node is not None:
            yield node
            node = self.parents[node]

    def used(self, node: int) -> None:
        if node in self.last_used:
            self.last_used.remove(node)
        self.last_used.append(node)

    def expected_leaf(self, conversation: int) -> int | None:
        return next((node for node in reversed(self.last_used) if self.home[node] == conversation), None)

    @rule(which=st.integers(0, 1), place=st.integers(0, 50), text=st.text(max_size=5), user=st.booleans())
    def add(self, which: int, place: int, text: str, user: bool) -> None:
        conversation = self.numbers[which]
        choices: list[int | None] = [None, *self.nodes(conversation)]
        parent = choices[place % len(choices)]
        node = self.store.add(conversation, parent, Entry("user" if user else "assistant", text))
        self.parents[node.id], self.home[node.id] = parent, conversation
        self.texts[node.id] = text
        self.used(node.id)
        assert (node.parent, node.entry.text, node.entry.id) == (parent, text, node.id)
        assert node.entry.version == node.entry.versions

    @precondition(lambda self: self.parents)
    @rule(place=st.integers(0, 50))
    def choose(self, place: int) -> None:
        node = list(self.parents)[place % len(self.parents)]
        shown = self.store.choose(self.home[node], node)
        below = [other for other in self.last_used if node in self.up(other)]
        self.used(below[-1])
        assert node in [shown.id for shown in shown.path]
        assert shown == self.store.get(self.home[node])

    @precondition(lambda self: self.parents)
    @rule(place=st.integers(0, 50), text=st.text(max_size=5))
    def update(self, place: int, text: str) -> None:
        node = list(self.parents)[place % len(self.parents)]
        self.store.update(node, Entry("assistant", text))
        self.texts[node] = text

    @precondition(lambda self: self.parents)
    @rule(place=st.integers(0, 50))
    def a_message_of_elsewhere_is_refused(self, place: int) -> None:
        node = list(self.parents)[place % len(self.parents)]
        other = next(number for number in self.numbers if number != self.home[node])
        for call in (lambda: self.store.choose(other, node), lambda: self.store.add(other, node, Entry("user", "x"))):
            with pytest.raises(NotStored):
                call()

    @invariant()
    def the_path_is_the_branch_in_use(self) -> None:
        for conversation in self.numbers:
            path = [node.id for node in self.store.get(conversation).path]
            assert path == list(self.up(self.expected_leaf(conversation)))[::-1]
            summary = next(one for one in self.store.summaries() if one.id == conversation)
            assert summary.messages == len(path)

    @invariant()
    def versions_are_the_siblings_in_order(self) -> None:
        for conversation in self.numbers:
            for node in self.store.get(conversation).path:
                beside = [n for n in self.nodes(conversation) if self.parents[n] == self.parents[node.id]]
                assert list(self.store.versions(node.id)) == beside
                assert (node.entry.version, node.entry.versions) == (beside.index(node.id) + 1, len(beside))

    @invariant()
    def nothing_is_lost(self) -> None:
        for conversation in self.numbers:
            kept = self.store.tree(conversation).nodes
            assert [(node.id, node.parent, node.entry.text) for node in kept] == [
                (node, self.parents[node], self.texts[node]) for node in self.nodes(conversation)
            ]


Trees.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
test_trees = Trees.TestCase


def test_an_edit_keeps_what_followed_the_first_version() -> None:
    store = Store.open(None)
    number = store.create()
    first = store.add(number, None, Entry("user", "one"))
    answer = store.add(number, first.id, Entry("assistant", "1"))
    edited = store.add(number, None, Entry("user", "one!"))
    assert [node.entry.text for node in store.get(number).path] == ["one!"]
    assert store.versions(edited.id) == (first.id, edited.id)
    assert [node.id for node in store.choose(number, first.id).path] == [first.id, answer.id]
    store.close()


def test_a_branch_comes_back_as_it_was_left() -> None:
    store = Store.open(None)
    number = store.create()
    first = store.add(number, None, Entry("user", "one"))
    older = store.add(number, first.id, Entry("assistant", "older"))
    store.add(number, first.id, Entry("assistant", "newer"))
    store.choose(number, older.id)
    store.add(number, None, Entry("user", "another"))
    assert [node.entry.text for node in store.choose(number, first.id).path] == ["one", "older"]
    store.close()


def test_a_message_that_is_not_there_is_said() -> None:
    store = Store.open(None)
    with pytest.raises(NotStored, match="there is no message 9"):
        store.update(9, Entry("user", "x"))
    assert store.versions(9) == ()
    assert store.trace(9) == ()
    store.close()
