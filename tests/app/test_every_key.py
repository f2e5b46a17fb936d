"""Every key of the program, pressed in a whole window, does what it says: here those of the chat and its messages."""

import asyncio
import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.widgets import OptionList

from app.keys import Key, declared
from app.screens.help import HelpScreen
from app.screens.models import ModelsScreen
from app.screens.settings import SettingsScreen
from app.transcript import Entry
from app.tui import ChatApp
from app.widgets.answer import AnswerMessage
from app.widgets.chips import Chip
from app.widgets.coloured_answer import ColouredAnswer
from app.widgets.provenance import Provenance
from app.widgets.thought import Thought
from app.widgets.user_message import UserMessage
from app.widgets.welcome import Welcome
from engine.config import Message
from engine.errors import HostDied
from tests.app.fakes_conversation import talk
from tests.app.fakes_keys import Press, Scenarios
from tests.app.fakes_trace import SENTENCE, TEXT
from tests.app.fakes_window import HALF, TALK, Window, window
from tests.app.test_every_key_elsewhere import FIRST, LISTS
from tests.fakes_client import FakeClient, answer

KEYS = Scenarios(lambda: window(FakeClient(), FakeClient(), size=(80, 24)))
QUESTION = (Message(role="user", content="question"),)
TRACED = (Entry("user", "question"), replace(Entry.of_answer(answer(TEXT)), trace=SENTENCE))
CODE = (Entry("user", "question"), Entry.of_answer(answer("```python\nx = 1\n```")))
THOUGHT = (Entry("user", "question"), Entry.of_answer(answer("<think>deep</think>said")))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is exported or attached is here."""
    monkeypatch.chdir(tmp_path)
    for name in ("one.txt", "two.txt"):
        Path(name).write_text("remember")


def test_every_key_has_a_scenario_and_every_scenario_a_key() -> None:
    assert sorted([*KEYS.ids, *LISTS.ids, *FIRST.ids]) == sorted(key.id for key in declared())


async def test_the_list_of_all_actions_is_opened_by_the_mouse_and_what_it_offers_is_done() -> None:
    async with window() as win:
        await win.pilot.click("TitleBar", offset=(4, 0))
        await win.until(lambda: CommandPalette.is_open(win.app))
        await win.keys(*"figures")
        hits = win.app.screen.query("OptionList").last(OptionList)
        await win.until(lambda: hits.option_count and "Figures" in str(hits.get_option_at_index(0).prompt))
        await win.pilot.click(hits, offset=(8, 1))
        await win.until(lambda: not CommandPalette.is_open(win.app) and not win.chat.panel.display)
        assert win.app.screen is win.app.screen_stack[0]


# Everywhere


@KEYS.of("app.quit")
async def _quit(win: Window, press: Press) -> None:
    await press()
    await asyncio.wait_for(win.app._task, 5)  # type: ignore[arg-type]
    assert win.client.closed


@KEYS.of("app.help")
async def _help(win: Window, press: Press) -> None:
    await press()
    await win.screen(HelpScreen)


@KEYS.of("help.close")
async def _help_closes(win: Window, press: Press) -> None:
    await win.keys("f1")
    await win.screen(HelpScreen)
    await press()
    await win.until(lambda: win.app.screen_stack[-1] is win.app.screen_stack[0])


@KEYS.of("app.palette")
async def _palette(win: Window, press: Press) -> None:
    await press()
    await win.until(lambda: CommandPalette.is_open(win.app))


# The chat


@KEYS.of("chat.new")
async def _new(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await press()
    await win.until(lambda: win.chat.query(Welcome))
    assert win.texts == []


@KEYS.of("chat.chats")
async def _chats(win: Window, press: Press) -> None:
    await press()
    assert win.chat.sidebar.display
    await win.focused(win.chat.sidebar.rows)
    await press()
    assert not win.chat.sidebar.display


@KEYS.of("chat.search")
async def _search(win: Window, press: Press) -> None:
    await press()
    await win.focused(win.chat.query_one("#sidebar-search"))
    assert win.chat.sidebar.display


@KEYS.of("chat.figures")
async def _figures(win: Window, press: Press) -> None:
    await press()
    assert win.chat.panel.display


@KEYS.of("chat.colours")
async def _colours(win: Window, press: Press) -> None:
    await win.open(*TRACED)
    await press()
    await win.until(lambda: win.chat.query(ColouredAnswer))


@KEYS.of("chat.browse")
async def _browse(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await press()
    await win.focused(AnswerMessage)


@KEYS.of("chat.up")
async def _page_up(win: Window, press: Press) -> None:
    await win.open(*talk(40))
    await win.until(lambda: win.conversation.scroll_y > 0)
    before = win.conversation.scroll_y
    await press()
    await win.until(lambda: win.conversation.scroll_y < before)


@KEYS.of("chat.down")
async def _page_down(win: Window, press: Press) -> None:
    await win.open(*talk(40))
    win.conversation.scroll_home(animate=False)
    await win.until(lambda: win.conversation.scroll_y == 0)
    await press()
    await win.until(lambda: win.conversation.scroll_y > 0)


@KEYS.of("chat.end")
async def _end(win: Window, press: Press) -> None:
    await win.open(*talk(40))
    win.conversation.scroll_home(animate=False)
    await win.until(lambda: not win.conversation.following)
    await press()
    await win.until(lambda: 0 < win.conversation.scroll_y == win.conversation.max_scroll_y)


@KEYS.of("chat.again")
async def _again(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].messages == QUESTION
    assert win.texts == ["question"]


@KEYS.of("chat.warmer")
async def _warmer(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].sampling.temperature == 0.3


@KEYS.of("chat.same_seed")
async def _same_seed(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].sampling.seed == 7


@KEYS.of("chat.continue")
async def _continue(win: Window, press: Press) -> None:
    await win.open(*HALF)
    await press()
    await _goes_on(win)


async def _goes_on(win: Window) -> None:
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].go_on
    await win.stream(" and more")
    await win.until(lambda: win.shown[-1] == "half and more")


@KEYS.of("chat.models")
async def _models(win: Window, press: Press) -> None:
    await press()
    await win.screen(ModelsScreen)


@KEYS.of("chat.settings")
async def _settings(win: Window, press: Press) -> None:
    await press()
    await win.screen(SettingsScreen)


@KEYS.of("chat.copy")
async def _copy_selection(win: Window, press: Press) -> None:
    await win.open(*TALK)
    win.chat.query_one(UserMessage).text_select_all()
    await press()
    assert win.app.clipboard.strip() == "question"


@KEYS.of("chat.speculation")
async def _speculation(win: Window, press: Press) -> None:
    await press()
    await win.until(lambda: str(win.chat.status.render()).startswith(" off "))


@KEYS.of("chat.stop")
async def _stop(win: Window, press: Press) -> None:
    await win.ask()
    win.client.stopping = answer("half", "cancelled")
    await press()
    await win.until(lambda: win.chat.state == "ready")
    assert win.shown == ["hello", "half"]


@KEYS.of("chat.restart")
async def _restart(win: Window, press: Press) -> None:
    await win.ask()
    win.client.send(HostDied("gone: start it again"))
    await win.until(lambda: win.chat.state == "dead")
    await press()
    await win.until(lambda: win.chat.state == "ready")
    assert len(win.engine.started) == 2


# The prompt


@KEYS.of("prompt.send")
async def _send(win: Window, press: Press) -> None:
    await win.keys("a")
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[-1].messages[-1].content == "a"


@KEYS.of("prompt.break_line")
async def _break_line(win: Window, press: Press) -> None:
    await win.keys("a")
    await press()
    await win.keys("b")
    assert win.prompt.text == "a\nb"
    assert not win.client.requests


@KEYS.of("prompt.edit")
async def _edit(win: Window, press: Press) -> None:
    await win.keys("a")
    with pytest.MonkeyPatch.context() as patch:
        write = "import sys; open(sys.argv[-1], 'a').write('ll of it')"
        patch.setenv("VISUAL", shlex.join([sys.executable, "-c", write]))
        patch.setattr(ChatApp, "suspend", lambda _app: nullcontext())
        await press()
    assert win.prompt.text == "all of it"


@KEYS.of("prompt.older")
async def _older(win: Window, press: Press) -> None:
    win.prompt.remember(["earlier"])
    await press()
    assert win.prompt.text == "earlier"


@KEYS.of("prompt.newer")
async def _newer(win: Window, press: Press) -> None:
    win.prompt.remember(["earlier"])
    await win.keys(*"now", "up")
    assert win.prompt.text == "earlier"
    await press()
    assert win.prompt.text == "now"


@KEYS.of("prompt.attach")
async def _attach(win: Window, press: Press) -> None:
    await press()
    assert win.prompt.text == "@"
    await win.until(lambda: win.chat.composer.paths.open)


@KEYS.of("prompt.complete")
async def _complete(win: Window, press: Press) -> None:
    await _attach(win, lambda: win.keys("ctrl+o"))
    await press()
    await win.until(lambda: win.chat.query(Chip))
    assert win.chat.query_one(Chip).file.name == "one.txt"
    assert win.prompt.text == ""


@KEYS.of("prompt.next_path")
async def _next_path(win: Window, press: Press) -> None:
    await _attach(win, lambda: win.keys("ctrl+o"))
    await press()
    assert _path(win) == "two.txt"


@KEYS.of("prompt.path_before")
async def _path_before(win: Window, press: Press) -> None:
    await _attach(win, lambda: win.keys("ctrl+o"))
    await win.keys("down")
    await press()
    assert _path(win) == "one.txt"


def _path(win: Window) -> str:
    chosen = win.chat.composer.paths.chosen
    return chosen.shown if chosen else ""


@KEYS.of("prompt.back")
async def _back(win: Window, press: Press) -> None:
    await _attach(win, lambda: win.keys("ctrl+o"))
    await press()
    assert not win.chat.composer.paths.open
    win.prompt.text = ""
    await win.ask()
    win.prompt.text = "next"
    await win.keys("enter")
    await win.until(lambda: win.chat.composer.waiting.drafts)
    await press()
    assert win.prompt.text == "next"
    assert not win.chat.composer.waiting.drafts
    assert win.client.stops == 0


@KEYS.of("prompt.drop_last")
async def _drop_last(win: Window, press: Press) -> None:
    await _attached(win)
    await press()
    await win.until(lambda: len(win.chat.query(Chip)) == 1)


@KEYS.of("chip.remove")
async def _remove(win: Window, press: Press) -> None:
    await _attached(win)
    win.chat.query(Chip).first().focus()
    await win.focused(Chip)
    await press()
    await win.until(lambda: [chip.file.name for chip in win.chat.query(Chip)] == ["two.txt"])


async def _attached(win: Window) -> None:
    win.chat.composer.attach(Path("one.txt"), Path("two.txt"))
    await win.until(lambda: len(win.chat.query(Chip)) == 2)


# The message cursor


@KEYS.of("conversation.before")
async def _before(win: Window, press: Press) -> None:
    await _moves(win, press, start=3, end=2)


@KEYS.of("conversation.after")
async def _after(win: Window, press: Press) -> None:
    await _moves(win, press, start=2, end=3)


@KEYS.of("conversation.first")
async def _first(win: Window, press: Press) -> None:
    await _moves(win, press, start=3, end=0)


@KEYS.of("conversation.last")
async def _last(win: Window, press: Press) -> None:
    await _moves(win, press, start=1, end=5)


async def _moves(win: Window, press: Press, *, start: int, end: int) -> None:
    await win.open(*talk(6))
    await win.browse(start)
    await press()
    await win.until(lambda: win.conversation.chosen == end and win.app.focused in win.chat.query(".-chosen"))


@KEYS.of("conversation.leave")
async def _leave(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse()
    await press()
    await win.focused(win.prompt)
    assert not win.chat.query(".-chosen")


async def test_escape_ends_an_answer_before_it_leaves_the_messages() -> None:
    async with window() as win:
        await win.open(*TALK)
        await win.ask()
        win.client.stopping = answer("half", "cancelled")
        await win.browse(0)
        await win.keys("escape")
        await win.until(lambda: win.chat.state == "ready")
        assert win.shown[-1] == "half"
        assert win.app.focused is win.conversation.messages[0]
        await win.keys("escape")
        await win.focused(win.prompt)
        assert win.client.stops == 1


# Messages


@KEYS.of("message.edit")
async def _edit_message(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse(0)
    await press()
    await win.until(lambda: win.prompt.text == "question")
    assert win.chat.composer.has_class("-editing")
    assert win.prompt.has_focus


@KEYS.of("message.again")
async def _again_message(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse()
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].messages == QUESTION


@KEYS.of("message.warmer")
async def _warmer_message(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse()
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].sampling.temperature == 0.3


@KEYS.of("message.same_seed")
async def _same_seed_message(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse()
    await press()
    await win.until(lambda: win.client.requests)
    assert win.client.requests[0].sampling.seed == 7


@KEYS.of("message.continue")
async def _continue_message(win: Window, press: Press) -> None:
    await win.open(*HALF)
    await win.browse()
    await press()
    await _goes_on(win)


@KEYS.of("message.branch")
async def _branch(win: Window, press: Press) -> None:
    await win.open(*talk(4))
    await win.browse(1)
    await press()
    await win.until(lambda: win.shown == ["question 0", "answer 1\n\n- a\n- b"])
    assert win.prompt.has_focus


@KEYS.of("message.copy")
async def _copy(win: Window, press: Press) -> None:
    await win.open(*TALK)
    await win.browse()
    await press()
    await win.until(lambda: win.app.clipboard == "whole answer")


async def _versions(win: Window) -> None:
    """Two answers to one question, the second in use and under the cursor."""
    id = await win.open(*TALK)
    store = win.chat.chat.store
    store.add(id, store.get(id).path[0].id, Entry.of_answer(answer("another")))
    await win.chat.open(id)
    await win.until(lambda: win.shown == ["question", "another"])
    await win.browse()


@KEYS.of("message.earlier")
async def _earlier(win: Window, press: Press) -> None:
    await _versions(win)
    await press()
    await win.until(lambda: win.shown == ["question", "whole answer"])


@KEYS.of("message.later")
async def _later(win: Window, press: Press) -> None:
    await _versions(win)
    await win.keys("comma")
    await win.until(lambda: win.shown == ["question", "whole answer"])
    await win.browse()
    await press()
    await win.until(lambda: win.shown == ["question", "another"])


@KEYS.of("message.thoughts")
async def _thoughts(win: Window, press: Press) -> None:
    await win.open(*THOUGHT)
    await win.browse()
    assert win.chat.query_one(Thought).folded
    await press()
    assert not win.chat.query_one(Thought).folded


@KEYS.of("message.code")
async def _code(win: Window, press: Press) -> None:
    await win.open(*CODE)
    await win.browse()
    await press()
    await win.until(lambda: win.app.clipboard == "x = 1")


@KEYS.of("message.token")
async def _token(win: Window, press: Press) -> None:
    await _points(win, press, "right", at=1)


@KEYS.of("message.token_before")
async def _token_before(win: Window, press: Press) -> None:
    await _points(win, press, "right", "right", at=0)


@KEYS.of("message.refused")
async def _refused(win: Window, press: Press) -> None:
    await _points(win, press, at=3)


@KEYS.of("message.refused_before")
async def _refused_before(win: Window, press: Press) -> None:
    await _points(win, press, "n", "n", at=3)


async def _points(win: Window, press: Press, *before: str, at: int) -> None:
    """In a coloured answer, some keys and then this one point at a token."""
    await win.open(*TRACED)
    await win.keys("f4")
    await win.until(lambda: win.chat.query(Provenance))
    await win.browse()
    await win.keys(*before)
    await press()
    assert win.chat.query_one(Provenance).shown == at
    assert win.chat.query_one(".card").display


# All of them


@pytest.mark.parametrize(("key", "pressed"), KEYS.each())
async def test_a_key_of_the_chat_does_what_it_says(key: Key, pressed: str) -> None:
    assert await KEYS.attempt(key, pressed)
