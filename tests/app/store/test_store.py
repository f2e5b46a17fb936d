import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import NotStored, StoreError
from app.store.records import Summary
from app.store.store import Store
from app.store.titles import WIDTH, title_of
from app.transcript import Entry
from engine.events import Refused, TokenTrace
from tests.engine.host_fake import answer_of


class Clock:
    """A time that goes on by a minute with each look at it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store.open(None, Clock())
    yield opened
    opened.close()


def talk(store: Store, *texts: str) -> int:
    """A conversation in which this is said, by the user and the model in turn."""
    number, parent = store.create(), None
    for place, text in enumerate(texts):
        parent = store.add(number, parent, Entry("assistant" if place % 2 else "user", text)).id
    return number


def titles(store: Store) -> list[str]:
    return [summary.title for summary in store.summaries()]


def test_what_was_said_is_there_after_the_file_was_opened_anew(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "deep" / "conversations.db")
    number = store.create("be brief", {"temperature": 0.5, "stop": ["x"]})
    entry = Entry("user", "hi\n\0\x1bé東🎉", attachments=("a.txt", "b.py"))
    asked = store.add(number, None, entry)
    answered = store.add(number, asked.id, Entry.of_answer(answer_of([1, 2])))
    store.set_unsent(number, "and then")
    before = store.get(number)
    store.close()
    store = Store.open(tmp_path / "deep" / "conversations.db")
    assert store.get(number) == before
    assert (before.title, before.system, before.unsent) == ("hi", "be brief", "and then")
    assert before.options == {"temperature": 0.5, "stop": ["x"]}
    assert before.path == (asked, answered)
    assert asked.entry == replace(entry, id=asked.id)
    assert answered.entry.answer == answer_of([1, 2])
    assert answered.entry.ending == "cut off"
    assert asked.created.tzinfo is UTC
    store.close()


def test_an_answer_that_goes_on_keeps_the_text_of_its_own_record(store: Store) -> None:
    number = talk(store, "hi")
    whole = Entry("assistant", "before 1 2 ", answer_of([1, 2]), "stopped")
    node = store.add(number, store.get(number).path[-1].id, whole)
    assert node.entry == replace(whole, id=node.id)
    assert node.entry.answer is not None
    assert node.entry.answer.text == "1 2 "


def test_a_record_of_another_version_leaves_the_text(tmp_path: Path) -> None:
    import sqlite3

    store = Store.open(tmp_path / "c.db")
    node = store.add(store.create(), None, Entry.of_answer(answer_of([1])))
    with sqlite3.connect(tmp_path / "c.db") as other:
        other.execute("UPDATE message SET answer = ?", (b'{"text":"","new":1}',))
    other.close()
    entry = store.get(1).path[0].entry
    assert (entry.text, entry.answer, entry.id) == ("1 ", None, node.id)
    store.close()


def test_an_answer_grows_in_its_place(store: Store) -> None:
    number = talk(store, "hi")
    parent = store.get(number).path[-1].id
    node = store.add(number, parent, Entry("assistant", "0 ", None, "broken off"))
    store.update(node.id, Entry("assistant", "0 1 ", None, "broken off"))
    store.update(node.id, Entry.of_answer(answer_of([0, 1, 2], "stop")))
    kept = store.get(number).path
    assert [entry.entry.text for entry in kept] == ["hi", "0 1 2 "]
    assert kept[-1].entry.ending == ""
    assert store.versions(node.id) == (node.id,)
    assert store.search("1")[0].message == node.id


TRACE = (
    TokenTrace(origin="target", text="a ", target=0.123456),
    TokenTrace(origin="model", text="", target=1.0, draft=3.21e-7),
    TokenTrace(origin="lookup", text="é", target=0.5, refused=Refused(text="x\ud800", target=0.25, draft=None)),
)


def test_a_trace_is_kept_beside_its_answer_to_four_digits(store: Store) -> None:
    number = talk(store, "hi")
    node = store.add(number, 1, replace(Entry.of_answer(answer_of([1])), trace=TRACE))
    assert node.entry.trace == ()
    store.update(node.id, Entry("assistant", "1 "))
    first, second, third = store.trace(node.id)
    assert first == TokenTrace(origin="target", text="a ", target=0.1235)
    assert second == TRACE[1]
    assert third.refused is not None
    assert (third.refused.text[0], third.refused.target, third.refused.draft) == ("x", 0.25, None)
    assert store.trace(1) == ()


@given(st.text(st.characters()), st.text(st.characters()))
def test_no_text_is_impossible(text: str, other: str) -> None:
    store = Store.open(None)
    number = store.create(text, {"said": other})
    node = store.add(number, None, Entry("user", text, attachments=(other,)))
    store.rename(number, other)
    store.set_unsent(number, text)
    store.set_unsent(None, other)
    store.remember_input(text)
    store.save_preset(other, text, {})
    store.search(other)
    clean = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert node.entry.text == store.get(number).unsent == store.inputs(1)[0] == store.get(number).system == clean
    store.close()


def test_pinned_ones_come_first_and_then_the_newest(store: Store) -> None:
    numbers = [talk(store, name) for name in "abcde"]
    store.pin(numbers[1], True)
    store.add(numbers[0], 1, Entry("assistant", "again"))
    store.delete(numbers[3])
    assert titles(store) == ["b", "a", "e", "c"]
    first = store.summaries()[0]
    assert first == Summary(numbers[1], "b", first.changed, True, 1)
    assert [summary.title for summary in store.recent(9)] == ["a", "e", "c", "b"]
    store.pin(numbers[1], False)
    assert titles(store) == ["a", "e", "c", "b"]


def test_pages_hold_each_conversation_once() -> None:
    store = Store.open(None, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    numbers = [talk(store, str(place)) for place in range(7)]
    store.pin(numbers[3], True)
    whole, seen, last = store.summaries(), [], None
    while page := store.summaries(2, last):
        seen += page
        last = page[-1]
    assert seen == whole
    assert {summary.id for summary in seen} == set(numbers)
    store.close()


def test_one_in_which_nothing_was_said_is_not_recent(store: Store) -> None:
    number = store.create()
    assert (store.summaries()[0].id, store.summaries()[0].messages, store.recent(5)) == (number, 0, [])
    assert store.get(number).path == ()
    other = talk(store, "x")
    store.create()
    assert [summary.id for summary in store.recent(1)] == [other]


def test_the_first_message_gives_the_title_and_the_user_another(store: Store) -> None:
    number = talk(store, "  What  is\tthis?\nmore", "an answer", "again")
    assert store.get(number).title == "What is this?"
    store.rename(number, "  My\nown ")
    assert (store.get(number).title, [hit.title for hit in store.search("own")]) == ("My own", ["My own"])
    store.add(number, None, Entry("user", "anew"))
    assert store.get(number).title == "My own"
    store.rename(number, " ")
    assert store.get(number).title == "anew"
    assert store.search("own") == []


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("\n \n  x", "x"),
        ("word " * 20, "word " * 11 + "word…"),
        ("longer " * 20, "longer " * 7 + "longer…"),
        ("x" * 100, "x" * 59 + "…"),
        ("漢" * 40, "漢" * 29 + "…"),
    ],
)
def test_a_title_fits_its_line(text: str, title: str) -> None:
    from rich.cells import cell_len

    assert title_of(Entry("user", text)) == title
    assert cell_len(title) <= WIDTH


def test_a_message_of_files_alone_is_called_by_the_first() -> None:
    assert title_of(Entry("user", " ", attachments=("plan.txt", "b"))) == "plan.txt"


def test_what_is_deleted_can_be_restored(store: Store) -> None:
    number = talk(store, "precious", "gold")
    store.delete(number)
    for call in (store.get, store.delete, lambda one: store.pin(one, True), lambda one: store.rename(one, "x")):
        with pytest.raises(NotStored, match=f"there is no conversation {number}"):
            call(number)
    assert (store.summaries(), store.recent(5), store.search("precious"), store.search("gold")) == ([], [], [], [])
    store.restore(number)
    assert titles(store) == ["precious"]
    assert [node.entry.text for node in store.get(number).path] == ["precious", "gold"]
    assert len(store.search("gold")) == 1


def test_an_answer_ends_though_its_conversation_was_deleted_meanwhile(store: Store) -> None:
    number = talk(store, "hi", "half")
    store.delete(number)
    store.update(2, Entry("assistant", "half and half"))
    store.restore(number)
    assert store.get(number).path[-1].entry.text == "half and half"


def test_only_what_was_deleted_before_this_start_is_purged(tmp_path: Path) -> None:
    clock = Clock()
    store = Store.open(tmp_path / "c.db", clock)
    first, second, third = talk(store, "a"), talk(store, "b"), talk(store, "c")
    store.delete(first)
    assert store.purge() == ()
    store.close()
    store = Store.open(tmp_path / "c.db", clock)
    store.delete(second)
    assert store.purge() == (first,)
    store.restore(second)
    with pytest.raises(NotStored):
        store.restore(first)
    assert titles(store) == ["c", "b"]
    assert store.purge() == ()
    assert talk(store, "d") > third > first
    store.close()


@pytest.mark.parametrize("others", [0, 30])
def test_what_is_purged_stands_nowhere_in_the_files(tmp_path: Path, others: int) -> None:
    path = tmp_path / "c.db"
    store = Store.open(path)
    for _ in range(others):
        talk(store, "ordinary text about trains", "and an ordinary answer")
    number = store.create("canarysystem", {"x": "canaryoption"})
    asked = store.add(number, None, Entry("user", "canaryquestion lorem", attachments=("canaryfile",)))
    answer = answer_of([1])
    trace = (TokenTrace(origin="target", text="canarytrace", target=1.0),)
    half = store.add(number, asked.id, Entry("assistant", "canaryhalf", None, "broken off", trace=trace))
    store.update(half.id, Entry("assistant", "canaryanswer", answer))
    store.rename(number, "canarytitle")
    store.set_unsent(number, "canaryunsent")
    store.remember_input("canaryquestion lorem")
    store.remember_input("canaryinput", number)
    store.delete(number)
    store.close()
    store = Store.open(path)
    assert b"canaryquestion" in path.read_bytes()
    assert store.purge() == (number,)
    assert store.inputs() == []
    left = b"".join(file.read_bytes().lower() for file in tmp_path.iterdir())
    store.close()
    assert b"canary" not in left
    assert b"canary" not in path.read_bytes().lower()
    assert b"lorem" not in path.read_bytes()


def test_a_text_that_was_overwritten_is_gone(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "c.db")
    store.set_unsent(None, "canary one")
    store.set_unsent(None, "")
    store.close()
    assert b"canary" not in (tmp_path / "c.db").read_bytes()


def test_search_finds_titles_then_messages_newest_first(store: Store) -> None:
    first = talk(store, "about trains", "Trains run on rails")
    second = talk(store, "about the weather", "no train today", "Züge?")
    store.rename(first, "Railways")
    hits = store.search("trai")
    assert [(hit.conversation, hit.message) for hit in hits] == [(second, 4), (first, 2), (first, 1)]
    assert hits[0].excerpt == "no train today"
    assert hits[0].spans == ((3, 8),)
    assert (hits[0].title, hits[0].changed) == ("about the weather", store.recent(1)[0].changed)
    assert [(hit.conversation, hit.message) for hit in store.search("rail")] == [(first, None), (first, 2)]
    assert [hit.message for hit in store.search("zuge")] == [5]
    assert [hit.message for hit in store.search("TODAY train")] == [4]
    assert store.search("today rails") == []


def test_search_finds_branches_that_are_not_in_use(store: Store) -> None:
    number = talk(store, "hi", "hidden pearl")
    store.add(number, 1, Entry("assistant", "shown"))
    assert [hit.message for hit in store.search("pearl")] == [2]


@pytest.mark.parametrize("text", ["", " ", "?", '"', "*"])
def test_a_search_for_nothing_finds_nothing(store: Store, text: str) -> None:
    talk(store, 'what? * " ')
    assert store.search(text) == []


def test_one_conversation_does_not_take_all_the_room(store: Store) -> None:
    old = talk(store, "needle")
    talk(store, *["needle"] * 10)
    messages = [hit.conversation for hit in store.search("needle", 6) if hit.message is not None]
    assert old in messages
    assert len(store.search("needle", 2)) == 2


def test_earlier_inputs_come_newest_first_and_once(store: Store) -> None:
    for text in ("one", "two", "one", "x\ny"):
        store.remember_input(text)
    assert store.inputs() == ["x\ny", "one", "two"]
    assert store.inputs(2) == ["x\ny", "one"]


def test_inputs_do_not_grow_without_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.desk.MOST_INPUTS", 3)
    for number in range(6):
        store.remember_input(str(number))
    assert store.inputs() == ["5", "4", "3"]


def test_presets_have_names(store: Store) -> None:
    store.save_preset("Poet", "rhyme", {"temperature": 1.2})
    store.save_preset("clerk", "be exact", {})
    store.save_preset("Poet", "rhyme well", {"temperature": 1.3})
    store.delete_preset("nobody")
    assert [(preset.name, preset.system, preset.options) for preset in store.presets()] == [
        ("clerk", "be exact", {}),
        ("Poet", "rhyme well", {"temperature": 1.3}),
    ]
    store.delete_preset("Poet")
    assert [preset.name for preset in store.presets()] == ["clerk"]


def test_unsent_text_and_settings_are_kept(store: Store) -> None:
    number = talk(store, "hi")
    store.set_system(number, "be kind")
    store.set_options(number, {"seed": 7})
    store.set_unsent(None, "a beginning")
    kept = store.get(number)
    assert (kept.system, kept.options, kept.unsent, store.unsent()) == ("be kind", {"seed": 7}, "", "a beginning")


def test_what_json_cannot_say_is_refused(store: Store) -> None:
    number = store.create()
    with pytest.raises(StoreError, match="cannot be kept"):
        store.set_options(number, {"x": object()})
    assert store.get(number).options == {}


def test_threads_share_a_store(store: Store) -> None:
    number = store.create()
    failed: list[BaseException] = []

    def say(name: int) -> None:
        try:
            for place in range(20):
                store.add(number, None, Entry("user", f"{name} {place}"))
                store.summaries()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=say, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(store.tree(number).nodes) == 80
