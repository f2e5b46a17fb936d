"""The line below a message: which version it is, and what can be done with it while it is chosen or under the mouse.

The line is always there, so nothing moves when its words appear.
"""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection
from textual.style import Style
from textual.widget import Widget

from app.themes import MUTED

GAP = " "


def link(word: str, action: str) -> Content:
    """A word that does something when it, or a cell beside it, is clicked."""
    return Content.styled(f" {word} ", Style.from_meta({"@click": f"press({action!r})"}))


class Foot(Widget):
    """One line of one message."""

    ALLOW_SELECT = False

    @dataclass
    class Pressed(Message):
        """A word was clicked; the action is one of the message's."""

        action: str

    lit: reactive[bool] = reactive(False)
    """Whether what can be done is shown."""
    offers: reactive[tuple[tuple[str, str], ...]] = reactive(())
    """What can be done: a word and an action each."""
    version: reactive[tuple[int, int]] = reactive((1, 1))
    """Which version the message is, of how many."""

    def render(self) -> Content:
        """The line."""
        parts = [self._versions()] if self.version[1] > 1 else []
        if self.lit:
            parts += [link(word, action) for word, action in self.offers]
        return Content(GAP).join(parts)

    def _versions(self) -> Content:
        at, count = self.version
        before = link("<", "version(-1)") if at > 1 else Content.styled(" < ", MUTED)
        after = link(">", "version(1)") if at < count else Content.styled(" > ", MUTED)
        return Content.assemble(before, (f"{at}/{count}", MUTED), after)

    def action_press(self, action: str) -> None:
        """A word was clicked."""
        self.post_message(self.Pressed(action))

    def get_selection(self, _selection: Selection) -> tuple[str, str] | None:
        """Nothing of it is ever copied with a message."""
        return None
