"""What the user wrote: plain text, letter by letter, never markup; a long paste shows its head, a file its name."""

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from app.attachments import plain_lines, split
from app.cells import one_line
from app.themes import MUTED
from app.transcript import Entry
from app.widgets.chat_message import ChatMessage

HEAD = 40
"""Lines of a message that are shown."""
CHIP = "$foreground on $panel"
"""The look of a file's name."""


def head(text: str) -> Content:
    """The first lines of a text, and how many more there are."""
    lines = plain_lines(text).split("\n")
    shown = Content("\n".join(lines[:HEAD]))
    if (more := len(lines) - HEAD) > 0:
        return shown + Content.styled(f"\n… and {more:,} more line{'' if more == 1 else 's'}", MUTED)
    return shown


def chips(names: Iterable[str]) -> Content:
    """The names of files, each on a ground of its own."""
    return Content("  ").join([Content.styled(f" {one_line(name)} ", CHIP) for name in names])


class UserMessage(ChatMessage):
    """One message of the user; the text of the files that it carries is not shown."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry)
        typed, _ = split(entry.text, entry.attachments)
        self.said = Static(head(typed), classes="said", markup=False)
        self._chips = Static(chips(entry.attachments), classes="chips", markup=False) if entry.attachments else None

    def compose(self) -> ComposeResult:
        """Text, files, and the line below."""
        yield self.said
        if self._chips is not None:
            yield self._chips
        yield self.foot

    def offers(self) -> Iterable[str]:
        """It can be written anew, gone on from, and copied."""
        return ("edit", "branch", "copy")
