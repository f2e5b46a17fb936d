"""The prompt: what sends, what breaks a line, and that no paste sends itself."""

from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from app.widgets.prompt import Prompt, is_blank, plain_lines
from tests.app.fakes_shelf import until


class PromptApp(App[None]):
    def __init__(self, quiet_s: float = 0.0) -> None:
        super().__init__()
        self.sent: list[str] = []
        self._quiet_s = quiet_s

    def compose(self) -> ComposeResult:
        yield Prompt(quiet_s=self._quiet_s)

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        self.sent.append(event.text)
        self.query_one(Prompt).accept(event.text)


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


def test_line_ends_and_control_characters() -> None:
    assert plain_lines("a\r\n\r\nb\rc\tд\x9b2J") == "a\n\nb\nc\tд␦2J"


def test_blank() -> None:
    assert all(is_blank(text) for text in ("", " \t\n", "\u200b", "\ufeff \u2060\u200d"))
    assert not is_blank("\u200bx")
