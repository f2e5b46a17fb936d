"""The prompt: what sends, what breaks a line, and that no paste sends itself."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from app.widgets.prompt import Prompt, is_blank
from app.widgets.recall import Recall
from tests.app.fakes_shelf import until


class PromptApp(App[None]):
    def __init__(self, quiet_s: float = 0.0, pause_s: float = 0.0) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.paused: list[str] = []
        self._quiet_s, self._pause_s = quiet_s, pause_s

    def compose(self) -> ComposeResult:
        yield Prompt(quiet_s=self._quiet_s, pause_s=self._pause_s)

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append(event.text)
        self.query_one(Prompt).accept(event.text)

    def on_prompt_paused(self, event: Prompt.Paused) -> None:
        self.paused.append(event.text)


async def paste(pilot: Pilot[None], text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


def burst(app: PromptApp, text: str, start: float = 100.0, gap: float = 0.0005) -> None:
    """Keys as a terminal without bracketed paste sends them: one every half millisecond."""
    for at, letter in enumerate(text):
        key = events.Key("enter", "\r") if letter == "\r" else events.Key(letter, letter)
        key.time = start + at * gap
        app.query_one(Prompt).post_message(key)


async def test_enter_sends() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: app.sent)
        assert app.sent == ["hi"]
        assert app.query_one(Prompt).text == ""


async def test_shift_enter_and_ctrl_j_break_the_line() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "shift+enter", "b", "ctrl+j", "c")
        assert app.query_one(Prompt).text == "a\nb\nc"
        assert app.sent == []


async def test_a_paste_keeps_its_lines_normalized_and_is_not_sent() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await paste(pilot, "a\r\nb\rc\n")
        prompt = app.query_one(Prompt)
        assert prompt.text == "a\nb\nc\n"
        assert prompt.document.line_count == 4
        assert app.sent == []
        await pilot.press("ctrl+z")
        assert prompt.text == ""


async def test_a_paste_of_5000_lines_is_one_edit_and_not_sent() -> None:
    text = "\n".join(f"{number}: some text of forty characters or so" for number in range(5000))
    app = PromptApp()
    async with app.run_test() as pilot:
        await paste(pilot, text.replace("\n", "\r\n"))
        prompt = app.query_one(Prompt)
        await until(pilot, lambda: prompt.text)
        assert prompt.text == text
        assert app.sent == []
        await pilot.press("ctrl+z")
        assert prompt.text == ""


async def test_a_pasted_escape_code_is_made_visible() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await paste(pilot, "a\x1b]52;c;aGk=\x07b")
        assert app.query_one(Prompt).text == "a␛]52;c;aGk=␇b"


async def test_a_burst_of_keys_with_line_ends_is_a_paste_and_not_sent() -> None:
    app = PromptApp(quiet_s=0.02)
    async with app.run_test() as pilot:
        burst(app, f"one\rtwo\r\r{'x' * 99}\r")
        await until(pilot, lambda: app.query_one(Prompt).text.endswith("x\n"))
        assert app.query_one(Prompt).text == f"one\ntwo\n\n{'x' * 99}\n"
        assert app.sent == []


async def test_one_line_sent_in_a_burst_is_sent() -> None:
    app = PromptApp(quiet_s=0.02)
    async with app.run_test() as pilot:
        burst(app, "hello\r")
        await until(pilot, lambda: app.sent)
        assert app.sent == ["hello"]


async def test_a_key_long_after_enter_is_no_paste_even_if_the_window_was_busy() -> None:
    app = PromptApp(quiet_s=30.0)
    async with app.run_test() as pilot:
        burst(app, "a\rb", gap=31.0)
        await until(pilot, lambda: app.sent)
        assert app.sent == ["a"]
        assert app.query_one(Prompt).text == "b"


async def test_a_paste_right_after_enter_makes_that_enter_a_line() -> None:
    app = PromptApp(quiet_s=30.0)
    async with app.run_test() as pilot:
        burst(app, "a\r")
        await paste(pilot, "b")
        assert app.query_one(Prompt).text == "a\nb"
        assert app.sent == []


async def test_what_the_program_copied_is_pasted_as_plain_lines() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.copy_to_clipboard("x\r\ny")
        await pilot.press("ctrl+v")
        assert app.query_one(Prompt).text == "x\ny"


def test_blank() -> None:
    assert all(is_blank(text) for text in ("", " \t\n", "\u200b", "\ufeff \u2060\u200d"))
    assert not is_blank("\u200bx")


async def test_earlier_inputs_come_back_and_what_was_typed_too() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        prompt = app.query_one(Prompt)
        prompt.remember(["second\nline", "first"])
        await pilot.press("n", "e", "w")
        seen = [prompt.text]
        for _ in range(3):
            await pilot.press("up")
            seen.append(prompt.text)
        assert seen == ["new", "second\nline", "first", "first"]
        await pilot.press("end", "X", "down")
        assert prompt.text == "second\nline"
        await pilot.press("down")
        assert prompt.text == "new"
        await pilot.press("down", "up", "up")
        assert prompt.text == "firstX"


async def test_arrows_move_inside_a_text_before_they_leave_it() -> None:
    app = PromptApp()
    async with app.run_test(size=(20, 24)) as pilot:
        prompt = app.query_one(Prompt)
        prompt.remember(["old"])
        prompt.put("日本語 " * 8)  # wraps
        assert prompt.wrapped_document.height > 2
        await pilot.press("up")
        assert prompt.text != "old"
        await pilot.press(*["up"] * prompt.wrapped_document.height)
        assert prompt.text == "old"
        await pilot.press("down")
        assert prompt.text == "日本語 " * 8
        await pilot.press("shift+up")
        assert prompt.selected_text


async def test_what_was_sent_is_the_last_input() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for text in ("a", "b", "b"):
            await pilot.press(text, "enter")
            await until(pilot, lambda: app.query_one(Prompt).text == "")
        await pilot.press("up", "up", "up")
        assert app.query_one(Prompt).text == "a"
        await pilot.press("down", "down")
        assert app.query_one(Prompt).text == ""


@given(st.lists(st.sampled_from(["older", "newer", "write"]), max_size=30), st.lists(st.text(), max_size=4))
def test_nothing_that_was_typed_is_lost_on_the_way(steps: list[str], inputs: list[str]) -> None:
    recall, at, held = Recall(inputs), 0, {0: ""}
    text = ""
    for number, step in enumerate(steps):
        if step == "write":
            text = held[at] = f"{text}{number}"
            continue
        found = recall.older(text) if step == "older" else recall.newer(text)
        to = at + (1 if step == "older" else -1)
        if not 0 <= to <= len(inputs):
            assert found is None
            continue
        at = to
        assert found == held.get(at, inputs[at - 1] if at else "")
        text = found


async def test_a_pause_is_told_once_with_all_that_was_typed() -> None:
    app = PromptApp(pause_s=0.01)
    async with app.run_test() as pilot:
        await pilot.press("a", "b", "c")
        await until(pilot, lambda: app.paused and app.paused[-1] == "abc")
        count = len(app.paused)
        await pilot.press("left")
        await pilot.pause(0.02)
        assert len(app.paused) == count
        await pilot.press("enter")
        await until(pilot, lambda: app.paused[-1] == "")


class EditorApp(PromptApp):
    """An app whose terminal can be lent."""

    suspended = 0

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.suspended += 1
        yield
        self.suspended += 1  # what an error in the block would keep from being done


def editor(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setenv("VISUAL", shlex.join([sys.executable, "-c", f"import sys; path = sys.argv[-1]; {code}"]))


async def test_the_users_editor_is_one_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    editor(monkeypatch, "text = open(path).read(); open(path, 'w').write(text + '\\r\\n\\x1b[2Jעברית')")
    app = EditorApp()
    async with app.run_test() as pilot:
        prompt = app.query_one(Prompt)
        await pilot.press("a", "ctrl+g")
        assert prompt.text == "a\n␛[2Jעברית"
        assert app.suspended == 2
        assert prompt.cursor_location == prompt.document.end
        await pilot.press("ctrl+z")
        assert prompt.text == "a"


@pytest.mark.parametrize("code", ["sys.exit(1)", "open(path, 'wb').write(b'\\xff')"])
async def test_a_failing_editor_loses_nothing_and_gives_the_terminal_back(
    monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    editor(monkeypatch, code)
    app = EditorApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+g")
        assert app.query_one(Prompt).text == "a"
        assert app.suspended == 2
        assert len(app._notifications) == 1


async def test_no_editor_and_no_terminal_to_lend_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+g")
        editor(monkeypatch, "pass")
        await pilot.press("ctrl+g")
        assert app.query_one(Prompt).text == "a"
        said = [notification.message for notification in app._notifications]
        assert [message.split(":")[0] for message in said] == [
            "no editor is set", "This terminal cannot be lent to an editor.",
        ]  # fmt: skip


async def test_input_methods_and_right_to_left_text() -> None:
    """An input method commits a whole word at once, as one key or as a burst of them."""
    app = PromptApp(quiet_s=0.02)
    async with app.run_test() as pilot:
        prompt = app.query_one(Prompt)
        burst(app, "日本語שלום")
        key = events.Key("한글", "한글")
        prompt.post_message(key)
        await until(pilot, lambda: prompt.text.endswith("한글"))
        assert prompt.text == "日本語שלום한글"
        assert prompt.cursor_screen_offset.x - prompt.content_region.x == 6 + 4 + 4
        await pilot.press("backspace", "left", "backspace")
        assert prompt.text == "日本語שלו한"
