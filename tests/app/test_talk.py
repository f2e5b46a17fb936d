"""Conversations through the window: branches, half answers, what is typed, which caches the engine holds."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from app.caches import Caches
from app.errors import StoreError
from app.options import Options
from app.screens.chat import ChatScreen
from app.settings import Bell, Settings
from app.store.database import Database
from app.store.store import Store
from app.transcript import Entry
from app.tui import ChatApp
from app.widgets.answer import AnswerMessage
from app.widgets.chat_message import ChatMessage
from engine.config import Message, Speculation
from engine.errors import HostDied, PromptTooLong
from engine.events import Tokens, TokenTrace
from tests.app.fakes_shelf import chat_app, until
from tests.app.test_chat import ask, chat, questions, ready, shown, streamed
from tests.fakes_client import LOADED, FakeClient, FakeEngine, answer, finished, one_round, tokens


async def say(pilot: Pilot[None], app: ChatApp, engine: FakeEngine, question: str, reply: str) -> ChatScreen:
    """A turn from its question to its end."""
    screen = await ask(pilot, app, engine, question)
    engine.client.send(finished(reply))
    await until(pilot, lambda: screen.state == "ready" and shown(screen)[-1:] == [reply])
    return screen


def wanted(screen: ChatScreen, kind: type[ChatMessage.Wanted], at: int, *more: object) -> ChatMessage.Wanted:
    """What a message posts when its action is chosen."""
    message = [*screen.query(ChatMessage)][at]
    return kind(message, *more)


def contents(engine: FakeEngine) -> list[str]:
    return [message.content for message in engine.client.requests[-1].messages]


async def test_a_question_written_anew_is_another_version_and_both_can_be_looked_at() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await say(pilot, app, engine, "two", "second")
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: screen.prompt.text == "one")
        await say(pilot, app, engine, "other", "third")
        assert contents(engine) == ["other"]
        assert questions(screen) == ["other"]
        assert [(entry.version, entry.versions) for entry in screen.chat.branch.entries] == [(2, 2), (1, 1)]
        screen.post_message(wanted(screen, ChatMessage.VersionWanted, 0, -1))
        await until(pilot, lambda: questions(screen) == ["one", "two"])
        assert shown(screen) == ["first", "second"]
        await say(pilot, app, engine, "three", "fourth")
        assert contents(engine) == ["one", "first", "two", "second", "three"]


async def test_an_answer_in_other_words_is_another_version_of_it_and_what_follows_goes_on_from_it() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 1))
        await until(pilot, lambda: screen.prompt.text == "first")
        screen.prompt.text = "better"
        await pilot.press("enter")
        await until(pilot, lambda: shown(screen) == ["better"])
        assert len(engine.client.requests) == 1
        await say(pilot, app, engine, "two", "second")
        assert contents(engine) == ["one", "better", "two"]
        assert [(entry.version, entry.versions) for entry in screen.chat.branch.entries][1] == (2, 2)


async def test_escape_leaves_the_message_that_is_written_anew() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: screen.prompt.text == "one")
        await pilot.press("escape")
        await until(pilot, lambda: screen.prompt.text == "")
        await say(pilot, app, engine, "two", "second")
        assert contents(engine) == ["one", "first", "two"]


async def test_again_from_an_earlier_answer_cuts_what_followed_and_keeps_it() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await say(pilot, app, engine, "two", "second")
        screen.post_message(wanted(screen, ChatMessage.AgainWanted, 1))
        await until(pilot, lambda: len(engine.client.requests) == 3)
        assert contents(engine) == ["one"]
        engine.client.send(finished("anew"))
        await until(pilot, lambda: shown(screen) == ["anew"])
        screen.post_message(wanted(screen, ChatMessage.VersionWanted, 1, -1))
        await until(pilot, lambda: shown(screen) == ["first", "second"])


async def test_once_warmer_and_once_with_the_same_draws() -> None:
    app, engine = chat_app(settings=Settings(temperature=0.4))
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        last = answer("x")
        for count, key in enumerate(("f8", "f9", "ctrl+r"), 2):
            await pilot.press(key)
            await until(pilot, lambda count=count: len(engine.client.requests) == count)
            engine.client.send(finished("more"))
            await until(pilot, lambda: screen.state == "ready")
        warmer, same, plain = (request.sampling for request in engine.client.requests[1:])
        assert (warmer.temperature, warmer.seed) == (round(last.settings.temperature + 0.3, 2), None)
        assert (same.temperature, same.seed) == (0.4, last.settings.seed)
        assert (plain.temperature, plain.seed) == (0.4, None)


async def test_a_half_answer_goes_on_in_its_own_place() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(finished("one two ", "length", ids=[1, 2]))
        await until(pilot, lambda: screen.state == "ready")
        await pilot.press("ctrl+l")
        await until(pilot, lambda: len(engine.client.requests) == 2)
        request = engine.client.requests[1]
        assert request.go_on
        assert request.messages[-1] == Message(role="assistant", content="one two ", ids=(1, 2))
        engine.client.send(tokens("thr"), one_round())
        await streamed(pilot, screen, "one two thr")
        engine.client.send(finished("three", ids=[3]))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["one two three"]
        entry = screen.chat.branch.entries[-1]
        assert (entry.text, entry.versions, entry.ending) == ("one two three", 1, "")
        assert entry.answer is not None
        assert entry.answer.ids == [1, 2, 3]


async def test_where_the_tokens_of_an_answer_came_from_is_kept_and_shown() -> None:
    trace = [TokenTrace(origin="lookup", text="a ", target=0.5), TokenTrace(origin="target", text="b", target=0.9)]
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "q")
        assert engine.client.requests[0].trace
        engine.client.send(Tokens(text="a b", ids=[1, 2], origins=["lookup", "target"], trace=trace), one_round())
        engine.client.send(finished("a b", ids=[1, 2]))
        await until(pilot, lambda: screen.state == "ready")
        number = screen.chat.branch.entries[-1].id
        assert number is not None
        assert [one.origin for one in screen.chat.store.trace(number)] == ["lookup", "target"]
        first = screen.chat.branch.id
        await pilot.press("ctrl+n")
        await screen.open(first)
        await pilot.press("f4")
        await until(pilot, lambda: "lookup 1" in _text(screen))


def _text(screen: ChatScreen) -> str:
    return "\n".join(str(widget.render()) for widget in screen.query_one(AnswerMessage).query("*"))


async def test_a_crash_costs_nothing_that_was_said(tmp_path: Path) -> None:
    file = tmp_path / "conversations.db"
    app, engine = chat_app(store=lambda: Store.open(file))
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(tokens("half"), one_round())
        await streamed(pilot, screen, "half")
        # as after a crash: another process sees what is on the disk
        other = Store.open(file)
        (summary,) = other.summaries()
        path = other.get(summary.id).path
        assert [(node.entry.text, node.entry.ending) for node in path] == [("q", ""), ("half", "broken off")]
        other.close()


async def test_what_is_typed_comes_back_in_each_conversation(tmp_path: Path) -> None:
    file = tmp_path / "conversations.db"
    app, engine = chat_app(store=lambda: Store.open(file))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        one = screen.chat.branch.id
        screen.prompt.text = "half a thought"
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None and screen.prompt.text == "")
        screen.prompt.text = "something new"
        await screen.open(one)
        assert screen.prompt.text == "half a thought"
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.prompt.text == "something new")
        await pilot.press("ctrl+q")
    again, _ = chat_app(store=lambda: Store.open(file))
    async with again.run_test() as pilot:
        screen = await ready(pilot, again)
        await until(pilot, lambda: screen.prompt.text == "something new")


async def test_the_caches_go_over_to_the_conversation_that_is_asked_in(tmp_path: Path) -> None:
    app, engine = chat_app(caches=Caches(tmp_path))
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        first = screen.chat.branch.id
        assert (engine.client.kept, engine.client.resumed) == ([], [tmp_path / str(first)])
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None)
        await say(pilot, app, engine, "two", "second")
        second = screen.chat.branch.id
        assert engine.client.kept == [tmp_path / str(first)]
        await screen.open(first)
        await say(pilot, app, engine, "three", "third")
        assert engine.client.kept == [tmp_path / str(first), tmp_path / str(second)]
        assert engine.client.resumed == [tmp_path / str(number) for number in (first, second, first)]
        client = engine.client
        await pilot.press("ctrl+q")
    assert client.kept[-1] == tmp_path / str(first)


async def test_what_is_typed_is_read_ahead() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        screen.prompt.focus()
        await pilot.press(*"tell me")
        await until(pilot, lambda: engine.client.prepared)
        assert engine.client.prepared[-1].messages[-1].content == "tell me"
        assert engine.client.requests == []


async def test_the_models_rest_and_come_back_with_the_next_message() -> None:
    app, engine = chat_app(FakeClient(), FakeClient())
    async with app.run_test() as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await screen.unload()
        assert screen.state == "asleep"
        await until(pilot, lambda: engine.started[0].closed)
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: len(engine.started) == 2 and engine.started[1].requests)
        assert contents(engine) == ["one", "first", "two"]


async def test_an_error_of_another_conversation_leaves_this_one_as_it_is() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "one")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None)
        engine.client.send(PromptTooLong(9000, 8192))
        await until(pilot, lambda: screen.state == "ready")
        assert screen.prompt.text == ""
        assert not screen.chat.branch.entries


async def test_a_message_that_waits_is_not_lost_when_the_engine_dies() -> None:
    app, engine = chat_app(FakeClient(), FakeClient())
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "one")
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        engine.client.send(tokens("half"), one_round(), HostDied("gone: start it again"))
        await until(pilot, lambda: screen.state == "dead")
        assert [draft.text for draft in screen.composer.waiting.drafts] == ["two"]
        await pilot.press("f5")
        await until(pilot, lambda: len(engine.started) == 2 and engine.started[1].requests)
        assert contents(engine) == ["one", "half", "two"]


async def test_a_message_that_waits_stays_with_its_conversation() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "one")
        first = screen.chat.branch.id
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None)
        assert not screen.composer.waiting.drafts
        engine.client.send(finished("first"))
        await until(pilot, lambda: screen.state == "ready")
        assert len(engine.client.requests) == 1
        await screen.open(first)
        assert screen.prompt.text == "two"


def loading() -> tuple[ChatApp, FakeEngine]:
    """A window whose engine is loaded once its gate is opened."""
    client = FakeClient([LOADED])
    client.gate.clear()
    return chat_app(client)


async def say_early(pilot: Pilot[None], app: ChatApp, engine: FakeEngine) -> ChatScreen:
    """Ask before the engine is ready."""
    await until(pilot, lambda: engine.started)
    screen = chat(app)
    screen.prompt.text = "early"
    await pilot.press("enter")
    await until(pilot, lambda: questions(screen) == ["early"])
    return screen


async def test_a_question_that_waits_for_the_engine_is_answered_in_its_own_conversation() -> None:
    app, engine = loading()
    async with app.run_test() as pilot:
        screen = await say_early(pilot, app, engine)
        client = engine.client
        first = screen.chat.branch.id
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None)
        client.gate.set()
        await until(pilot, lambda: client.requests)
        client.send(finished("late"))
        await until(pilot, lambda: screen.state == "ready")
        assert not screen.chat.branch.entries
        assert not screen.query(AnswerMessage)
        await screen.open(first)
        await until(pilot, lambda: shown(screen) == ["late"])


async def test_escape_gives_a_question_that_waits_for_the_engine_back() -> None:
    app, engine = loading()
    async with app.run_test() as pilot:
        screen = await say_early(pilot, app, engine)
        client = engine.client
        await pilot.press("escape")
        await until(pilot, lambda: screen.prompt.text == "early")
        client.gate.set()
        await ready(pilot, app)
        await pilot.pause()
        assert client.requests == []


async def test_enter_twice_sends_once() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        screen.prompt.text = "once"
        await pilot.press("enter", "enter")
        await until(pilot, lambda: engine.client.requests)
        await pilot.pause()
        assert questions(screen) == ["once"]
        assert not screen.composer.waiting.drafts


async def test_what_no_longer_stands_on_the_branch_is_not_acted_on() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        for count in (2, 3):
            await pilot.press("ctrl+r")
            await until(pilot, lambda count=count: len(engine.client.requests) == count)
            engine.client.send(finished(f"answer {count}"))
            await until(pilot, lambda: screen.state == "ready")
        stale = wanted(screen, ChatMessage.VersionWanted, 1, -1)
        for message in (
            stale,
            stale,
            wanted(screen, ChatMessage.EditWanted, 1),
            wanted(screen, ChatMessage.AgainWanted, 1),
        ):
            screen.post_message(message)
        await until(pilot, lambda: shown(screen) == ["answer 2"])
        await pilot.pause()
        assert app.is_running


async def test_an_old_message_is_not_written_anew_while_another_waits() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50), notifications=True) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        await ask(pilot, app, engine, "two")
        screen.prompt.text = "three"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: app._notifications)
        engine.client.send(finished("second"))
        await until(pilot, lambda: len(engine.client.requests) == 3)
        assert contents(engine) == ["one", "first", "two", "second", "three"]


async def test_leaving_an_edit_brings_back_what_was_being_typed() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        screen.prompt.text = "half a thought"
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: screen.prompt.text == "one")
        await pilot.press("escape")
        await until(pilot, lambda: screen.prompt.text == "half a thought")
        await say(pilot, app, engine, "two", "second")
        assert contents(engine) == ["one", "first", "two"]


async def test_what_was_being_typed_comes_back_once_an_edit_is_sent() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        screen.prompt.text = "half a thought"
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: screen.prompt.text == "one")
        await pilot.press("enter")
        await until(pilot, lambda: screen.prompt.text == "half a thought")
        assert contents(engine) == ["one"]


@pytest.mark.parametrize("quits", [False, True])
async def test_a_message_that_is_written_anew_is_gone_on_with_where_it_was_left(tmp_path: Path, quits: bool) -> None:
    """In another run, or after a look at another conversation; what stood in the prompt before is behind it."""
    file = tmp_path / "conversations.db"
    store = Store(Database.open(file))
    app, engine = chat_app(store=lambda: store)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        number = screen.chat.branch.id
        screen.prompt.text = "half a thought"
        screen.post_message(wanted(screen, ChatMessage.EditWanted, 0))
        await until(pilot, lambda: screen.prompt.text == "one")
        screen.prompt.text = "one, and more"
        if quits:
            await app.action_quit()
        else:
            await screen.open(None)
            assert screen.prompt.text == ""
            await go_on(pilot, screen, number)
    if quits:
        store = Store(Database.open(file))
        again, _ = chat_app(store=lambda: store)
        async with again.run_test(size=(160, 50)) as pilot:
            await go_on(pilot, await ready(pilot, again), number)


async def go_on(pilot: Pilot[None], screen: ChatScreen, conversation: int | None) -> None:
    """With the message that was being written anew, and then with what was typed before it."""
    await screen.open(conversation)
    assert screen.prompt.text == "one, and more"
    assert screen.editing is not None
    await pilot.press("escape")
    await until(pilot, lambda: screen.prompt.text == "half a thought")
    assert screen.editing is None


async def test_what_waits_when_the_window_is_left_is_kept_and_not_said(tmp_path: Path) -> None:
    """Though the answer that it waits for ends meanwhile."""
    file = tmp_path / "conversations.db"
    store = Store(Database.open(file))
    app, engine = chat_app(store=lambda: store, caches=Caches(tmp_path / "caches"))
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await ask(pilot, app, engine, "one")
        engine.client.send(tokens("half"), one_round())
        await streamed(pilot, screen, "half")
        screen.prompt.text = "two"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        number, engine.client.stopping = screen.chat.branch.id, answer("half", "cancelled")
        engine.client.disk.clear()  # what is kept takes a while
        await app.action_quit()
    assert number is not None
    again = Store(Database.open(file))
    assert [node.entry.text for node in again.get(number).path] == ["one", "half"]
    assert again.get(number).unsent == "two"
    again.close()


class Refusing(Store):
    """A store that a full disk stands under once `full` is set."""

    full = False

    def update(self, message: int, entry: Entry) -> None:
        if self.full:
            raise StoreError("the disk is full: make room")
        super().update(message, entry)


async def test_an_answer_that_cannot_be_kept_is_shown_and_that_is_said_once() -> None:
    store = Refusing(Database.open(None))
    app, engine = chat_app(store=lambda: store)
    async with app.run_test(notifications=True) as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(tokens("one "), one_round())
        await streamed(pilot, screen, "one ")
        store.full = True
        engine.client.send(tokens("two"), finished("one two"))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["one two"]
        assert {note.message for note in app._notifications} == {"the disk is full: make room"}
        store.full = False
        await ask(pilot, app, engine, "next")
        assert contents(engine) == ["q", "one two", "next"]


async def test_a_conversation_with_a_mode_of_its_own_is_switched_by_the_key_too() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await say(pilot, app, engine, "one", "first")
        screen.chat.branch.set_options("", Options(spec="7"))
        assert screen.chat.speculation == Speculation(mode="fixed", length=7)
        await pilot.press("f2")
        await say(pilot, app, engine, "two", "second")
        assert engine.client.requests[-1].speculation == Speculation()
        await pilot.press("f2", "f2")
        await until(pilot, lambda: screen.chat.speculation == Speculation(mode="fixed", length=7))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.chat.branch.id is None)
        assert screen.chat.speculation == Speculation()


async def test_the_models_do_not_rest_right_after_they_were_loaded() -> None:
    app, _ = chat_app(settings=Settings(idle_unload=1))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        await screen._look()
        assert screen.state == "ready"
        screen._used -= 61
        await screen._look()
        assert screen.state == "asleep"


@pytest.mark.parametrize(("bell", "rung"), [("off", []), ("sound", ["bell"]), ("notice", ["notice"])])
async def test_the_end_of_an_answer_is_told_as_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, bell: Bell, rung: list[str]
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(ChatApp, "bell", lambda _: heard.append("bell"))
    monkeypatch.setattr("app.tui.notice", lambda _, tmux: heard.append("notice") or "")
    app, engine = chat_app(settings=Settings(bell=bell))
    async with app.run_test() as pilot:
        await say(pilot, app, engine, "one", "first")
        await until(pilot, lambda: len(heard) >= len(rung))
        assert heard == rung
