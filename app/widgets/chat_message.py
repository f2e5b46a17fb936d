"""What questions and answers have in common: a line below with versions and actions, and keys for these.

A message only says what is wanted of it.  Keys reach it while it has the focus, which it can have while it is chosen.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.selection import Selection

from app.options import Options
from app.transcript import Entry
from app.widgets.foot import Foot


class ChatMessage(Vertical):
    """One message of the conversation."""

    BINDINGS = [
        Binding("e", "edit", "Edit", id="message.edit", tooltip="Write this message anew, as another version of it"),
        Binding("r", "again", "Again", id="message.again", tooltip="Answer anew; this answer stays as a version"),
        Binding(
            "w", "warmer", "Warmer", id="message.warmer", show=False,
            tooltip="Answer anew, more boldly than this answer was drawn",
        ),
        Binding(
            "s", "same_seed", "Same seed", id="message.same_seed", show=False,
            tooltip="Answer anew with the draws of this answer",
        ),
        Binding("g", "go_on", "Continue", id="message.continue", tooltip="Go on with an answer that is not whole"),
        Binding("b", "branch", "Branch", id="message.branch", tooltip="Ask something else from here on"),
        Binding("c", "copy", "Copy", id="message.copy", tooltip="Copy the text of this message"),
        Binding(
            "less_than_sign,comma", "version(-1)", "Version before", id="message.earlier", show=False,
            tooltip="Show the version before this one, with what followed it",
        ),
        Binding(
            "greater_than_sign,full_stop", "version(1)", "Version after", id="message.later", show=False,
            tooltip="Show the version after this one, with what followed it",
        ),
    ]  # fmt: skip
    WORDS: ClassVar[dict[str, str]] = {
        "edit": "edit", "again": "again", "warmer": "warmer", "go_on": "continue", "branch": "branch", "copy": "copy",
        "same_seed": "same seed",
    }  # fmt: skip
    """The word for each action, in the order of the line below, which may be cut at its end."""

    @dataclass
    class Wanted(Message):
        """Something is wanted of a message."""

        message: "ChatMessage"

        @property
        def entry_id(self) -> int | None:
            """The message's number in the store; None while it has none."""
            return self.message.entry.id if self.message.entry else None

    @dataclass
    class EditWanted(Wanted):
        """The text is to be written anew."""

    @dataclass
    class AgainWanted(Wanted):
        """The question is to be answered anew, with these settings for that one answer."""

        once: Options | None = None

    @dataclass
    class ContinueWanted(Wanted):
        """The answer is to be gone on with."""

    @dataclass
    class BranchWanted(Wanted):
        """The conversation is to go on from here in another way."""

    @dataclass
    class VersionWanted(Wanted):
        """Another version is to be shown."""

        step: int
        """-1: the one before; 1: the one after."""

    @dataclass
    class CopyWanted(Wanted):
        """This text is to be copied."""

        text: str

    chosen: reactive[bool] = reactive(False, init=False)
    """Whether the message cursor is on it."""

    def __init__(self, entry: Entry | None) -> None:
        super().__init__()
        self.entry = entry
        """What it shows; None while it is being written."""
        self.foot = Foot()
        self._show_foot()

    def render(self) -> Content:
        """Nothing of its own: Textual would draw a blank line for every line of a container, seen or not."""
        return Content()

    def get_selection(self, _selection: Selection) -> tuple[str, str] | None:
        """Its parts are copied, and it adds nothing."""
        return None

    def offers(self) -> Iterable[str]:
        """The actions that make sense for it, as it is."""
        raise NotImplementedError

    def copied(self) -> str:
        """The text that `copy` means."""
        return self.entry.text if self.entry else ""

    def _show_foot(self) -> None:
        """Bring the line below up to date with the entry."""
        offered = set(self.offers())
        self.foot.offers = tuple((word, action) for action, word in self.WORDS.items() if action in offered)
        if self.entry:
            self.foot.version = (self.entry.version, self.entry.versions)

    def watch_chosen(self, chosen: bool) -> None:
        """Show it, and let the focus come or go."""
        self.can_focus = chosen
        self.set_class(chosen, "-chosen")
        self._light()

    def focus_on_click(self) -> bool:
        """A click leaves the focus where it is."""
        return False

    def on_enter(self) -> None:
        """Show what can be done with the message under the mouse."""
        self._light()

    def on_leave(self) -> None:
        """Hide it again once the mouse is really elsewhere."""
        self._light()

    def _light(self) -> None:
        over = self.is_mouse_over
        self.set_class(over, "-hover")
        self.foot.lit = over or self.chosen

    @on(Foot.Pressed)
    async def _pressed(self, event: Foot.Pressed) -> None:
        event.stop()
        await self.run_action(event.action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What makes no sense for this message has no key."""
        if action in self.WORDS:
            return action in self.offers()
        if action == "version":
            return self.entry is not None and self.entry.versions > 1
        return super().check_action(action, parameters)

    def action_edit(self) -> None:
        """Ask for another text of it."""
        self.post_message(self.EditWanted(self))

    def action_again(self) -> None:
        """Ask for another answer."""
        self.post_message(self.AgainWanted(self))

    def action_warmer(self) -> None:
        """Ask for a bolder answer."""
        if self.entry and self.entry.answer:
            self.post_message(self.AgainWanted(self, Options.warmer(self.entry.answer.settings)))

    def action_same_seed(self) -> None:
        """Ask for another answer with the draws of this one."""
        if self.entry and self.entry.answer:
            self.post_message(self.AgainWanted(self, Options.same_seed(self.entry.answer)))

    def action_go_on(self) -> None:
        """Ask for the rest of it."""
        self.post_message(self.ContinueWanted(self))

    def action_branch(self) -> None:
        """Ask for another way from here."""
        self.post_message(self.BranchWanted(self))

    def action_copy(self) -> None:
        """Ask for a copy of its text."""
        self.post_message(self.CopyWanted(self, self.copied()))

    def action_version(self, step: int) -> None:
        """Ask for the version before or after; there is none beyond the first and the last."""
        if self.entry and 1 <= self.entry.version + step <= self.entry.versions:
            self.post_message(self.VersionWanted(self, step))
