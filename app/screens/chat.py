"""The chat's screen: what is said, what is done with messages and conversations, and the ways to other screens.

The store is the truth and the widgets show it.
"""

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace as altered
from textual import on
from textual.binding import Binding
from textual.message import Message

from app import attachments
from app.attachments import Draft
from app.options import Options
from app.screens.answering import AnsweringScreen, Asked
from app.screens.settings import Outcome, SettingsScreen, Subject
from app.setup import Setup
from app.store.store import Store
from app.widgets.answer import AnswerMessage
from app.widgets.chat_message import ChatMessage
from app.widgets.composer import Composer
from app.widgets.prompt import is_blank
from app.widgets.prose import Prose
from app.widgets.sidebar import Sidebar
from engine.config import EngineConfig
from engine.stats import Answer


class ChatScreen(AnsweringScreen):
    """Conversations with one pair."""

    BINDINGS = [
        Binding("ctrl+n", "new", "New chat", id="chat.new", tooltip="Start an empty conversation", priority=True),
        Binding("ctrl+r", "again", "Again", id="chat.again", tooltip="Answer the last question anew"),
        Binding("f6", "models", "Models", id="chat.models", tooltip="Choose, fetch and load models", priority=True),
        Binding(
            "f7", "settings", "Settings", id="chat.settings", priority=True,
            tooltip="System prompt, sampling and the program",
        ),
        Binding("f8", "warmer", "Again, warmer", id="chat.warmer", show=False, tooltip="Answer anew, more boldly"),
        Binding(
            "f9", "same_seed", "Same seed", id="chat.same_seed", show=False,
            tooltip="Answer anew with the same draws",
        ),
        Binding("ctrl+l", "go_on", "Continue", id="chat.continue", show=False, tooltip="Go on with a half answer"),
        Binding(
            "ctrl+c,super+c", "copy_or_stop", "Copy or stop", id="chat.copy", show=False,
            tooltip="Copy the selection; without one, end the answer",
        ),
    ]  # fmt: skip

    @dataclass
    class ModelsWanted(Message):
        """The user wants to see the models."""

    def __init__(self, setup: Setup, config: EngineConfig | None, store: Store) -> None:
        super().__init__(setup, config, store)
        self._editing: int | None = None
        """The message that the prompt writes anew."""

    async def on_mount(self) -> None:
        """Bring back what was being written."""
        self.conversation.coloured = self.chat.settings.window.colour_tokens
        with self.telling():
            self.composer.remember(self.chat.store.inputs())
            await self.composer.put(Draft(self.chat.store.unsent()))
        self.run_worker(self._clean_up(), group="cleaning")

    async def _clean_up(self) -> None:
        with self.telling():
            await asyncio.to_thread(self.chat.clean_up)

    # What is said

    @on(Composer.Submitted)
    async def send(self, event: Composer.Submitted) -> None:
        """Ask, now or as soon as the engine is ready."""
        if self.state == "dead":
            self.notify("The engine is not running: F5 starts it again.", severity="warning", markup=False)
            return
        with self.telling():
            if self._editing is not None:
                self.chat.branch.cut(self.chat.branch.index(self._editing))
                await self.conversation.show(self.chat.branch.entries)
                self._edit(None)
            entry = self.chat.branch.say(event.draft)
            self.chat.store.set_unsent(None, "")
            await self.composer.accept(event.draft)
            await self.conversation.add(entry)
            self.sidebar.opened = self.chat.branch.id
            self.sidebar.reload()
            await self.ask(Asked())

    @on(Composer.Paused)
    async def _paused(self, event: Composer.Paused) -> None:
        """Keep what is typed, and have what is sure of it read."""
        self.seen()
        with self.telling():
            self.chat.store.set_unsent(self.chat.branch.id, event.draft.text)
        if self.state == "ready" and self._editing is None and not is_blank(event.draft.text):
            await self.chat.prepare(event.draft.message)
        elif self.state == "asleep" and not is_blank(event.draft.text):
            self.wake()

    def _again(self, entry: int, once: Options | None = None) -> Asked | None:
        """Cut the branch behind the question that this message is or answers; None where it cannot be answered now."""
        if self.answering or self.state == "dead":
            self.notify("One answer at a time: Esc stops this one.", markup=False)
            return None
        at = self.chat.branch.index(entry)
        entries = self.chat.branch.entries
        self.chat.branch.cut(at + 1 if entries[at].role == "user" else at)
        return Asked(once=once)

    async def _answer_again(self, entry: int | None, once: Options | None = None) -> None:
        if entry is not None and (asked := self._again(entry, once)):
            await self.conversation.show(self.chat.branch.entries)
            self.prompt.focus()
            with self.telling():
                await self.ask(asked)

    @on(ChatMessage.AgainWanted)
    async def _again_wanted(self, event: ChatMessage.AgainWanted) -> None:
        await self._answer_again(event.entry_id)

    @on(ChatMessage.ContinueWanted)
    async def action_go_on(self) -> None:
        """Go on with the last answer, where it is not whole."""
        leaf = self.chat.branch.leaf
        if self.state in ("ready", "asleep") and leaf is not None and leaf.role == "assistant" and leaf.ending:
            with self.telling():
                await self.ask(Asked(go_on=True))

    @on(ChatMessage.EditWanted)
    async def _edit_wanted(self, event: ChatMessage.EditWanted) -> None:
        if event.entry_id is not None:
            await self._write_anew(event.entry_id)

    async def _write_anew(self, id: int) -> None:
        """Bring a message into the prompt; what is sent then is another version of it."""
        entry = self.chat.branch.entries[self.chat.branch.index(id)]
        if entry.role != "user":
            return
        text, files = attachments.split(entry.text, entry.attachments)
        await self.composer.clear()
        await self.composer.put(Draft(text, files))
        self._edit(id)

    def _edit(self, entry: int | None) -> None:
        self._editing = entry
        self.composer.set_class(entry is not None, "-editing")
        self.composer.border_title = "another version of a message: Esc leaves it" if entry is not None else None
        self.refresh_bindings()

    async def take_back(self) -> None:
        """What had no answer is written anew, unless something else is being written."""
        self.chat.branch.read()
        await self.conversation.show(self.chat.branch.entries)
        leaf = self.chat.branch.leaf
        if leaf is not None and leaf.id is not None and is_blank(self.prompt.text):
            await self._write_anew(leaf.id)

    @on(ChatMessage.BranchWanted)
    async def _branch_wanted(self, event: ChatMessage.BranchWanted) -> None:
        """Go on behind this message in another way; what followed stays as a version."""
        if event.entry_id is not None and self.chat.writing is None:
            self.chat.branch.cut(self.chat.branch.index(event.entry_id) + 1)
            await self.conversation.show(self.chat.branch.entries)
            self.prompt.focus()

    @on(ChatMessage.VersionWanted)
    async def _version_wanted(self, event: ChatMessage.VersionWanted) -> None:
        if event.entry_id is None or self.chat.shows_writing:
            return
        with self.telling():
            at = self.chat.branch.index(event.entry_id)
            if self.chat.branch.take(event.entry_id, event.step):
                await self.conversation.show(self.chat.branch.entries, follow=False)
                self.conversation.reveal(at)
                self._show_last()

    @on(ChatMessage.CopyWanted)
    def _copy_wanted(self, event: ChatMessage.CopyWanted) -> None:
        self.copy(event.text, f"Copied {len(event.text):,} characters.")

    @on(Prose.LinkChosen)
    def _link(self, event: Prose.LinkChosen) -> None:
        self.copy(event.address, f"Copied the address {event.address}")

    @on(AnswerMessage.TraceWanted)
    async def _trace_wanted(self, event: AnswerMessage.TraceWanted) -> None:
        if event.entry_id is not None and isinstance(event.message, AnswerMessage):
            with self.telling():
                await event.message.show_trace(self.chat.store.trace(event.entry_id))

    # Conversations

    async def open(self, conversation: int | None, message: int | None = None) -> None:
        """Look at another conversation, None: at a new one; an answer that is being written goes on."""
        with self.telling():
            left = await self.composer.clear()
            self.chat.store.set_unsent(self.chat.branch.id, left.text if self._editing is None else "")
            self._edit(None)
            typed = self._unsent(conversation)
            self.chat.open(conversation)
            await self.conversation.show(self.chat.branch.entries)
            await self.show_writing()
            await self.composer.put(Draft(typed))
            self.line_up()
            if message is not None:
                self.conversation.reveal(self.chat.branch.index(message))
        self.sidebar.opened = self.chat.branch.id
        self._show_last(new=True)
        self.prompt.focus()

    def _unsent(self, conversation: int | None) -> str:
        store = self.chat.store
        return store.unsent() if conversation is None else store.get(conversation).unsent

    def _show_last(self, *, new: bool = False) -> None:
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
        if event.message is not None:
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
        if self.chat.writing is not None and self.chat.writing.conversation == event.conversation:
            await self.give_up()
        self.chat.forget(event.conversation)
        if self.chat.branch.id == event.conversation:
            await self.open(None)

    @on(Sidebar.ConversationRestored)
    async def _restored(self, event: Sidebar.ConversationRestored) -> None:
        if self.chat.branch.id is None and not self.conversation.messages:
            await self.open(event.conversation)

    @on(Sidebar.ConversationImported)
    async def _imported(self, event: Sidebar.ConversationImported) -> None:
        await self.open(event.conversation)

    @on(Sidebar.Left)
    def _back_to_prompt(self) -> None:
        self.prompt.focus()

    # Keys

    async def action_stop(self) -> None:
        """End the answer, and what there is of it stays; else leave the message that is written anew."""
        if self.state == "writing" or self._editing is None:
            await super().action_stop()
        else:
            self._edit(None)
            await self.composer.clear()

    async def action_copy_or_stop(self) -> None:
        """Copy what is selected; else end the answer; else say how to quit."""
        if selected := self.get_selected_text():
            self.copy(selected, f"Copied {len(selected):,} characters.")
        elif self.state == "writing":
            await self.action_stop()
        else:
            self.notify("Nothing is selected. Ctrl+Q quits.", markup=False)

    async def action_again(self) -> None:
        """Answer the last question anew."""
        await self._answer_again(self._last)

    async def action_warmer(self) -> None:
        """Answer it anew, more boldly."""
        if (answer := self._last_answer) is not None:
            await self._answer_again(self._last, Options.warmer(answer.settings))

    async def action_same_seed(self) -> None:
        """Answer it anew with the draws of the last answer."""
        if (answer := self._last_answer) is not None:
            await self._answer_again(self._last, Options.same_seed(answer))

    @property
    def _last(self) -> int | None:
        leaf = self.chat.branch.leaf
        return leaf.id if leaf else None

    @property
    def _last_answer(self) -> Answer | None:
        leaf = self.chat.branch.leaf
        return leaf.answer if leaf else None

    def action_models(self) -> None:
        """Go to the models."""
        self.post_message(self.ModelsWanted())

    def action_settings(self) -> None:
        """Show the settings of this conversation and of the program."""
        chat, thinks = self.chat, self.loaded is None or self.loaded.thinks
        themes = tuple(sorted(self.app.available_themes))
        subject = Subject(
            chat.settings, chat.branch.options, chat.branch.system, chat.store, self.setup.save, themes, thinks
        )
        self.app.push_screen(SettingsScreen(subject), self._apply)

    async def _apply(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        with self.telling():
            self.chat.branch.set_options(outcome.system, outcome.options)
        self.chat.set_settings(outcome.settings)
        self.conversation.coloured = outcome.settings.window.colour_tokens
        if outcome.reload and self.config is not None:
            exact = outcome.settings.exact or "normal"
            await self.load(altered(self.config, exact=exact))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed, False hides them."""
        if action == "stop":
            return True if self.state == "writing" or self._editing is not None else None
        if action in ("again", "warmer", "same_seed"):
            return True if self.state in ("ready", "asleep") and self.chat.branch.leaf else None
        if action == "restart":
            return self.state == "dead"
        return super().check_action(action, parameters)
