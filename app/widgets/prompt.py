"""The prompt: Enter sends, Shift+Enter or Ctrl+J breaks the line, and no paste is ever sent by itself.

Terminals without bracketed paste type a paste in one burst; an Enter that is followed by more keys within `quiet_s`,
or that ends a burst of several lines, is a line of the paste.
"""

from contextlib import suppress
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from engine.detokenize import sanitize

QUIET_S = 0.02
"""Keys that follow each other faster than this were not typed by hand."""
BLANK = "\u200b\u200c\u200d\u2060\ufeff"
"""Characters that are neither white space nor seen."""


def plain_lines(text: str) -> str:
    """Text with line feeds alone as line ends, and control characters made visible."""
    return sanitize(text.replace("\r\n", "\n").replace("\r", "\n"))


def is_blank(text: str) -> bool:
    """Whether nothing in the text can be seen."""
    return not text.strip().strip(BLANK).strip()


class Prompt(TextArea):
    """A text area that knows when it is sent."""

    BINDINGS = [
        Binding(
            "shift+enter,ctrl+j",
            "break_line",
            "New line",
            id="prompt.break_line",
            tooltip="Break the line; Enter sends",
            show=False,
        ),
    ]

    @dataclass
    class Submitted(Message):
        """The user sends what the prompt holds; it still holds it."""

        text: str

    def __init__(self, *, quiet_s: float = QUIET_S) -> None:
        super().__init__(
            id="prompt", compact=True, highlight_cursor_line=False, placeholder="Ask something, Enter sends"
        )
        self.cursor_blink = False
        self._quiet_s = quiet_s
        self._enter: Timer | None = None
        self._enter_time = 0.0
        self._burst_end = float("-inf")

    def action_break_line(self) -> None:
        """Break the line at the cursor."""
        self._settle(send=False)
        self._insert("\n")

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._settle(send=False)
            self._enter_time = event.time
            self._enter = self.set_timer(max(self._quiet_s, 0.001), self._send)
            return
        if self._enter is not None:
            pasted = event.time - self._enter_time < self._quiet_s
            if pasted:
                self._burst_end = event.time
            self._settle(send=not pasted)
        elif event.time - self._burst_end < self._quiet_s:
            self._burst_end = event.time

    def _settle(self, *, send: bool) -> None:
        """Decide about the Enter that waits: it sends, or it is a line of a paste."""
        if self._enter is None:
            return
        self._enter.stop()
        self._enter = None
        if send:
            self.post_message(self.Submitted(self.text))
        else:
            self._insert("\n")

    def _send(self) -> None:
        in_paste = self._enter_time - self._burst_end < self._quiet_s
        self._settle(send=not in_paste)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._settle(send=False)
        self._insert(plain_lines(event.text))

    def action_paste(self) -> None:
        """Paste what the program itself copied."""
        self._insert(plain_lines(self.app.clipboard))

    def _watch_show_vertical_scrollbar(self) -> None:
        with suppress(ValueError):  # an undo shortens the text before it moves the cursor back
            super()._watch_show_vertical_scrollbar()

    def accept(self, text: str) -> None:
        """Forget the text that was sent; what was typed since stays."""
        self.text = self.text.removeprefix(text)
        self.move_cursor(self.document.end)

    def _insert(self, text: str) -> None:
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)
            self.scroll_cursor_visible()
