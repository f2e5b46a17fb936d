"""The chat and its conversations: which one is looked at, what is typed in each, which message is written anew.

What is typed stays with its conversation, and so does what waits; an answer goes on in its own whichever is looked at.
"""

import asyncio
from contextlib import suppress

from textual import on
from textual.binding import Binding

from app import attachments
from app.attachments import Draft, Unsent, as_kept, of_kept
from app.errors import NotStored
from app.screens.answering import AnsweringScreen
from app.settings import Window
from app.setup import Setup
from app.store.store import Store
from app.transcript import Entry
from app.widgets.composer import joined
from app.widgets.conversation import Conversation
from app.widgets.prompt import is_blank
from app.widgets.sidebar import Sidebar
from engine.config import EngineConfig


class ConversingScreen(AnsweringScreen):
    """A page with an engine, over all conversations."""

    BINDINGS = [
        Binding("ctrl+n", "new", "New chat", id="chat.new", tooltip="Start an empty conversation", priority=True),
    ]

    def __init__(self, setup: Setup, config: EngineConfig | None, store: Store) -> None:
        super().__init__(setup, config, store)
        self.editing: int | None = None
        """The message that the prompt writes anew."""
        self._set_aside = Draft("")
        """What stood in the prompt before that."""

    async def on_mount(self) -> None:
        """Bring back what was being written."""
        self.show_window(self.chat.settings.window)
        with self.telling():
            self.composer.remember(self.chat.store.inputs())
            await self._go_on_typing(of_kept(self.chat.store.unsent()))
        self.run_worker(self._clean_up, group="cleaning")

    def show_window(self, window: Window) -> None:
        """Show answers as the settings of the window have it."""
        self.conversation.coloured, self.conversation.thoughts = window.colour_tokens, window.thoughts

    async def _clean_up(self) -> None:
        with self.telling():
            await asyncio.to_thread(self.chat.clean_up)

    # Which one

    async def open(self, conversation: int | None, message: int | None = None) -> None:
        """Look at another conversation, None: at a new one; an answer that is being written goes on."""
        with self.telling():
            typed = self._unsent(conversation)
            await self._leave()
            self.chat.open(conversation)
            await self.conversation.show(self._settled())
            await self.show_writing()
            await self._go_on_typing(of_kept(typed))
            self.line_up()
            at = self.chat.branch.index(message)
            if at is not None and at < len(self._settled()):
                self.conversation.reveal(at)
        self.sidebar.opened = self.chat.branch.id
        self.show_speculation()
        self.show_last(new=True)
        self.prompt.focus()

    async def _leave(self) -> None:
        """Keep what is typed here, and what waits, with the conversation that is left."""
        with suppress(NotStored):  # it has been deleted
            self.chat.store.set_unsent(self.chat.branch.id, as_kept(self.unsent))
        self.edit(None)
        await self.composer.clear()

    @property
    def unsent(self) -> Unsent:
        """What is typed here, be it a message that is written anew."""
        if self.editing is None:
            return Unsent(self.composer.held)
        return Unsent(self.composer.held, self.editing, self._set_aside)

    async def _go_on_typing(self, typed: Unsent) -> None:
        """Bring back what was typed in this conversation; beside what it was to replace, where that is not here."""
        if self.chat.branch.index(typed.anew) is None:
            await self.composer.put(joined((typed.aside, typed.draft)))
            return
        self._set_aside = typed.aside
        await self.composer.put(typed.draft)
        self.edit(typed.anew)

    def _settled(self) -> tuple[Entry, ...]:
        """The messages that are whole: not the one that is being gone on with."""
        entries = self.chat.branch.entries
        writing = self.chat.writing
        goes_on = self.chat.shows_writing and writing is not None and writing.goes_on
        return entries[:-1] if goes_on else entries

    def _unsent(self, conversation: int | None) -> str:
        if conversation == self.chat.branch.id:
            return as_kept(self.unsent)
        store = self.chat.store
        return store.unsent() if conversation is None else store.get(conversation).unsent

    def show_last(self, *, new: bool = False) -> None:
        """The figures of the last answer of the conversation that is looked at, a new one perhaps.

        While an answer is being written its own figures are shown, whichever conversation it belongs to.
        """
        if self.chat.writing is not None:
            return
        if new:
            self.panel.live = self.bridge.meter.new_chat()
        answers = [entry.answer for entry in self.chat.branch.entries if entry.answer]
        if answers:
            self.panel.live = self.bridge.meter.show(answers[-1])
        self.status.clear()
        if answers:
            self.status.show_writing(self.panel.live)
            self.status.show_finished(answers[-1])

    @on(Sidebar.ConversationChosen)
    async def _chosen(self, event: Sidebar.ConversationChosen) -> None:
        await self.open(event.conversation)

    @on(Sidebar.HitChosen)
    async def _hit(self, event: Sidebar.HitChosen) -> None:
        written = self.chat.writing is not None and self.chat.writing.branch.id == event.conversation
        if event.message is not None and not written:
            with self.telling():
                self.chat.store.choose(event.conversation, event.message)
        await self.open(event.conversation, event.message)

    @on(Sidebar.NewWanted)
    async def action_new(self) -> None:
        """Start an empty conversation; an answer that is being written goes on in its own."""
        await self.open(None)

    @on(Sidebar.ConversationDeleted)
    async def _deleted(self, event: Sidebar.ConversationDeleted) -> None:
        """An answer of a conversation that is deleted is given up with it."""
        if self.concerns(event.conversation):
            await self.give_up()
        self.chat.forget(event.conversation)
        if self.chat.branch.id == event.conversation:
            within = self.sidebar.has_focus_within
            await self.open(None)
            if within:
                self.sidebar.rows.focus()  # the next key may bring it back

    @on(Sidebar.ConversationRestored)
    async def _restored(self, event: Sidebar.ConversationRestored) -> None:
        if self.chat.branch.id is None and not self.conversation.messages:
            await self.open(event.conversation)

    @on(Sidebar.ConversationImported)
    async def _imported(self, event: Sidebar.ConversationImported) -> None:
        await self.open(event.conversation)

    @on(Conversation.Left)
    @on(Sidebar.Left)
    def _back_to_prompt(self) -> None:
        self.prompt.focus()

    # A message that is written anew

    async def write_anew(self, id: int | None) -> None:
        """Bring a message into the prompt; what is sent then is another version of it."""
        at = self.chat.branch.index(id)
        entry = self.chat.branch.entries[at] if at is not None else None
        if entry is None:
            return
        text, files = attachments.split(entry.text, entry.attachments)
        if self.editing is None:
            self._set_aside = self.composer.held
        await self.composer.clear()
        await self.composer.put(Draft(text, files))
        self.edit(id)

    def edit(self, entry: int | None) -> None:
        """Write this message anew from now on; None: a new one."""
        self.editing = entry
        self.composer.set_class(entry is not None, "-editing")
        self.composer.border_title = "another version of a message: Esc leaves it" if entry is not None else None
        self.refresh_bindings()

    async def leave_edit(self) -> None:
        """Bring back what stood in the prompt before."""
        self.edit(None)
        await self.composer.clear()
        await self.composer.put(self._set_aside)

    async def take_back(self) -> None:
        """What had no answer is written anew, unless something else is being written."""
        with self.telling():
            self.chat.branch.read()
        await self.conversation.show(self.chat.branch.entries)
        leaf, idle = self.chat.branch.leaf, is_blank(self.composer.held.text) and self.editing is None
        if idle and leaf is not None and leaf.role == "user":
            await self.write_anew(leaf.id)

    @property
    def last(self) -> int | None:
        """The number of the last message of the branch that is looked at."""
        leaf = self.chat.branch.leaf
        return leaf.id if leaf else None
