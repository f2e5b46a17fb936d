"""Failures of other chat programs, tried on the whole window; the names say which (F05: what Ctrl+C means, …)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from app import bridge, chat
from app.settings import Settings
from app.store.store import Store
from app.transcript import Entry
from app.widgets.chips import Chip
from app.widgets.coloured_answer import ColouredAnswer
from app.widgets.user_message import UserMessage
from engine.config import Request
from engine.events import AnswerEvent, Finished
from tests.app.fakes_trace import SENTENCE, TEXT
from tests.app.fakes_window import TALK, Window, window
from tests.app.test_prompt import burst
from tests.fakes_client import FakeClient, answer

OTHER = (Entry("user", "other question"), Entry("assistant", "other answer"))
LINES = "\n".join(f"{number}: some text of forty characters or so" for number in range(5000))
"""200 kB."""


# F05: Ctrl+C copies, or stops, and never quits


async def focus(win: Window, where: str) -> None:
    if where == "message":
        await win.browse(0)
    elif where == "chip":
        win.chat.composer.attach(Path("one.txt"))
        await win.until(lambda: win.chat.query(Chip))
        win.chat.query(Chip).first().focus()
        await win.focused(Chip)
    else:
        widget = {"prompt": win.prompt, "list": win.chat.sidebar.rows, "search": win.chat.query_one(Input)}[where]
        widget.focus()
        await win.focused(widget)


async def copies(win: Window, where: str) -> None:
    """What is selected is copied: in the conversation, and in the field that has the focus."""
    win.chat.query(UserMessage).first().text_select_all()
    await win.keys("ctrl+c")
    assert win.app.clipboard.strip() == "question"
    win.chat.clear_selection()
    if where in ("prompt", "search"):
        await win.keys(*"typed", "shift+home", "ctrl+c")
        assert win.app.clipboard == "typed"
        await win.keys("backspace")


@pytest.mark.parametrize("where", ["prompt", "message", "list", "search", "chip"])
async def test_f05_ctrl_c_copies_a_selection_else_ends_the_answer_else_says_how_to_quit(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("x")
    async with window() as win:
        await win.open(*TALK)
        await focus(win, where)
        await copies(win, where)
        await win.keys("ctrl+c")
        assert [note.message for note in win.app._notifications][-1] == "Nothing is selected. Ctrl+Q quits."
        await win.ask()
        await focus(win, where)
        await copies(win, where)
        assert (win.chat.state, win.client.stops) == ("writing", 0)
        win.client.stopping = answer("half", "cancelled")
        await win.keys("ctrl+c")
        await win.until(lambda: win.chat.state == "ready")
        assert win.texts[-1] == "half"
        assert win.client.stops == 1
        assert win.app.is_running


async def test_f05_quitting_in_mid_answer_keeps_what_there_is(tmp_path: Path) -> None:
    def store() -> Store:
        return Store.open(tmp_path / "conversations.db")

    async with window(store=store) as win:
        await win.ask("why?")
        await win.stream("half")
        await win.keys("ctrl+q")
        await asyncio.wait_for(win.app._task, 5)  # type: ignore[arg-type]
    with closing(store()) as kept:
        (one,) = kept.summaries()
        assert [(node.entry.text, node.entry.ending) for node in kept.get(one.id).path] == [
            ("why?", ""), ("half", "broken off"),
        ]  # fmt: skip


# F06: an engine that does not listen, and stops and starts in quick turns


def test_f06_quitting_waits_less_than_two_seconds_for_an_engine() -> None:
    assert chat.KEEP_S + bridge.CLOSE_S < 2.0


@pytest.mark.parametrize("begun", ["", "half"])
async def test_f06_stop_reaches_an_engine_that_reads_or_verifies_and_the_window_goes_on(begun: str) -> None:
    async with window() as win:
        await win.ask("why?")
        if begun:
            await win.stream(begun)
        await win.keys("escape")
        assert win.client.stops == 1
        await win.keys(*"next", "f3")
        assert win.prompt.text == "next"
        assert not win.chat.panel.display
        await win.finish(begun, finish="cancelled")
        assert win.shown == ["why?", begun]
        assert win.prompt.text == "next"


class Quick(FakeClient):
    """Ends an answer at once where it is stopped, and only then."""

    running = 0
    most = 0

    async def answer(self, request: Request) -> AsyncIterator[AnswerEvent]:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            async for event in super().answer(request):
                yield event
        finally:
            self.running -= 1

    async def stop(self) -> None:
        self.stops += 1
        if self.running:
            self.send(Finished(answer=answer("half", "cancelled")))


async def test_f06_fifty_quick_stops_and_starts_leave_one_engine_and_no_answer_behind() -> None:
    client = Quick()
    async with window(client, size=(60, 12)) as win:
        with win.app.batch_update():  # what is drawn meanwhile is not looked at
            for turn in range(50):
                win.prompt.text = f"question {turn}"
                await win.keys("enter")
                if turn % 2:
                    await win.until(lambda: client.running)
                await win.keys("escape")
                await win.until(lambda: win.chat.state == "ready" and not win.chat.answering)
        await win.until(lambda: not client.running)
        assert client.most == 1
        assert win.engine.started == [client]
        assert not [worker for worker in win.app.workers if worker.group == "answer" and not worker.is_finished]
        await win.ask("last")
        await win.finish("whole")
        assert win.texts[-2:] == ["last", "whole"]


# F10, C08: pastes and copies


@pytest.mark.parametrize(("pasted", "text"), [("a\r\nb\rc\n", "a\nb\nc\n"), (LINES.replace("\n", "\r\n"), LINES)])
async def test_f10_c08_a_paste_keeps_its_lines_is_not_sent_and_undone_at_once(pasted: str, text: str) -> None:
    async with window() as win:
        win.app.post_message(events.Paste(pasted))
        await win.until(lambda: win.prompt.text)
        assert win.prompt.text == text
        assert win.prompt.document.line_count == text.count("\n") + 1
        await win.keys("ctrl+z")
        assert win.prompt.text == ""
        assert win.texts == []
        assert not win.client.requests


async def test_f10_a_burst_of_keys_is_not_sent_line_by_line() -> None:
    async with window(quiet_s=0.02) as win:
        burst(win.app, "one\rtwo\rthree\r")
        await win.until(lambda: win.prompt.text == "one\ntwo\nthree\n")
        assert win.texts == []
        assert not win.client.requests


@pytest.mark.parametrize("by", ["c", "ctrl+c"])
async def test_c08_a_copied_answer_has_line_feeds_alone(by: str) -> None:
    async with window() as win:
        await win.open(TALK[0], Entry.of_answer(answer("one\r\n\r\ntwo\r\rthree")))
        await win.browse()
        if by == "ctrl+c":
            win.conversation.messages[-1].text_select_all()
        await win.keys(by)
        await win.until(lambda: win.app.clipboard)
        assert "\r" not in win.app.clipboard
        assert by != "c" or win.app.clipboard == "one\n\ntwo\n\nthree"


# F11: an answer stays in its own conversation


async def act_on(win: Window, conversation: int, *keys: str) -> None:
    """Press keys on a conversation in the list."""
    rows = win.chat.sidebar.rows
    await win.until(lambda: any(row.key == f"conversation {conversation}" for row in rows.rows))
    rows.focus()
    rows.go_to(f"conversation {conversation}")
    await win.keys(*keys)


async def test_f11_an_answer_goes_on_in_its_own_conversation_whatever_is_done_to_the_list() -> None:
    async with window() as win:
        other = win.keep(*OTHER)
        await win.ask("mine")
        await win.stream("one ")
        mine = win.chat.chat.branch.id
        assert mine is not None
        await win.chat.open(other)
        await act_on(win, mine, "r")
        await win.keys(*"anew", "enter")
        await act_on(win, mine, "p")
        await win.stream("two")
        assert win.shown == ["other question", "other answer"]
        await win.finish("one two")
        assert win.shown == ["other question", "other answer"]
        await act_on(win, mine, "enter")
        await win.until(lambda: win.shown == ["mine", "one two"])
        store = win.chat.chat.store
        assert [(one.title, one.pinned) for one in store.summaries()] == [("anew", True), ("other question", False)]
        assert [node.entry.text for node in store.get(other).path] == ["other question", "other answer"]


async def test_f11_an_answer_ends_with_its_conversation_and_comes_back_with_it() -> None:
    async with window() as win:
        other = win.keep(*OTHER)
        await win.ask("mine")
        await win.stream("half")
        mine = win.chat.chat.branch.id
        assert mine is not None
        await win.chat.open(other)
        await act_on(win, mine, "d")
        await win.until(lambda: win.client.left == 1 and win.chat.state == "ready")
        assert win.shown == ["other question", "other answer"]
        await win.keys("u")
        await act_on(win, mine, "enter")
        await win.until(lambda: win.shown == ["mine", "half"])


@pytest.mark.parametrize("size", [(5, 3), (200, 60)])
async def test_f11_a_window_that_changes_its_size_loses_no_text(size: tuple[int, int]) -> None:
    text = "".join(f"Line {number} of some length, with `code`.\n\n" for number in range(30))
    async with window(size=(120, 40)) as win:
        await win.ask()
        await win.stream(text[:500])
        await win.pilot.resize_terminal(*size)
        await win.stream(text[500:])
        await win.pilot.resize_terminal(120, 40)
        await win.finish(text)
        assert win.shown[-1] == text
        assert win.texts[-1] == text


# B11: the engine is asked what is on the screen, whatever was done before


async def new_chat(win: Window) -> None:
    await win.keys("ctrl+n")
    await win.until(lambda: win.texts == [])


async def there_and_back(win: Window) -> None:
    here = win.chat.chat.branch.id
    await new_chat(win)
    await win.ask("elsewhere")
    await win.finish("there")
    await win.chat.open(here)


async def edited(win: Window) -> None:
    await win.browse(2)
    await win.keys("e")
    await win.until(lambda: win.prompt.text == "q2")


async def branched(win: Window) -> None:
    await win.browse(1)
    await win.keys("b")
    await win.until(lambda: len(win.texts) == 2)


async def other_pair(win: Window) -> None:
    await win.chat.load(win.client.configs[-1])
    await win.until(lambda: win.chat.state == "ready")


@pytest.mark.parametrize(
    ("done", "before"),
    [
        (new_chat, []),
        (there_and_back, ["q0", "a1", "q2", "a3", "q4"]),
        (edited, ["q0", "a1"]),
        (branched, ["q0", "a1"]),
        (other_pair, ["q0", "a1", "q2", "a3", "q4"]),
    ],
)
async def test_b11_the_engine_is_asked_what_is_on_the_screen(
    done: Callable[[Window], Awaitable[None]], before: list[str]
) -> None:
    roles = ("user", "assistant")
    async with window() as win:
        await win.open(*(Entry(roles[at % 2], f"{'qa'[at % 2]}{at}") for at in range(5)))  # type: ignore[arg-type]
        await done(win)
        await win.ask("next")
        assert [message.content for message in win.client.requests[-1].messages] == [*before, "next"]
        assert win.shown[: len(before) + 1] == [*before, "next"]


async def test_b11_again_takes_the_seed_that_was_set_and_else_another_and_the_same_where_that_is_wanted() -> None:
    async with window(settings=Settings(seed=3)) as win:
        await win.open(*TALK)
        for key, seed in (("ctrl+r", 3), ("f9", 7)):
            await win.keys(key)
            await win.until(lambda: win.chat.state == "writing")
            assert win.client.requests[-1].sampling.seed == seed
            await win.finish("whole answer")


# H06: figures that can be believed


async def test_h06_counts_begin_anew_with_a_turn_a_chat_and_a_pair() -> None:
    def rounds() -> tuple[int, int, int]:
        live = win.chat.panel.live
        return live.turn.rounds, live.chat.rounds, live.session.rounds

    async with window() as win:
        await win.ask()
        await win.stream("one")
        assert rounds() == (1, 1, 1)
        await win.finish("one")
        assert rounds() == (89, 89, 89)
        await win.keys("ctrl+r")
        await win.until(lambda: win.chat.state == "writing")
        await win.stream("two")
        assert rounds() == (1, 90, 90)
        await win.finish("two")
        await win.keys("ctrl+n")
        await win.until(lambda: rounds() == (0, 0, 178))
        await win.ask()
        await win.finish("three")
        assert rounds() == (89, 89, 267)
        await other_pair(win)
        assert rounds() == (89, 0, 267)


async def test_h06_each_token_has_the_origin_that_the_engine_said_also_when_it_is_opened_again() -> None:
    async with window() as win:
        await win.ask()
        await win.stream(TEXT, SENTENCE)
        await win.finish(TEXT)
        here = win.chat.chat.branch.id
        await win.keys("f4")
        for again in (False, True):
            if again:
                await win.chat.open(None)
                await win.chat.open(here)
            await win.until(lambda: win.chat.query(ColouredAnswer))
            legend = str(win.chat.query_one(".legend").render())
            assert legend == "target 6 · lookup 3 · draft model 2 · early exit 1 · corrected 2"
