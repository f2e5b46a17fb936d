"""The prompt: Enter sends, Shift+Enter or Ctrl+J breaks the line, and no paste is ever sent by itself.

Terminals without bracketed paste type a paste in one burst; an Enter that is followed by more keys within `quiet_s`,
or that ends a burst of several lines, is a line of the paste.  No key loses what was typed: earlier inputs, the user's
own editor and a failed one all give it back.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from textual import events, on
from textual.app import SuspendNotSupported
from textual.binding import Binding
from textual.document._document import Location
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from app import editor
from app.attachments import dropped, plain_lines
from app.errors import EditorFailed
from app.widgets.recall import Recall

QUIET_S = 0.02
"""Keys that follow each other faster than this were not typed by hand."""
PAUSE_S = 0.4
"""Seconds without a change after which the user is taken to pause."""
BLANK = "\u200b\u200c\u200d\u2060\ufeff"
"""Characters that are neither white space nor seen."""


def is_blank(text: str) -> bool:
    """Whether nothing in the text can be seen."""
    return not text.strip().strip(BLANK).strip()


class Prompt(TextArea):
    """A text area that knows when it is sent."""

    BINDINGS = [
        Binding("enter", "send", "Send", id="prompt.send", show=False,
                tooltip="Send the message; in a burst of several lines Enter is a line of a paste"),
        Binding("shift+enter,ctrl+j", "break_line", "New line", id="prompt.break_line", show=False,
                tooltip="Break the line; Enter sends"),
        Binding("ctrl+g", "edit", "Editor", id="prompt.edit", show=False,
                tooltip="Write in the editor that VISUAL or EDITOR names"),
        Binding("up", "cursor_up", "Earlier input", id="prompt.older", show=False,
                tooltip="On the first line: the input before"),
        Binding("down", "cursor_down", "Later input", id="prompt.newer", show=False,
                tooltip="On the last line: the input after"),
    ]  # fmt: skip

    @dataclass
    class Submitted(Message):
        """The user sends what the prompt holds; it still holds it."""

        text: str

    @dataclass
    class Paused(Message):
        """The text has changed, and then not for a while."""

        text: str

    @dataclass
    class FilesDropped(Message):
        """The user dropped files onto the terminal."""

        paths: tuple[Path, ...]

    def __init__(self, *, quiet_s: float = QUIET_S, pause_s: float = PAUSE_S) -> None:
        super().__init__(
            id="prompt", compact=True, highlight_cursor_line=False, placeholder="Ask something, Enter sends"
        )
        self.cursor_blink = False
        self._quiet_s, self._pause_s = quiet_s, pause_s
        self._enter: Timer | None = None
        self._enter_time = 0.0
        self._burst_end = float("-inf")
        self._pause: Timer | None = None
        self._recall = Recall()

    # Enter, and what a paste is

    def action_send(self) -> None:
        """Send what stands here, as Enter does that is pressed by hand."""
        self._settle(send=False)
        self.post_message(self.Submitted(self.text))

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
        if files := dropped(event.text):
            self.post_message(self.FilesDropped(files))
        else:
            self._insert(plain_lines(event.text))

    def action_paste(self) -> None:
        """Paste what the program itself copied."""
        self._insert(plain_lines(self.app.clipboard))

    def _watch_show_vertical_scrollbar(self) -> None:
        with suppress(ValueError):  # an undo shortens the text before it moves the cursor back
            super()._watch_show_vertical_scrollbar()

    def accept(self, text: str) -> None:
        """Forget the text that was sent, but as an earlier input; what was typed since stays."""
        self._recall.add(text)
        self.put(self.text.removeprefix(text))

    def put(self, text: str) -> None:
        """Hold this text and nothing else, the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def _insert(self, text: str) -> None:
        self._replace(text, *self.selection)

    def _replace(self, text: str, start: Location, end: Location) -> None:
        """One edit, which one undo takes back."""
        if result := self._replace_via_keyboard(text, start, end):
            self.move_cursor(result.end_location)
            self.scroll_cursor_visible()

    def replace_before_cursor(self, length: int, text: str) -> None:
        """Put `text` in the place of so many characters before the cursor, on its line."""
        row, column = self.cursor_location
        self._replace(text, (row, max(0, column - length)), (row, column))

    # Pauses

    @on(TextArea.Changed)
    def _changed(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(max(self._pause_s, 0.001), self._paused)

    def _paused(self) -> None:
        self._pause = None
        self.post_message(self.Paused(self.text))

    # Earlier inputs

    def remember(self, inputs: Sequence[str]) -> None:
        """Take these as the earlier inputs, newest first."""
        self._recall = Recall(inputs)

    def action_cursor_up(self, select: bool = False) -> None:
        """Move up; from the first line to the input before."""
        leaves = self._leaves(select) and self.navigator.is_first_wrapped_line(self.cursor_location)
        if leaves and (text := self._recall.older(self.text)) is not None:
            self.text = text
            self.move_cursor((0, len(self.document.get_line(0))))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Move down; from the last line to the input after, at last to what was being typed."""
        leaves = self._leaves(select) and self.navigator.is_last_wrapped_line(self.cursor_location)
        if leaves and (text := self._recall.newer(self.text)) is not None:
            self.put(text)
        else:
            super().action_cursor_down(select)

    def _leaves(self, select: bool) -> bool:
        """Whether a move beyond the text's edge is one to another input."""
        return not select and self.selection.is_empty

    # The user's own editor

    def action_edit(self) -> None:
        """Open the text in the user's editor; it is one edit, and a failure changes nothing."""
        self._settle(send=False)
        try:
            words = editor.command(os.environ)
            after = self._edited(words)
        except EditorFailed as error:
            self.notify(str(error), severity="error", markup=False)
        except SuspendNotSupported:
            self.notify("This terminal cannot be lent to an editor.", severity="error", markup=False)
        else:
            if after != self.text:
                self._replace(after, (0, 0), self.document.end)

    def _edited(self, words: list[str]) -> str:
        """What the editor left; an error leaves the block as a value, since only a quiet end brings the window back."""
        failed: EditorFailed | None = None
        text = self.text
        with self.app.suspend():
            try:
                text = plain_lines(editor.edit(text, words))
            except EditorFailed as error:
                failed = error
        if failed is not None:
            raise failed
        return text
