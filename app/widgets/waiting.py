"""Messages that were sent while an answer was being written: they wait their turn, in order."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from app.attachments import Draft
from app.cells import spread
from app.themes import MUTED


class Waiting(Widget):
    """A line a message; hidden where none waits."""

    ALLOW_SELECT = False

    @dataclass
    class TakenBack(Message):
        """The user wants the last one back."""

    drafts: reactive[tuple[Draft, ...]] = reactive[tuple[Draft, ...]]((), layout=True)
    """What waits, the next one first."""

    def __init__(self) -> None:
        super().__init__()
        self.tooltip = Content("Sent when the answer ends; a click or Esc takes it back to be changed")
        self.display = False

    def watch_drafts(self) -> None:
        """Show the lines, or nothing."""
        self.display = bool(self.drafts)

    def get_content_height(self, *_: object) -> int:
        """A line a message."""
        return len(self.drafts)

    def render(self) -> Content:
        """What waits; the last one can be taken back."""
        lines = [self._line(draft, last=draft is self.drafts[-1]) for draft in self.drafts]
        return Content("\n").join(lines)

    def _line(self, draft: Draft, *, last: bool) -> Content:
        files = f" + {len(draft.files)} file{'' if len(draft.files) == 1 else 's'}" if draft.files else ""
        left = Content.assemble(
            ("waits its turn  ", "$text-accent"), Content(" ".join(draft.text[:500].split()) or files[3:])
        )
        right = (files if draft.text.strip() else "") + ("  Esc takes it back" if last else "")
        return spread(left, Content.styled(right, MUTED), self.size.width)

    def on_click(self) -> None:
        """Take the last one back."""
        self.post_message(self.TakenBack())
