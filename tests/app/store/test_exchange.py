import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.errors import StoreError
from app.store.exchange import from_json, to_json, to_markdown
from app.store.records import Node
from app.store.store import Store
from app.transcript import Entry
from engine.events import Refused, TokenTrace
from tests.engine.host_fake import answer_of

THEN = datetime(2026, 5, 1, 8, 30, tzinfo=UTC)
TRACE = (
    TokenTrace(origin="target", text="0 ", target=0.5),
    TokenTrace(origin="lookup", text="1 ", target=0.25, refused=Refused(text="x", target=0.125, draft=0.5)),
)


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(None, lambda: THEN)
    yield opened
    opened.close()


def branched(store: Store) -> int:
    """A conversation with two branches, of which the first is in use."""
    number = store.create("be brief", {"temperature": 0.5, "stop": ["é"]})
    asked = store.add(number, None, Entry("user", "Hi\nthere \x9b[2J", attachments=("a.txt",)))
    first = store.add(number, asked.id, replace(Entry.of_answer(answer_of([0, 1])), trace=TRACE))
    store.add(number, asked.id, Entry("assistant", "half", None, "broken off", opening="<think>"))
    store.choose(number, first.id)
    store.rename(number, "My talk")
    return number


def bare(nodes: tuple[Node, ...]) -> list[tuple[int, object, object, Entry]]:
    """Nodes without the numbers of one store."""
    places = {node.id: place for place, node in enumerate(nodes)}
    return [
        (place, places.get(node.parent), node.created, replace(node.entry, id=None)) for place, node in enumerate(nodes)
    ]


def test_json_comes_back_as_it_went(store: Store) -> None:
    number = branched(store)
    text = to_json(store, number)
    other = Store.open(None)
    other.create()
    copy = from_json(other, text)
    went, came = store.tree(number), other.tree(copy)
    assert bare(came.nodes) == bare(went.nodes)
    assert replace(came, nodes=(), leaf=None) == replace(went, nodes=(), leaf=None)
    assert [node.entry.text for node in other.get(copy).path] == [node.entry.text for node in store.get(number).path]
    assert other.trace(other.get(copy).path[-1].id) == TRACE
    assert other.search("half")[0].conversation == copy
    assert other.summaries()[-1].changed == THEN
    assert to_json(other, copy).count("\n") == text.count("\n")
    other.close()


def test_neither_form_acts_on_a_terminal(store: Store) -> None:
    number = branched(store)
    for text in (to_json(store, number), to_markdown(store.get(number))):
        assert not set(text) & (set(map(chr, range(0x20))) - {"\n"} | set(map(chr, range(0x7F, 0xA0))))
    assert json.loads(to_json(store, number))["messages"][0]["text"] == "Hi\nthere \x9b[2J"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"title": 1, "messages": []}',
        '{"format": "another", "title": "x", "messages": []}',
        '{"version": 2, "title": "x", "messages": []}',
        '{"title": "\ud800", "messages": [{}]}',
    ],
)
def test_what_was_not_exported_here_is_refused_in_one_line(store: Store, text: str) -> None:
    with pytest.raises(StoreError, match=r"^this is no conversation that paceline has exported: .") as caught:
        from_json(store, text)
    assert "\n" not in str(caught.value)
    assert store.summaries() == []


MESSAGE = {"id": 1, "parent": None, "role": "user", "text": "x", "created": "2026-05-01T08:30:00Z"}


@pytest.mark.parametrize(
    "messages",
    [
        [{**MESSAGE, "parent": 1}],
        [{**MESSAGE, "parent": 2}, {**MESSAGE, "id": 2}],
        [MESSAGE, MESSAGE],
        [{**MESSAGE, "role": "system"}],
        [{**MESSAGE, "created": "2026-05-01T08:30:00"}],
        [{**MESSAGE, "ending": "odd"}],
    ],
)
def test_a_tree_that_cannot_be_is_refused_and_nothing_of_it_kept(store: Store, messages: list[object]) -> None:
    first = {**MESSAGE, "id": 7}
    with pytest.raises(StoreError):
        from_json(store, json.dumps({"title": "x", "messages": [first, *messages]}))
    assert store.summaries() == []


def test_a_record_of_another_version_comes_without_it(store: Store) -> None:
    message = {**MESSAGE, "role": "assistant", "answer": {"new": 1}, "trace": "of a new kind", "more": 1}
    number = from_json(store, json.dumps({"title": "x", "leaf": 99, "messages": [message]}))
    entry = store.get(number).path[0].entry
    assert (entry.text, entry.answer, store.trace(1)) == ("x", None, ())


def test_markdown_is_the_branch_in_use(store: Store) -> None:
    number = store.create("be brief")
    asked = store.add(number, None, Entry("user", "# Hi\n```py\nopen", attachments=("a.txt",)))
    store.add(number, asked.id, Entry("assistant", "not shown"))
    store.add(number, asked.id, replace(Entry.of_answer(answer_of([1])), ending="stopped"))
    assert to_markdown(store.get(number)) == (
        "# # Hi\n\n## System\n\nbe brief\n\n## You\n\n# Hi\n```py\nopen\n```\n\n*With a.txt*\n\n"
        "## fake\n\n1 \n\n*(stopped)*\n"
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("```\na\n```", ""),
        ("````\n```\na", "\n````"),
        ("~~~ x\n```\n", "\n~~~"),
        ("```\na\n``` no end", "\n```"),
        ("`` a", ""),
    ],
)
def test_a_code_block_that_is_open_is_closed(store: Store, text: str, end: str) -> None:
    number = store.create()
    store.add(number, None, Entry("user", text))
    assert to_markdown(store.get(number)).endswith(f"## You\n\n{text.rstrip() if end else text}{end}\n")
