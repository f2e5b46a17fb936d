"""The conversation as it is seen: a window onto its messages, of which only those near the view are widgets.

The view follows the end until the reader leaves it, and else stays on the line that the reader has at its top, whatever
changes above or below.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.layout import DockArrangeResult
from textual.message import Message
from textual.reactive import reactive
from textual.scrollbar import ScrollBar
from textual.widget import Widget

from app.settings import Thoughts
from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.column import Column
from app.widgets.message_row import HorizonRow, Look, MessageRow, NoticeRow
from app.widgets.notice import Tone
from app.widgets.row import Row, Spot
from app.widgets.welcome import Welcome
from engine.events import TokenTrace


def forgotten(entries: Sequence[Entry]) -> int:
    """How many of the first messages were not in the context of the last answer."""
    return next((entry.answer.forgotten for entry in reversed(entries) if entry.answer), 0)


class Conversation(VerticalScroll):
    """All messages; those near the view as widgets."""

    BLANK = True
    BINDINGS = [
        Binding("up", "choose(-1)", "Message before", id="conversation.before", tooltip="Go to the message before"),
        Binding("down", "choose(1)", "Message after", id="conversation.after", tooltip="Go to the message after"),
        Binding(
            "home", "choose_first", "First message", id="conversation.first", show=False,
            tooltip="Go to the first message",
        ),
        Binding(
            "end", "choose_last", "Last message", id="conversation.last", show=False,
            tooltip="Go to the last message",
        ),
        Binding("escape", "leave", "Back", id="conversation.leave", tooltip="Go back to the prompt"),
    ]  # fmt: skip

    @dataclass
    class MessageChosen(Message):
        """The message cursor is on another message, or on none."""

        index: int | None

    @dataclass
    class Left(Message):
        """The user is done here."""

    chosen: reactive[int | None] = reactive[int | None](None, init=False)
    """The number of the message that the cursor is on."""
    coloured: reactive[bool] = reactive(False, init=False)
    """Whether answers show the tokens that they were made of."""
    thoughts: reactive[Thoughts] = reactive[Thoughts]("folded", init=False)
    """Whether think blocks are open: never, while they stream, or always."""
    busy: reactive[bool] = reactive(False, init=False)
    """Whether an answer is on its way: Esc ends it, and does not lead to the prompt."""

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self._page = Column(id="page")
        self._open: MessageRow | None = None
        self._gone = 0
        self._shape = Look()
        self._told: set[str] = set()
        self._following = True
        self._hold: Spot | None = None

    def compose(self) -> ComposeResult:
        """The welcome, and the page of messages that takes its place."""
        self._page.display = False
        yield Welcome()
        yield self._page

    def focus_on_click(self) -> bool:
        """A click leaves the focus with the prompt; Tab comes here."""
        return False

    # What there is

    @property
    def _messages(self) -> list[MessageRow]:
        return [row for row in self._page.rows if isinstance(row, MessageRow)]

    @property
    def messages(self) -> list[Widget]:
        """The messages that exist as widgets."""
        return [row.widget for row in self._messages if row.widget is not None and row.ready]

    @property
    def answer(self) -> AnswerMessage | None:
        """The answer that is being written."""
        widget = self._open.widget if self._open is not None else None
        return widget if isinstance(widget, AnswerMessage) else None

    def index_of(self, widget: Widget) -> int | None:
        """The number of the message that a widget is, or is a part of."""
        row = self._page.row_of(widget)
        return self._messages.index(row) if isinstance(row, MessageRow) else None

    async def show(self, entries: Iterable[Entry], *, follow: bool = True) -> None:
        """Show these entries in place of all that there is, at their end or where the reader is.

        Messages at the beginning that were shown already stay as they are.
        """
        wanted, known = list(entries), [row for row in self._messages if row is not self._open]
        same = 0
        while same < min(len(wanted), len(known)) and known[same].entry == wanted[same]:
            same += 1
        rows: list[Row] = [*known[:same], *(MessageRow(entry, self._shape) for entry in wanted[same:])]
        self.chosen, self._open, self._gone = None, None, 0
        self._told.clear()
        if follow:
            self.anchor()
        with self.app.batch_update():
            await self._page.exchange(rows)
            await self._welcome(not rows)
            await self._show_horizon()
            await self._look()

    async def add(self, entry: Entry, *, follow: bool = True) -> None:
        """Append a message, and go to the end or stay where the reader is."""
        await self._append(MessageRow(entry, self._shape), follow=follow)

    async def begin(self, *, follow: bool = True) -> None:
        """Open the answer that `write` goes to, and go to the end or stay where the reader is."""
        self._open = MessageRow(None, self._shape)
        await self._append(self._open, follow=follow)

    async def write(self, text: str, trace: Sequence[TokenTrace] = (), opening: str = "") -> None:
        """Append text to the open answer, and where each token of it came from; `opening` as in Entry."""
        if self.answer is not None:
            await self.answer.write(text, trace, opening)

    async def finish(self, entry: Entry) -> None:
        """Close the open answer with the entry that it became."""
        row, answer, self._open = self._open, self.answer, None
        if row is None:
            await self._append(MessageRow(entry, self._shape), follow=False)
        else:
            row.entry = entry
            row.kept = self.chosen is not None and self._messages[self.chosen] is row
            if answer is not None:
                await answer.finish(entry)
        await self._show_horizon()

    async def notice(self, text: str, tone: Tone = "note") -> None:
        """Say something of the program's own after the last message."""
        await self._append(NoticeRow(text, tone), follow=False)

    async def notes(self, notes: Iterable[str]) -> None:
        """Say each of these that this conversation has not been told yet."""
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                await self.notice(note)

    async def _append(self, row: Row, *, follow: bool) -> None:
        if follow:
            self.anchor()
        await self._welcome(False)
        await self._page.put(row)
        await self._look()

    async def _welcome(self, shown: bool) -> None:
        there = self.query(Welcome)
        self._page.display = not shown
        if shown and not there:
            await self.mount(Welcome(), before=self._page)
        elif not shown and there:
            await there.remove()

    async def _show_horizon(self) -> None:
        """Put the line before the first message that the model saw at the last answer."""
        gone = forgotten([row.entry for row in self._messages if row.entry is not None])
        if gone == self._gone:
            return
        self._gone = gone
        rows = [row for row in self._page.rows if not isinstance(row, HorizonRow)]
        if 0 < gone < len(self._messages):
            rows.insert(rows.index(self._messages[gone]), HorizonRow())
        await self._page.exchange(rows)
        await self._look()

    # Where the view is

    @property
    def following(self) -> bool:
        """Whether the view follows the end."""
        return self._following

    def anchor(self, anchor: bool = True) -> None:
        """Follow the end, or stay here."""
        self._following = anchor
        self.refresh(layout=True)

    async def page_up(self) -> None:
        """Scroll up a page."""
        self.scroll_page_up(animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The reader, or what acts for them, has moved the view: it follows if that was to the end."""
        super().watch_scroll_y(old_value, new_value)
        self._following = round(new_value) >= self.max_scroll_y
        self._hold = self._page.spot(round(new_value))

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Lay out the page; then put the view where it belongs, in the same frame."""
        result = super().arrange(size, optimal)
        if not optimal and self._page.display:
            self._place(result.total_region.bottom, size.height)
        return result

    def _place(self, total: int, height: int) -> None:
        line = self._line(max(0, total - height))
        if line != round(self.scroll_y):
            # without watchers: the reader has not moved
            self.set_reactive(Widget.scroll_y, line)
            self.set_reactive(Widget.scroll_target_y, line)
            self.vertical_scrollbar.set_reactive(ScrollBar.position, line)
        if self._hold is None or self._hold.width != self._page.laid_width:
            self._hold = self._page.spot(line)
        self._page.see(line, line + height)

    def _line(self, end: int) -> int:
        """The line at the top of the view, of those up to the last that can be there."""
        if self._following:
            return end
        held = self._page.line(self._hold) if self._hold is not None else None
        return max(0, min(end, round(self.scroll_y) if held is None else held))

    @property
    def _height(self) -> int:
        return self.content_size.height or self.app.size.height

    async def _look(self) -> None:
        """Mount what is in view, before it is laid out."""
        line = self._line(max(0, self._page.height() - self._height))
        self._page.see(line, line + self._height)
        await self._page.fill()

    # The message cursor

    def browse(self) -> None:
        """Bring the focus to the message under the cursor, or to the last one in view."""
        messages, tops, bottom = self._messages, self._page.tops(), round(self.scroll_y) + self._height
        if self.chosen is None and messages:
            self.chosen = max((at for at, row in enumerate(messages) if tops[row] < bottom), default=0)
        if self.chosen is None:
            self.focus(scroll_visible=False)
        else:
            self._point(focus=True)

    def reveal(self, index: int) -> None:
        """Bring a message to the top of the view, and the cursor to it; the focus stays where it is."""
        row = self._messages[index]
        self.chosen = index
        self._go(self._page.tops()[row])

    def on_focus(self) -> None:
        """Go on to a message."""
        if self._messages:
            self.browse()

    def on_descendant_blur(self) -> None:
        """Without the focus there is no cursor; a terminal that is left for a while keeps it."""
        if not self.has_focus_within and self.app.app_focus:
            self.chosen = None

    def action_choose(self, step: int) -> None:
        """Go to a message so many further on."""
        if messages := self._messages:
            at = len(messages) if self.chosen is None else self.chosen
            self._choose(max(0, min(len(messages) - 1, at + step)))

    def action_choose_first(self) -> None:
        """Go to the first message."""
        if self._messages:
            self._choose(0)

    def action_choose_last(self) -> None:
        """Go to the last message."""
        if messages := self._messages:
            self._choose(len(messages) - 1)

    def action_leave(self) -> None:
        """Go back to the prompt."""
        self.post_message(self.Left())

    def watch_busy(self) -> None:
        """Another key is to be had."""
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Esc is left to what is being written."""
        if action == "leave":
            return not self.busy
        return super().check_action(action, parameters)

    def _choose(self, index: int) -> None:
        self.chosen = index
        row = self._messages[index]
        top, room = self._page.tops()[row], row.room(self._page.laid_width)
        line = round(self.scroll_y)
        if top < line or room >= self._height:
            self._go(top)
        elif top + room > line + self._height:
            self._go(top + room - self._height)

    def _go(self, line: int) -> None:
        """Bring a line to the top of the view."""
        end = max(0, self._page.height() - self._height)
        self._following = line >= end
        self._hold = self._page.spot(min(line, end))
        self.refresh(layout=True)

    def watch_chosen(self, before: int | None, now: int | None) -> None:
        """Mark the message, which stays mounted meanwhile."""
        messages = self._messages
        if before is not None and before < len(messages):
            self._mark(messages[before], chosen=False)
        if now is not None:
            self._mark(messages[now], chosen=True)
            self._point(focus=self.has_focus_within)
        # once the cursor is there, one Tab leaves and does not come back here first
        self.can_focus = now is None
        self.post_message(self.MessageChosen(now))

    def _mark(self, row: MessageRow, *, chosen: bool) -> None:
        row.kept = chosen or row is self._open
        if row.message is not None:
            row.message.chosen = chosen

    def _point(self, *, focus: bool) -> None:
        self.run_worker(partial(self._pointed, focus), group="cursor", exclusive=True)

    async def _pointed(self, focus: bool) -> None:
        """Mount the message under the cursor, mark it, and give it the focus."""
        await self._page.fill()
        if self.chosen is None:
            return
        row = self._messages[self.chosen]
        self._mark(row, chosen=True)
        if row.message is not None and focus:
            self.screen.set_focus(row.message, scroll_visible=False)

    # How answers are shown

    def watch_coloured(self, coloured: bool) -> None:
        """Show all answers by their tokens, or by their text."""
        self._shape.coloured = coloured
        for message in self.messages:
            if isinstance(message, AnswerMessage):
                message.coloured = coloured

    def watch_thoughts(self, thoughts: Thoughts) -> None:
        """Open think blocks, or fold them."""
        self._shape.thoughts = thoughts
        for message in self.messages:
            if isinstance(message, AnswerMessage):
                message.show_thoughts(thoughts)
