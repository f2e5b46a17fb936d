"""The sidebar: all conversations by day, a search over them, and what can be done with each.

The store is its one truth: whatever changes is written first, in the order in which it was asked for, and then read
again; all of it in threads.  A search that was overtaken by another never shows.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive

from app.paths import shown
from app.screens import questions
from app.screens.path_dialog import PathDialog
from app.store.records import Hit, Summary
from app.widgets.closing import unless_closing
from app.widgets.field import Field
from app.widgets.key_button import KeyButton
from app.widgets.rename import Rename
from app.widgets.row_list import Row, RowList
from app.widgets.sidebar_rows import ConversationRow, HitRow, day_rows, hit_rows
from app.widgets.task import reason
from app.widgets.undo import Undo

if TYPE_CHECKING:
    from app.store.store import Store

SETTLE_S = 0.12
"""Seconds without another letter after which a search begins."""
MOST = 10_000
"""Conversations that are listed."""
HITS = 100
"""Hits that a search asks for."""


def here_and_now() -> datetime:
    """The time of day where the user is."""
    return datetime.now().astimezone()


class Sidebar(Vertical):
    """Conversations to choose from; what it changes in the store it tells, and what is open it is told."""

    BINDINGS = [
        Binding("slash", "search", "Search", id="sidebar.search", tooltip="Search titles and messages"),
        Binding("n", "new", "New", id="sidebar.new", tooltip="Start an empty conversation"),
        Binding("r", "rename", "Rename", id="sidebar.rename", tooltip="Give this conversation another title"),
        Binding("p", "pin", "Pin", id="sidebar.pin", tooltip="Keep this conversation at the top, or no longer"),
        Binding("d,delete", "delete", "Delete", id="sidebar.delete", tooltip="Delete this conversation"),
        Binding("u", "undo", "Undo", id="sidebar.undo", tooltip="Bring back what was deleted last"),
        Binding("e", "export", "Export", id="sidebar.export", tooltip="Write this conversation to a file"),
        Binding("i", "import", "Import", id="sidebar.import", tooltip="Read a conversation from an exported JSON file"),
        Binding("escape", "leave", "Back", id="sidebar.leave", tooltip="End the search, or go back to the prompt"),
        Binding("down", "into_list", "Hits", id="sidebar.list", tooltip="From the search to what it found", show=False),
    ]

    opened: reactive[int | None] = reactive[int | None](None, init=False)
    """The conversation that is open; None where that is not kept yet."""

    @dataclass
    class NewWanted(Message):
        """The user wants an empty conversation."""

    @dataclass
    class ConversationChosen(Message):
        """The user wants this conversation."""

        conversation: int

    @dataclass
    class HitChosen(Message):
        """The user wants this message of this conversation; None: no certain one."""

        conversation: int
        message: int | None

    @dataclass
    class ConversationRenamed(Message):
        """A conversation has another title."""

        conversation: int
        title: str
        """Empty where it is called after its first message again."""

    @dataclass
    class ConversationDeleted(Message):
        """A conversation is deleted; it can be restored."""

        conversation: int
        title: str

    @dataclass
    class ConversationRestored(Message):
        """What was deleted is there again."""

        conversation: int

    @dataclass
    class ConversationImported(Message):
        """A conversation came out of a file."""

        conversation: int

    @dataclass
    class Left(Message):
        """The user is done here."""

    def __init__(
        self, store: "Store", *, now: Callable[[], datetime] = here_and_now, settle_s: float = SETTLE_S
    ) -> None:
        super().__init__(id="sidebar")
        self.rows = RowList(id="sidebar-rows")
        """What is listed."""
        self._field = Field(placeholder="Search", id="sidebar-search")
        self._undo = Undo(KeyButton(self, "sidebar.undo"))
        self._store, self._now, self._settle_s = store, now, settle_s
        self._summaries: dict[int, Summary] = {}
        self._hits: list[Hit] | None = None
        """What the search found; None while nothing is searched for."""
        self._searched = ""
        """What it was that is found in them."""
        self._writing = asyncio.Lock()
        self._able = (False, False, False)
        """What could be done with the row under the cursor when the keys were last greyed."""

    def compose(self) -> ComposeResult:
        """Search, list, what was deleted, buttons."""
        yield self._field
        yield self.rows
        yield self._undo
        names = ("new", "rename", "pin", "delete", "export", "import")
        buttons = [KeyButton(self, f"sidebar.{name}") for name in names]
        yield Horizontal(*buttons[:4], classes="sidebar-keys")
        yield Horizontal(*buttons[4:], classes="sidebar-keys")

    def on_mount(self) -> None:
        """Read the list once the first frame is out."""
        self.call_after_refresh(self.reload)

    def toggle(self) -> None:
        """Fold it, or open it; this holds until it is called again, but in a narrow window until a choice."""
        shown = bool(self.display)
        self.set_class(shown, "-folded")
        self.set_class(not shown, "-open")
        if shown:
            self.post_message(self.Left())
        else:
            self.rows.focus()

    # What it shows

    def reload(self) -> None:
        """Read all conversations again, and search again where there is a search."""
        self.run_worker(self._read, group="list", exclusive=True)
        if self._field.value.strip():
            self._begin_search(0.0)

    async def _read(self) -> None:
        with self._saying_what_fails():
            summaries = await asyncio.to_thread(self._store.summaries, MOST)
            first = not self._summaries
            self._summaries = {summary.id: summary for summary in summaries}
            self._draw()
            if first:
                self._go_to_opened()

    @on(Field.Changed, "#sidebar-search")
    def _typed(self, event: Field.Changed) -> None:
        event.stop()
        if event.value.strip():
            self._begin_search(self._settle_s)
        else:
            self.workers.cancel_group(self, "search")
            self._hits, self._searched = None, ""
            self._draw()
            self._go_to_opened()

    def _begin_search(self, settle_s: float) -> None:
        self.run_worker(partial(self._find, self._field.value, settle_s), group="search", exclusive=True)

    async def _find(self, text: str, settle_s: float) -> None:
        await asyncio.sleep(settle_s)
        with self._saying_what_fails():
            self._hits = await asyncio.to_thread(self._store.search, text, HITS)
            again, self._searched = text == self._searched, text
            self._draw()
            if not again:
                self.rows.action_edge(-1)

    def _draw(self) -> None:
        if self._hits is None:
            rows = day_rows(self._summaries.values(), self.opened, self._now())
        else:
            rows = hit_rows(self._hits, self.opened)
        self.rows.show(rows)
        self._update_keys()

    def _update_keys(self) -> None:
        """Have keys and buttons greyed anew, which costs too much to be done at each move of the cursor."""
        able = (self.at is not None, self._pinnable, self._undo.waiting)
        if able != self._able:
            self._able = able
            self.refresh_bindings()

    def watch_opened(self) -> None:
        """Mark the open conversation and put the cursor there."""
        if self.is_mounted:
            self._draw()
            self._go_to_opened()

    def _go_to_opened(self) -> None:
        self.rows.go_to(f"conversation {self.opened}")

    @contextmanager
    def _saying_what_fails(self) -> Iterator[None]:
        try:
            with unless_closing:
                yield
        except Exception as error:
            with unless_closing:
                self.notify(reason(error), severity="error", markup=False)

    # What the user does

    @property
    def at(self) -> ConversationRow | HitRow | None:
        """What the cursor is on."""
        row = self.rows.row
        return row if isinstance(row, ConversationRow | HitRow) else None

    @property
    def _pinnable(self) -> bool:
        return self.at is not None and self.at.id in self._summaries

    @on(RowList.Moved)
    def _moved(self, event: RowList.Moved) -> None:
        event.stop()
        self._update_keys()

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._choose(event.row)

    @on(Field.Submitted, "#sidebar-search")
    def _entered(self, event: Field.Submitted) -> None:
        """Choose what is found; where the search is still to come, do that first."""
        event.stop()
        if event.value.strip() and event.value != self._searched:
            self._begin_search(0.0)
        elif self.rows.row is not None:
            self._choose(self.rows.row)

    def _choose(self, row: Row) -> None:
        if isinstance(row, HitRow):
            self.post_message(self.HitChosen(row.id, row.hit.message))
        elif isinstance(row, ConversationRow) and row.found is not None:
            self.post_message(self.HitChosen(row.id, None))
        elif isinstance(row, ConversationRow):
            self.post_message(self.ConversationChosen(row.id))
        self.remove_class("-open")

    def action_search(self) -> None:
        """Go to the search."""
        if not self.display:
            self.toggle()
        self._field.focus()

    def action_into_list(self) -> None:
        """Go to the list."""
        self.rows.focus()

    def action_leave(self) -> None:
        """End the search; where there is none, leave."""
        if self._field.value:
            self._field.value = ""
        else:
            self.remove_class("-open")
            self.post_message(self.Left())

    def action_new(self) -> None:
        """Ask for an empty conversation."""
        self.remove_class("-open")
        self.post_message(self.NewWanted())

    def action_rename(self) -> None:
        """Write another title where the old one stands."""
        if (row := self.at) is not None:
            key = f"conversation {row.id}"
            self.rows.go_to(key)
            self.rows.scroll_to_cursor()
            self.mount(Rename(row.id, row.title, self.rows, key))

    @on(Rename.Done)
    def _renamed(self, event: Rename.Done) -> None:
        event.stop()
        id, title = event.conversation, event.title
        self._write(lambda: self._store.rename(id, title), self.ConversationRenamed(id, title))

    def action_pin(self) -> None:
        """Keep it at the top, or no longer."""
        if (row := self.at) is not None and (summary := self._summaries.get(row.id)) is not None:
            self._write(lambda: self._store.pin(summary.id, not summary.pinned))

    def action_delete(self) -> None:
        """Delete it; it can be brought back."""
        if (row := self.at) is not None:
            self._summaries.pop(row.id, None)
            self._hits = self._hits and [hit for hit in self._hits if hit.conversation != row.id]
            self._draw()
            self._write(lambda: self._store.delete(row.id), self.ConversationDeleted(row.id, row.title))

    def action_undo(self) -> None:
        """Bring back what was deleted last."""
        if (id := self._undo.take()) is not None:
            self._write(lambda: self._store.restore(id), self.ConversationRestored(id))

    def _write(self, work: Callable[[], None], told: Message | None = None) -> None:
        self.run_worker(partial(self._change, work, told))

    async def _change(self, work: Callable[[], None], told: Message | None) -> None:
        """Change the store, one change after another; then tell it, and read the list again."""
        async with self._writing:
            with self._saying_what_fails():
                await asyncio.to_thread(work)
                if isinstance(told, self.ConversationDeleted):
                    self._undo.add(told.conversation, told.title)
                if told is not None:
                    self.post_message(told)
        with unless_closing:
            self.reload()

    def action_export(self) -> None:
        """Ask for a file and write the conversation to it."""
        if (row := self.at) is not None:
            self.app.push_screen(PathDialog(questions.export(self._store, row.id, row.title)), self._exported)

    def _exported(self, file: Path | None) -> None:
        if file is not None:
            self.notify(f"Exported to {shown(file)}", markup=False)

    def action_import(self) -> None:
        """Ask for a file and read a conversation from it."""
        self.app.push_screen(PathDialog(questions.take_in(self._store)), self._imported)

    def _imported(self, id: int | None) -> None:
        if id is not None:
            self.reload()
            self.post_message(self.ConversationImported(id))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed."""
        if action in {"rename", "delete", "export"}:
            return True if self.at is not None else None
        if action == "pin":
            return True if self._pinnable else None
        if action == "undo":
            return True if self._undo.waiting else None
        return super().check_action(action, parameters)
