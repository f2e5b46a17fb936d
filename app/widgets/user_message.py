"""What the user wrote: plain text, letter by letter, never markup; a long paste shows its head."""

from textual.content import Content
from textual.widgets import Static

from app.themes import MUTED
from engine.detokenize import sanitize

HEAD = 40
"""Lines of a message that are shown."""


class UserMessage(Static):
    """One message of the user."""

    def __init__(self, text: str) -> None:
        super().__init__(self._shown(text), markup=False)

    @staticmethod
    def _shown(text: str) -> Content:
        lines = sanitize(text).split("\n")
        head = Content("\n".join(lines[:HEAD]))
        if (more := len(lines) - HEAD) > 0:
            return head + Content.styled(f"\n… and {more:,} more line{'' if more == 1 else 's'}", MUTED)
        return head
