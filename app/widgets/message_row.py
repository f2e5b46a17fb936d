"""The rows of a conversation: what each becomes as a widget, and about how high that is."""

from dataclasses import dataclass

from textual.widget import Widget

from app.settings import Thoughts
from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.chat_message import ChatMessage
from app.widgets.horizon import Horizon
from app.widgets.notice import Notice, Tone
from app.widgets.passages import SIDES
from app.widgets.pieces import lines_taken
from app.widgets.row import Row
from app.widgets.user_message import HEAD, UserMessage

AROUND = 3
"""Lines of a message besides its text: figures, what can be done with it, a blank one."""


@dataclass
class Look:
    """How answers are shown, now and when they are mounted later."""

    coloured: bool = False
    """By the tokens that they were made of."""
    thoughts: Thoughts = "folded"
    """Whether think blocks are open: never, while they stream, or always."""


class MessageRow(Row):
    """A message; None is the answer that is being written."""

    def __init__(self, entry: Entry | None, look: Look) -> None:
        super().__init__(self._built, self._guessed, kept=entry is None)
        self.entry = entry
        self._look = look

    def _built(self) -> Widget:
        if self.entry is not None and self.entry.role == "user":
            return UserMessage(self.entry)
        return AnswerMessage(self.entry, coloured=self._look.coloured, thoughts=self._look.thoughts)

    def _guessed(self, width: int) -> int:
        if self.entry is None:
            return AROUND
        lines = lines_taken(self.entry.text, width - SIDES)
        return AROUND + (lines if self.entry.role == "assistant" else min(HEAD + 1, lines))

    @property
    def message(self) -> ChatMessage | None:
        """The widget, while there is one."""
        return self.widget if isinstance(self.widget, ChatMessage) else None


class NoticeRow(Row):
    """A sentence of the program's own."""

    def __init__(self, text: str, tone: Tone) -> None:
        super().__init__(lambda: Notice(text, tone), lambda width: lines_taken(text, width - SIDES) + 1)


class HorizonRow(Row):
    """The line between what the model no longer sees and what it sees."""

    def __init__(self) -> None:
        super().__init__(Horizon, lambda _width: 2)
