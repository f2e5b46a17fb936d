"""The chat by its keys: what the user does, what the engine is asked, what stands on the screen."""

import asyncio

import pytest
from textual.pilot import Pilot

from app.palette import ActionsProvider
from app.screens.chat import ChatScreen
from app.settings import Settings
from app.tui import ChatApp
from app.widgets.answer import AnswerMessage
from app.widgets.horizon import Horizon
from app.widgets.notice import Notice
from app.widgets.prose import Prose
from app.widgets.sidebar import Sidebar
from app.widgets.user_message import UserMessage
from app.widgets.welcome import Welcome
from engine.config import Message, Speculation
from engine.errors import HostDied, LoadFailed, PromptTooLong
from engine.events import Loaded, Loading
from tests.app.fakes_shelf import CONFIG, chat_app, until
from tests.fakes_client import LOADED, FakeClient, FakeEngine, answer, finished, one_round, reading, tokens


def chat(app: ChatApp) -> ChatScreen:
    assert isinstance(app.screen, ChatScreen)
    return app.screen


async def ready(pilot: Pilot[None], app: ChatApp) -> ChatScreen:
    await until(pilot, lambda: chat(app).state == "ready")
    return chat(app)


async def ask(pilot: Pilot[None], app: ChatApp, engine: FakeEngine, text: str = "hello") -> ChatScreen:
    """Type a question, send it, and wait until the engine has it."""
    screen = await ready(pilot, app)
    before = len(engine.client.requests)
    screen.prompt.text = text
    await pilot.press("enter")
    await until(pilot, lambda: len(engine.client.requests) > before)
    return screen


async def streamed(pilot: Pilot[None], screen: ChatScreen, text: str) -> None:
    await until(pilot, lambda: text in shown(screen)[-1])


def shown(screen: ChatScreen) -> list[str]:
    """The source of every answer on the screen."""
    return [answer.query_one(Prose).source for answer in screen.query(AnswerMessage)]


def receipts(screen: ChatScreen) -> list[str]:
    return [str(answer.query_one(".receipt").render()) for answer in screen.query(AnswerMessage)]


def notices(screen: ChatScreen) -> list[str]:
    return [str(notice.render()) for notice in screen.query(Notice)]


def questions(screen: ChatScreen) -> list[str]:
    return [str(message.said.render()) for message in screen.query(UserMessage)]


async def test_an_answer_streams_and_ends_with_its_whole_text() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "what?")
        assert questions(screen) == ["what?"]
        assert screen.prompt.text == ""
        engine.client.send(tokens("Some **bo"), one_round())
        await streamed(pilot, screen, "Some **bo")
        engine.client.send(tokens("ld** text"), finished("Some **bold** text."))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["Some **bold** text."]
        assert receipts(screen) == [
            "19 tokens · 54.2 tok/s · 67 % accepted · 1.9 a round · reused 790 · read 22 · no near ties"
        ]
        assert not screen.query(Welcome)


async def test_the_next_request_carries_the_conversation_with_the_ids_of_its_answers() -> None:
    settings = Settings(system="Be brief.", seed=3, max_tokens=9, stop=("END",))
    app, engine = chat_app(settings=settings)
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "one")
        engine.client.send(finished("two", ids=[5, 6]))
        await until(pilot, lambda: screen.state == "ready")
        await ask(pilot, app, engine, "three")
        request = engine.client.requests[-1]
        assert request.messages == (
            Message(role="system", content="Be brief."),
            Message(role="user", content="one"),
            Message(role="assistant", content="two", ids=(5, 6)),
            Message(role="user", content="three"),
        )
        assert (request.sampling.seed, request.max_tokens, request.stop) == (3, 9, ("END",))


async def test_the_status_line_is_live() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(200, 24)) as pilot:
        screen = await ask(pilot, app, engine)
        engine.client.send(reading(256, 1024, reused=100))
        await until(pilot, lambda: screen.status.progress)
        assert "256 / 1,024 tokens" in str(screen.status.render())
        engine.client.send(reading(1024, 1024, reused=100), tokens("x"), one_round(emitted=3, ms=60.0))
        await until(pilot, lambda: screen.status.live)
        first, second = str(screen.status.render()).split("\n")
        assert " ".join(first.split()) == (
            "auto 50.0 tok/s · 50 % accepted · 3.0 a round · by lookup context 120 / 8,192"
        )
        assert " ".join(second.split()) == "lookup up to 7: +61 % reused 100 · read 924"
        engine.client.send(finished("x"))
        await until(pilot, lambda: screen.state == "ready")
        assert "54.2 tok/s · 67 % accepted · 1.9 a round" in str(screen.status.render())
        assert "reused 790 · read 22" in str(screen.status.render())


async def test_a_draft_that_catches_up_in_mid_answer_does_not_hide_the_plan() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine)
        engine.client.send(tokens("x"), one_round())
        await streamed(pilot, screen, "x")
        engine.client.send(reading(5, 9), tokens("y"), one_round())
        await streamed(pilot, screen, "xy")
        assert screen.status.progress is None


async def test_the_mode_turns_auto_off_fixed_and_back_at_rest() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        seen = []
        for _ in range(3):
            await pilot.press("f2")
            seen.append(screen.chat.speculation)
        assert seen == [Speculation(mode="off"), Speculation(mode="fixed", length=3), Speculation()]
        assert engine.client.speculations == []
        await pilot.press("f2")
        await ask(pilot, app, engine)
        assert engine.client.requests[-1].speculation == Speculation(mode="off")


async def test_the_mode_turns_in_mid_answer_without_a_reload() -> None:
    app, engine = chat_app(settings=Settings(spec="5", rule="coupled"))
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine)
        assert " fixed 5 " in str(screen.status.render())
        engine.client.send(tokens("half"), one_round())
        await streamed(pilot, screen, "half")
        await pilot.press("f2", "f2", "f2")
        assert engine.client.speculations == [
            Speculation(rule="coupled"),
            Speculation(mode="off", rule="coupled"),
            Speculation(mode="fixed", length=5, rule="coupled"),
        ]
        assert len(engine.client.configs) == 1
        assert screen.state == "writing"


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_stop_keeps_what_there_is_and_flags_it(key: str) -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine)
        engine.client.send(tokens("half an ans"), one_round())
        await streamed(pilot, screen, "half an ans")
        engine.client.stopping = answer("half an ans", "cancelled", ids=[1, 2])
        await pilot.press(key)
        await until(pilot, lambda: screen.state == "ready")
        assert engine.client.stops == 1
        assert shown(screen) == ["half an ans"]
        assert receipts(screen)[0].startswith("stopped · 2 tokens")
        await ask(pilot, app, engine, "go on")
        assert engine.client.requests[-1].messages[1] == Message(role="assistant", content="half an ans", ids=(1, 2))


async def test_escape_at_rest_asks_nothing_of_the_engine() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        await ready(pilot, app)
        await pilot.press("escape")
        assert engine.client.stops == 0


async def test_ctrl_c_at_rest_hints_and_does_not_quit() -> None:
    app, _ = chat_app()
    async with app.run_test(notifications=True) as pilot:
        await ready(pilot, app)
        await pilot.press("ctrl+c")
        assert app.is_running
        assert [note.message for note in app._notifications] == ["Nothing is selected. Ctrl+Q quits."]


async def test_ctrl_c_copies_a_selection_and_the_answer_goes_on() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "words to copy")
        screen.prompt.text = "draft of mine"
        screen.prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "draft of mine"
        screen.prompt.text = ""
        screen.query_one(UserMessage).text_select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard.strip() == "words to copy"
        assert engine.client.stops == 0
        assert screen.state == "writing"


async def test_what_is_sent_in_mid_answer_waits_its_turn() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "first")
        screen.prompt.text = "next"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        assert screen.prompt.text == ""
        assert len(engine.client.requests) == 1
        engine.client.send(finished("one"))
        await until(pilot, lambda: len(engine.client.requests) == 2)
        assert [message.content for message in engine.client.requests[1].messages] == ["first", "one", "next"]
        assert not screen.composer.waiting.drafts


async def test_a_message_whose_turn_comes_leaves_the_reader_in_place() -> None:
    app, engine = chat_app()
    long = "line\n\n" * 60
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await ask(pilot, app, engine, "first")
        view = screen.conversation
        engine.client.send(tokens(long))
        await until(pilot, lambda: view.max_scroll_y > 60)
        screen.prompt.text = "next"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        await pilot.press("pageup", "pageup")
        await until(pilot, lambda: not view.following)
        line = round(view.scroll_y)
        engine.client.send(finished(long))
        await until(pilot, lambda: len(engine.client.requests) == 2)
        engine.client.send(tokens(long))
        await until(pilot, lambda: view.max_scroll_y > 180)
        assert (view.following, round(view.scroll_y)) == (False, line)
        engine.client.send(finished(long))
        await until(pilot, lambda: screen.state == "ready")
        await ask(pilot, app, engine, "last")
        await until(pilot, lambda: view.following)


async def test_the_context_shows_what_is_being_typed() -> None:
    app, engine = chat_app(FakeClient([Loaded(target="big-model", draft=None, n_ctx=100, device="cpu")]))
    async with app.run_test(size=(120, 24)) as pilot:
        screen = await ask(pilot, app, engine, "hello")
        engine.client.send(one_round(context=80), finished("Good day."))
        await until(pilot, lambda: screen.state == "ready")
        screen.prompt.text = "a b c"
        await until(pilot, lambda: "80 + 3 / 100" in str(screen.status.render()))
        assert " + 3 / 100" in str(screen.query_one("#part-context").render())
        screen.prompt.text = "word " * 30
        await until(pilot, lambda: "11 tokens over: the oldest turns leave" in str(screen.status.render()))
        screen.prompt.text = "word " * 100
        await until(pilot, lambda: "does not fit: 1 token over" in str(screen.status.render()))
        await pilot.press("enter")
        await until(pilot, lambda: "over" not in str(screen.status.render()))


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u200b", " \u200b\n\ufeff"])
async def test_nothing_to_see_is_not_sent(text: str) -> None:
    app, engine = chat_app()
    async with app.run_test(notifications=True) as pilot:
        screen = await ready(pilot, app)
        screen.prompt.text = text
        await pilot.press("enter")
        await until(pilot, lambda: app._notifications)
        assert engine.client.requests == []
        assert not screen.chat.branch.entries


async def test_a_question_asked_while_loading_is_answered_once_the_pair_is_there() -> None:
    client = FakeClient([Loading(what="target", share=0.5), LOADED])
    client.gate.clear()
    app, engine = chat_app(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: engine.started and chat(app).status.progress.label == "Loading: target")
        screen = chat(app)
        assert "50 %" in str(screen.status.render())
        screen.prompt.text = "early"
        await pilot.press("enter")
        await until(pilot, lambda: questions(screen) == ["early"])
        assert engine.client.requests == []
        client.gate.set()
        await until(pilot, lambda: engine.client.requests)
        assert engine.client.requests[0].messages == (Message(role="user", content="early"),)


async def test_the_notes_of_a_refused_draft_are_shown_and_the_target_goes_on_alone() -> None:
    note = "the draft is not used: its tokens differ from the target's at 17"
    app, engine = chat_app(FakeClient([Loaded(target="big", draft=None, n_ctx=512, device="cpu", notes=[note])]))
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        assert notices(screen) == [note]
        assert str(screen.title_bar.render()).endswith("big · cpu")
        await ask(pilot, app, engine)
        assert len(engine.client.requests) == 1


async def test_an_answer_goes_on_in_its_own_conversation_while_another_is_looked_at() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "old")
        engine.client.send(tokens("old ans"), one_round())
        await streamed(pilot, screen, "old ans")
        old = screen.chat.branch.id
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.query(Welcome))
        assert not screen.chat.branch.entries
        assert not screen.query(AnswerMessage)
        screen.prompt.text = "new"
        await pilot.press("enter")
        await until(pilot, lambda: screen.composer.waiting.drafts)
        engine.client.send(tokens("wer"), finished("old answer"))
        await until(pilot, lambda: len(engine.client.requests) == 2)
        assert engine.client.requests[-1].messages == (Message(role="user", content="new"),)
        engine.client.send(finished("fresh"))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["fresh"]
        await screen.open(old)
        await until(pilot, lambda: shown(screen) == ["old answer"])
        assert [entry.text for entry in screen.chat.branch.entries] == ["old", "old answer"]


async def test_coming_back_in_mid_answer_shows_what_there_is_of_it_and_the_rest() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(tokens("one "), one_round())
        await streamed(pilot, screen, "one ")
        asked = screen.chat.branch.id
        await pilot.press("ctrl+n")
        engine.client.send(tokens("two "), one_round())
        await until(pilot, lambda: screen.chat.writing and screen.chat.writing.text == "one two ")
        await screen.open(asked)
        await streamed(pilot, screen, "one two ")
        engine.client.send(tokens("three"), finished("one two three"))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["one two three"]
        assert questions(screen) == ["q"]


async def test_an_answer_of_a_conversation_that_is_deleted_is_given_up() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await ask(pilot, app, engine, "old")
        engine.client.send(tokens("old ans"), one_round())
        await streamed(pilot, screen, "old ans")
        gone = screen.chat.branch.id
        assert gone is not None
        screen.chat.store.delete(gone)
        screen.post_message(Sidebar.ConversationDeleted(gone, "old"))
        await until(pilot, lambda: engine.client.left == 1)
        await until(pilot, lambda: screen.query(Welcome))
        assert screen.state == "ready"
        assert not screen.query(AnswerMessage)
        await ask(pilot, app, engine, "new")
        assert engine.client.requests[-1].messages == (Message(role="user", content="new"),)


async def test_what_is_no_longer_seen_is_said_once_and_a_new_chat_has_an_empty_context() -> None:
    app, engine = chat_app()
    note = "the context of 8,192 tokens is full: the model no longer sees the first turn"
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        for count, gone in ((1, 0), (2, 2), (3, 2)):
            await ask(pilot, app, engine)
            said = finished("yes", forgotten=gone, notes=[note] if gone else [])
            engine.client.send(tokens("yes"), one_round(context=4000 + count), said)
            await until(pilot, lambda: screen.state == "ready")
        assert notices(screen) == [note]
        assert len(screen.query(Horizon)) == 1
        assert screen.status.context == (4003, 8192)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: screen.query(Welcome))
        assert not screen.query(Horizon)
        assert screen.status.context == (0, 8192)


async def test_again_answers_the_last_question_anew() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(finished("first"))
        await until(pilot, lambda: screen.state == "ready")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(engine.client.requests) == 2)
        assert engine.client.requests[1].messages == (Message(role="user", content="q"),)
        engine.client.send(finished("second"))
        await until(pilot, lambda: screen.state == "ready")
        assert shown(screen) == ["second"]
        assert [entry.text for entry in screen.chat.branch.entries] == ["q", "second"]
        assert [(entry.version, entry.versions) for entry in screen.chat.branch.entries] == [(1, 1), (2, 2)]


async def test_a_request_that_fails_gives_the_question_back_and_says_why() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "far too long")
        engine.client.send(PromptTooLong(9000, 8192))
        await until(pilot, lambda: screen.state == "ready")
        assert screen.prompt.text == "far too long"
        assert "9,000 tokens" in notices(screen)[0]
        assert not screen.query(AnswerMessage)
        screen.prompt.text = "short"
        await pilot.press("enter")
        await until(pilot, lambda: len(engine.client.requests) == 2)
        assert engine.client.requests[1].messages == (Message(role="user", content="short"),)
        assert questions(screen) == ["short"]


async def test_a_load_that_fails_says_why_and_can_be_tried_again() -> None:
    client = FakeClient([LoadFailed("no memory: take a smaller --ctx")])
    app, engine = chat_app(client)
    async with app.run_test() as pilot:
        await until(pilot, lambda: chat(app).state == "dead")
        screen = chat(app)
        assert notices(screen) == ["no memory: take a smaller --ctx"]
        client.loads = [LOADED]
        await pilot.press("f5")
        await ready(pilot, app)
        assert len(engine.started) == 1
        client.loads = [LoadFailed("no memory: take a smaller --ctx")]
        await screen.load(CONFIG)
        await until(pilot, lambda: chat(app).state == "dead")
        assert screen.models == (), "the pair before is gone, too"


async def test_a_dead_engine_leaves_conversation_and_half_answer_and_a_key_restarts_it() -> None:
    app, engine = chat_app(FakeClient(), FakeClient())
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(tokens("half"), one_round())
        await streamed(pilot, screen, "half")
        engine.client.send(HostDied("the engine died (SIGKILL): start it again"))
        await until(pilot, lambda: screen.state == "dead")
        assert questions(screen) == ["q"]
        assert shown(screen) == ["half"]
        assert receipts(screen) == ["broken off"]
        assert notices(screen) == ["the engine died (SIGKILL): start it again (F5)"]
        screen.prompt.text = "next"
        await pilot.press("enter")
        await pilot.pause()
        assert [draft.text for draft in screen.composer.waiting.drafts] == ["next"]
        await pilot.press("f5")
        await until(pilot, lambda: len(engine.started) == 2 and engine.client.requests)
        assert engine.started[0].closed
        assert [message.content for message in engine.client.requests[0].messages] == ["q", "half", "next"]


async def test_an_engine_that_died_before_the_first_word_gives_the_question_back() -> None:
    app, engine = chat_app(FakeClient(), FakeClient())
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine, "q")
        engine.client.send(HostDied("gone: start it again"))
        await until(pilot, lambda: screen.state == "dead")
        assert screen.prompt.text == "q"
        assert not screen.query(AnswerMessage)


@pytest.mark.parametrize("writing", [False, True])
async def test_quit_ends_the_engine_and_leaves(writing: bool) -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        if writing:
            screen = await ask(pilot, app, engine)
            engine.client.send(tokens("half"), one_round())
            await streamed(pilot, screen, "half")
        else:
            await ready(pilot, app)
        await pilot.press("ctrl+q")
        await asyncio.wait_for(app._task, 2)  # type: ignore[arg-type]
        assert engine.client.closed
        assert app.return_code == 0


async def test_an_engine_that_will_not_close_does_not_hold_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.bridge.CLOSE_S", 0.01)

    class Stubborn(FakeClient):
        async def close(self) -> None:
            self.closed = True
            await asyncio.Event().wait()

    app, engine = chat_app(Stubborn())
    async with app.run_test() as pilot:
        await ready(pilot, app)
        await pilot.press("ctrl+q")
        await asyncio.wait_for(app._task, 2)  # type: ignore[arg-type]
        assert engine.client.closed


async def test_the_priority_is_lowered_once_and_after_the_engine_was_started() -> None:
    calls: list[int] = []
    engine = FakeEngine(FakeClient(), FakeClient())
    app, engine = chat_app(*engine._waiting, lower_priority=lambda: calls.append(len(engine.started)))
    async with app.run_test() as pilot:
        screen = await ask(pilot, app, engine)
        assert calls == [1]
        engine.client.send(HostDied("gone: start it again"))
        await until(pilot, lambda: screen.state == "dead")
        await pilot.press("f5")
        await ready(pilot, app)
        assert len(engine.started) == 2
        assert calls == [1]


async def test_the_pair_is_remembered_once_it_is_loaded() -> None:
    app, _ = chat_app()
    async with app.run_test() as pilot:
        await ready(pilot, app)
        await until(pilot, lambda: app.setup.shelf.uses == 1)  # type: ignore[attr-defined]
        assert app.setup.shelf.uses == 1  # type: ignore[attr-defined]


async def test_a_chosen_link_is_copied_and_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(ChatApp, "open_url", lambda self, url, **_: opened.append(url))
    app, engine = chat_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await ask(pilot, app, engine)
        engine.client.send(finished("[here](https://example.org/x)"))
        await until(pilot, lambda: screen.state == "ready")
        await pilot.pause()
        await pilot.click(screen.query_one(Prose).query_children().first(), offset=(1, 0))
        await until(pilot, lambda: app.clipboard)
        assert app.clipboard == "https://example.org/x"
        assert opened == []


async def test_resizing_in_mid_answer_keeps_the_text() -> None:
    app, engine = chat_app()
    text = "".join(f"Line {number} of some length, with `code` and **weight**.\n\n" for number in range(30))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await ask(pilot, app, engine)
        for at, size in enumerate([(5, 3), (200, 60), (1, 1), (80, 24)]):
            engine.client.send(tokens(text[at * 300 : at * 300 + 300]), one_round())
            await pilot.resize_terminal(*size)
            await until(pilot, lambda: screen.query_one(AnswerMessage).text == text[: at * 300 + 300])  # noqa: B023
        engine.client.send(tokens(text[1200:]), finished(text))
        await until(pilot, lambda: screen.state == "ready")
        assert screen.query_one(AnswerMessage).text == text
        assert screen.chat.branch.entries[-1].text == text


async def test_every_key_has_an_id_a_description_and_a_tooltip() -> None:
    app, _ = chat_app()
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        own = [*ChatScreen.BINDINGS, *ChatApp.BINDINGS, *type(screen.prompt).BINDINGS]
        assert all(binding.id and binding.description and binding.tooltip for binding in own)
        commands = {action.name: action.enabled for action in ActionsProvider(screen).actions()}
        assert commands["Speculation"]
        assert commands["New chat"]
        assert not commands["Stop"]


async def test_keys_can_be_remapped_by_id() -> None:
    app, _ = chat_app(keymap={"chat.speculation": "f12"})
    async with app.run_test() as pilot:
        screen = await ready(pilot, app)
        await pilot.press("f2")
        assert screen.chat.speculation == Speculation()
        await pilot.press("f12")
        assert screen.chat.speculation == Speculation(mode="off")
