"""The conversation as it is seen: the last messages are mounted, earlier ones are data until the reader goes there.

The view follows the end until the reader scrolls up, and then stays where the reader is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.horizon import Horizon
from app.widgets.notice import Notice, Tone
from app.widgets.user_message import UserMessage
from app.widgets.welcome import Welcome

MOUNTED = 20
"""Messages that stay mounted while the view follows the end."""
STEP = 10
"""Messages that one step back mounts."""


def forgotten(entries: Sequence[Entry]) -> int:
    """How many of the first messages were not in the context of the last answer."""
    return next((entry.answer.forgotten for entry in reversed(entries) if entry.answer), 0)


class Earlier(Static):
    """The line above the first mounted message; a click mounts some of those before."""

    @dataclass
    class Wanted(Message):
        """The reader wants to see earlier messages."""

    def show(self, count: int) -> None:
        """Say how many messages are not mounted; vanish where there are none."""
        self.display = count > 0
        self.update(Content(f"▲ {count:,} earlier message{'' if count == 1 else 's'}"))

    def on_click(self) -> None:
        """Ask for them."""
        self.post_message(self.Wanted())


class Conversation(VerticalScroll):
    """All messages; those near the end as widgets."""

    _earlier = getters.query_one(Earlier)
    _page = getters.query_one("#page", Vertical)

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._entries: list[Entry] = []
        self._first = 0
        self._answer: AnswerMessage | None = None
        self._told: set[str] = set()

    def compose(self) -> ComposeResult:
        """A page that is at least as high as the view: the line about earlier messages, then all else."""
        earlier = Earlier(id="earlier", markup=False)
        earlier.display = False
        yield Vertical(earlier, Welcome(), id="page")

    def on_mount(self) -> None:
        """Follow the end from the start."""
        self.anchor()

    def focus_on_click(self) -> bool:
        """A click leaves the focus with the prompt; Tab comes here."""
        return False

    @property
    def following(self) -> bool:
        """Whether the view follows the end."""
        return self.is_anchored and not self._anchor_released

    @property
    def messages(self) -> list[Widget]:
        """The messages that exist as widgets."""
        return [child for child in self._page.children if isinstance(child, UserMessage | AnswerMessage)]

    @staticmethod
    def _widget(entry: Entry) -> Widget:
        return UserMessage(entry.text) if entry.role == "user" else AnswerMessage(entry)

    async def show(self, entries: Iterable[Entry]) -> None:
        """Show these entries in place of all that there is, at their end."""
        self._entries = list(entries)
        self._answer = None
        self._first = max(0, len(self._entries) - MOUNTED)
        shown: Sequence[Widget] = [self._widget(entry) for entry in self._entries[self._first :]]
        with self.app.batch_update():
            await self._page.remove_children([child for child in self._page.children if child is not self._earlier])
            await self._page.mount_all(shown or [Welcome()])
        self._earlier.show(self._first)
        self._told.clear()
        await self._show_horizon()
        self.anchor()

    async def add(self, entry: Entry) -> None:
        """Append a message and go to the end."""
        await self.query(Welcome).remove()
        self._entries.append(entry)
        await self._page.mount(self._widget(entry))
        self.anchor()
        await self._prune()

    async def begin(self) -> None:
        """Open the answer that `write` goes to."""
        self._answer = AnswerMessage()
        await self._page.mount(self._answer)
        self.anchor()

    async def write(self, text: str) -> None:
        """Append text to the open answer."""
        if self._answer is not None:
            await self._answer.write(text)

    async def finish(self, entry: Entry) -> None:
        """Close the open answer with the entry that it became."""
        answer, self._answer = self._answer, None
        self._entries.append(entry)
        if answer is not None:
            await answer.finish(entry)
        await self._show_horizon()

    async def notice(self, text: str, tone: Tone = "note") -> None:
        """Say something of the program's own after the last message."""
        await self.query(Welcome).remove()
        await self._page.mount(Notice(text, tone))

    async def notes(self, notes: Iterable[str]) -> None:
        """Say each of these that this conversation has not been told yet."""
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                await self.notice(note)

    async def _show_horizon(self) -> None:
        """Draw the line before the first message that the model saw at the last answer, where that is mounted."""
        gone = forgotten(self._entries)
        seen = self.messages[gone - self._first :] if gone >= max(1, self._first) else []
        with self.app.batch_update():
            await self.query(Horizon).remove()
            if seen:
                await self._page.mount(Horizon(), before=seen[0])

    async def _prune(self) -> None:
        messages = self.messages
        spare = messages[:-MOUNTED]
        if spare:
            children = self._page.children
            self._first += len(spare)
            await self._page.remove_children(children[1 : children.index(messages[-MOUNTED])])
            self._earlier.show(self._first)

    async def show_earlier(self) -> None:
        """Mount the messages before the first one, and keep what is read where it is."""
        start = max(0, self._first - STEP)
        if start == self._first:
            return
        from_end = self.virtual_size.height - self.scroll_y
        widgets = [self._widget(entry) for entry in self._entries[start : self._first]]
        self._first = start
        await self._page.mount_all(widgets, after=self._earlier)
        self._earlier.show(self._first)
        await self._show_horizon()
        self.call_after_refresh(self._keep, from_end)

    def _keep(self, from_end: float) -> None:
        self.scroll_to(y=self.virtual_size.height - from_end, animate=False, immediate=True)

    async def on_earlier_wanted(self) -> None:
        """Go back a step."""
        await self.show_earlier()

    async def on_mouse_scroll_up(self, _: events.MouseScrollUp) -> None:
        """At the top, go back a step."""
        if self.scroll_y <= 0:
            await self.show_earlier()

    async def page_up(self) -> None:
        """Scroll up a page; at the top, go back a step."""
        if self.scroll_y <= 0:
            await self.show_earlier()
        else:
            self.scroll_page_up(animate=False)
