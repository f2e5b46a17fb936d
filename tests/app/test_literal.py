"""Text of users and models is shown letter by letter: never markup, never an action, never a control code."""

import ast
import asyncio
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from app.screens.chat import ChatScreen
from app.screens.first_run import FirstRunScreen
from app.setup import Offer
from app.tui import ChatApp
from app.widgets.answer import AnswerMessage
from app.widgets.notice import Notice
from app.widgets.prose import Prose
from app.widgets.user_message import UserMessage
from engine.errors import EngineError
from engine.events import Loaded, Loading
from models.errors import ModelsError
from tests.app.fakes_shelf import FakeShelf, chat_app, setup, until
from tests.fakes_client import FakeClient, FakeEngine, finished, one_round, tokens

MARKUP = ["[/]", "[bold", "[0] x", "[b + ... [/#888888]", "[@click=app.quit]press[/]", "\\[x] [$primary]", "[link=x]"]
CONTROL = [
    "\x1b]52;c;aGk=\x07", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\y", "\x1b[2J", "\x1b[6n", "\x1bPq\x1b\\",
    "\x9b2J\x9d", "\x1b]unterminated", "\x1b[?1000h", "a\x00b\x08c\x7f", "\r\x0b\x0c",
]  # fmt: skip
PACKAGE = Path(__file__).resolve().parents[2] / "app"


def lines(pilot: Pilot[None]) -> str:
    """All that is on the screen, as plain text."""
    screen = pilot.app.screen
    return "\n".join("".join(segment.text for segment in strip) for strip in screen._compositor.render_strips())


def visible(text: str) -> str:
    """What a reader should see of it, without white space."""
    return re.sub(r"\s", "", text)


async def say(pilot: Pilot[None], app: ChatApp, engine: FakeEngine, text: str) -> ChatScreen:
    """Type it as a question, have it streamed back a letter at a time, and finished."""
    screen = app.screen
    assert isinstance(screen, ChatScreen)
    await until(pilot, lambda: screen.state == "ready")
    screen.prompt.text = text
    await pilot.press("enter")
    await until(pilot, lambda: screen.state == "writing")
    for letter in text:
        engine.client.send(tokens(letter), one_round(plan=text))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await until(pilot, lambda: screen.query(AnswerMessage).last().text == text)
    engine.client.send(finished(text, notes=[text]))
    await until(pilot, lambda: screen.state == "ready")
    await pilot.pause()
    return screen


async def test_markup_is_text_in_questions_answers_plans_and_notes() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 48)) as pilot:
        for text in MARKUP:
            screen = await say(pilot, app, engine, text)
            assert str(screen.query(UserMessage).last().said.render()) == text
            assert screen.query(AnswerMessage).last().query_one(Prose).source == text
            assert str(screen.query(Notice).last().render()) == text
            for widget in (UserMessage, Prose, Notice):
                await pilot.click(screen.query(widget).last(), offset=(6, 0))
        assert app.is_running
        assert len(screen.chat.branch.entries) == 2 * len(MARKUP)


@pytest.mark.parametrize("text", ["[/]", "[@click=app.quit]press[/]"])
async def test_markup_is_text_in_names_of_models_and_steps(text: str) -> None:
    client = FakeClient([Loading(what=text, share=0.5), Loaded(target=text, draft=text, n_ctx=9, device=text)])
    client.gate.clear()
    app, _ = chat_app(client)
    async with app.run_test(size=(240, 48)) as pilot:
        await until(pilot, lambda: text in lines(pilot))
        client.gate.set()
        await until(pilot, lambda: f"{text} ← {text} · {text}" in lines(pilot))
        assert app.is_running


async def test_markup_is_text_in_errors_and_toasts() -> None:
    app, engine = chat_app()
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        await until(pilot, lambda: screen.state == "ready")
        for text in MARKUP:
            screen.prompt.text = "q"
            await pilot.press("enter")
            await until(pilot, lambda: screen.state == "writing")
            engine.client.send(EngineError(text))
            await until(pilot, lambda: screen.state == "ready")
            assert str(screen.query(Notice).last().render()) == text
            screen.post_message(Prose.LinkChosen(text))
            await until(pilot, lambda text=text: f"Copied the address {text}" in lines(pilot))
            app.clear_notifications()
        assert app.is_running


async def test_markup_is_text_on_the_first_run() -> None:
    shelf = FakeShelf(tuple(Offer(f"pair{at}", text, text, 1, 1, 1) for at, text in enumerate(MARKUP)))
    app = ChatApp(setup(FakeEngine(), shelf))
    async with app.run_test(size=(100, 60)) as pilot:
        screen = app.screen
        assert isinstance(screen, FirstRunScreen)
        for text in MARKUP:
            assert lines(pilot).count(text) >= 2
            shelf.error = ModelsError(text)
            shelf.begun.clear()
            await pilot.press("enter")
            await until(pilot, shelf.begun.is_set)
            shelf.release.set()
            await until(pilot, lambda: not screen.fetching)
            assert str(screen.said.render()) == f"{text} (Enter tries again)"


async def test_markup_in_tables_code_and_lists_is_text_even_under_the_mouse() -> None:
    rows = "".join(f"| {text} | b |\n" for text in MARKUP)
    rest = "".join(f"- {text}\n\n`{text}`\n\n```{text}\n{text}\n```\n\n" for text in MARKUP)
    app, engine = chat_app()
    app.TOOLTIP_DELAY = 0.001
    async with app.run_test(size=(120, 240), tooltips=True) as pilot:
        screen = await say(pilot, app, engine, f"| {MARKUP[0]} | b |\n|---|---|\n{rows}\n{rest}")
        await pilot.pause()
        for widget in screen.query("MarkdownTableCellContents, ProseFence, MarkdownBullet, MarkdownParagraph"):
            await pilot.hover(widget)
        assert app.is_running
        for text in MARKUP[:5]:
            assert lines(pilot).count(text) >= 4


async def test_no_control_code_reaches_the_terminal() -> None:
    everything = "\n\n".join(CONTROL)
    app, engine = chat_app(
        FakeClient([Loaded(target=everything, draft=None, n_ctx=9, device="cpu", notes=[everything])])
    )
    async with app.run_test(size=(120, 99), notifications=True) as pilot:
        screen = await say(pilot, app, engine, everything)
        screen.post_message(Prose.LinkChosen(everything))
        await until(pilot, lambda: "Copied" in lines(pilot))
        written = lines(pilot).replace("\n", "")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", written)
        assert written.count("␛]52;c;aGk=␇") >= 4
        assert written.count("␦2J␦") >= 4


async def test_html_and_odd_line_ends_of_a_model_are_shown() -> None:
    text = "<div onclick='x'>hi</div>\n\na <b>bold</b>\u2028new\u2029line"
    app, engine = chat_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, engine, text)
        shown = lines(pilot)
        assert shown.count("<div onclick='x'>hi</div>") == 4  # title, question, answer, note
        assert shown.count("a <b>bold</b>") == 3


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_no_widget_is_given_text_to_parse_as_markup(path: Path) -> None:
    """Static and Label take markup unless told otherwise, and so do notices, border titles and tooltips."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).split(".")[-1]
        if name in {"Static", "Label", "notify"}:
            assert any(keyword.arg == "markup" for keyword in node.keywords), f"{path}:{node.lineno}"
        assert name not in {"from_markup", "visualize"}, f"{path}:{node.lineno}"
