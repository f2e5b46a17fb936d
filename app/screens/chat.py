"""The chat's screen: what is said, what is done with messages and conversations, and the ways to other screens.

The store is the truth and the widgets show it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace as altered
from textual import on
from textual.binding import Binding
from textual.message import Message

from app import attachments
from app.attachments import Draft, as_kept, of_kept
from app.chat import Asked
from app.errors import AppError, NotStored
from app.options import Options
from app.screens.answering import AnsweringScreen
from app.screens.settings import Outcome, SettingsScreen, Subject
from app.setup import Setup
from app.store.store import Store
from app.transcript import Entry
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
        Binding(
            "f6", "models", "Models", id="chat.models", show=False, priority=True,
            tooltip="Choose, fetch and load models",
        ),
        Binding(
            "f7", "settings", "Settings", id="chat.settings", show=False, priority=True,
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
        self._set_aside = Draft("")
        """What stood in the prompt before that."""

    async def on_mount(self) -> None:
        """Bring back what was being written."""
        self.conversation.coloured = self.chat.settings.window.colour_tokens
        with self.telling():
            self.composer.remember(self.chat.store.inputs())
            await self.composer.put(of_kept(self.chat.store.unsent()))
        self.run_worker(self._clean_up(), group="cleaning")

    async def _clean_up(self) -> None:
        with self.telling():
            await asyncio.to_thread(self.chat.clean_up)

    # What is said

    @on(Composer.Submitted)
    async def send(self, event: Composer.Submitted) -> None:
        """Ask, now or as soon as the engine is ready."""
        if self.state == "dead":
            self.composer.refuse()
            self.notify("The engine is not running: F5 starts it again.", severity="warning", markup=False)
            return
        if self.answering:
            self.composer.refuse()
            return
        try:
            entry = await self._say(event.draft)
        except AppError as error:
            self.composer.refuse()
            self.notify(str(error), severity="error", markup=False)
            return
        self.composer.busy = True
        await self.composer.accept(event.draft)
        await self.conversation.add(entry)
        self.sidebar.opened = self.chat.branch.id
        self.sidebar.reload()
        await self._ask(Asked(self.chat.branch))

    async def _say(self, draft: Draft) -> Entry:
        self.chat.keep_answer()
        if (at := self.chat.branch.index(self._editing)) is not None:
            self.chat.branch.cut(at)
            await self.conversation.show(self.chat.branch.entries)
        self._edit(None)
        return self.chat.branch.say(draft)

    async def _ask(self, asked: Asked) -> None:
        try:
            await self.ask(asked)
        except AppError as error:
            self.notify(str(error), severity="error", markup=False)
        finally:
            self.line_up()

    @on(Composer.Paused)
    def _paused(self, event: Composer.Paused) -> None:
        """Keep what is typed, and have what is sure of it read."""
        self.seen()
        if self._editing is not None:
            return
        with self.telling():
            self.chat.store.set_unsent(self.chat.branch.id, as_kept(self.composer.held))
        if self.state == "ready" and not is_blank(event.draft.text):
            self.run_worker(partial(self.chat.prepare, event.draft.message), group="prepare", exclusive=True)
        elif self.state == "asleep" and not is_blank(event.draft.text):
            self.wake()

    # What is done with messages

    def _is_busy(self) -> bool:
        """Whether the branch that is looked at has to stay as it is; says why."""
        if self.answering and (self.chat.shows_writing or self.chat.writing is None):
            self.notify("One answer at a time: Esc stops this one.", markup=False)
        elif self.composer.waiting.drafts:
            self.notify("A message waits its turn: Esc takes it back.", markup=False)
        else:
            return False
        return True

    async def _answer_again(self, entry: int | None, once: Options | None = None) -> None:
        """Answer the question anew that this message is, or answers."""
        at = self.chat.branch.index(entry)
        if at is None or self._is_busy():
            return
        if self.answering or self.state == "dead":
            why = "the engine is not running: F5 starts it again" if self.state == "dead" else "one answer at a time"
            self.notify(f"Not now: {why}.", markup=False)
            return
        self._edit(None)
        question = self.chat.branch.entries[at].role == "user"
        self.chat.branch.cut(at + 1 if question else at)
        await self.conversation.show(self.chat.branch.entries)
        self.prompt.focus()
        await self._ask(Asked(self.chat.branch, once=once))

    @on(ChatMessage.AgainWanted)
    async def _again_wanted(self, event: ChatMessage.AgainWanted) -> None:
        await self._answer_again(event.entry_id)

    @on(ChatMessage.ContinueWanted)
    async def _continue_wanted(self, event: ChatMessage.ContinueWanted) -> None:
        await self._go_on(event.entry_id)

    async def action_go_on(self) -> None:
        """Go on with the last answer, where it is not whole."""
        await self._go_on(self._last)

    async def _go_on(self, entry: int | None) -> None:
        at = self.chat.branch.index(entry)
        if at is None or self._is_busy() or self.answering or self.state == "dead":
            return
        half = self.chat.branch.entries[at]
        if half.role == "assistant" and half.ending:
            self._edit(None)
            self.chat.branch.cut(at + 1)
            await self._ask(Asked(self.chat.branch, go_on=True))

    @on(ChatMessage.EditWanted)
    async def _edit_wanted(self, event: ChatMessage.EditWanted) -> None:
        if not self._is_busy():
            await self._write_anew(event.entry_id)

    async def _write_anew(self, id: int | None) -> None:
        """Bring a message into the prompt; what is sent then is another version of it."""
        at = self.chat.branch.index(id)
        entry = self.chat.branch.entries[at] if at is not None else None
        if entry is None or entry.role != "user":
            return
        text, files = attachments.split(entry.text, entry.attachments)
        if self._editing is None:
            self._set_aside = self.composer.held
        await self.composer.clear()
        await self.composer.put(Draft(text, files))
        self._edit(id)

    def _edit(self, entry: int | None) -> None:
        self._editing = entry
        self.composer.set_class(entry is not None, "-editing")
        self.composer.border_title = "another version of a message: Esc leaves it" if entry is not None else None
        self.refresh_bindings()

    async def _leave_edit(self) -> None:
        """Bring back what stood in the prompt before."""
        self._edit(None)
        await self.composer.clear()
        await self.composer.put(self._set_aside)

    async def take_back(self) -> None:
        """What had no answer is written anew, unless something else is being written."""
        with self.telling():
            self.chat.branch.read()
        await self.conversation.show(self.chat.branch.entries)
        if is_blank(self.composer.held.text) and self._editing is None:
            await self._write_anew(self._last)

    @on(ChatMessage.BranchWanted)
    async def _branch_wanted(self, event: ChatMessage.BranchWanted) -> None:
        """Go on behind this message in another way; what followed stays as a version."""
        at = self.chat.branch.index(event.entry_id)
        if at is not None and not self._is_busy():
            self._edit(None)
            self.chat.branch.cut(at + 1)
            await self.conversation.show(self.chat.branch.entries)
            self.prompt.focus()

    @on(ChatMessage.VersionWanted)
    async def _version_wanted(self, event: ChatMessage.VersionWanted) -> None:
        at = self.chat.branch.index(event.entry_id)
        if at is None or event.entry_id is None or self._is_busy():
            return
        with self.telling():
            if self.chat.branch.take(event.entry_id, event.step):
                self._edit(None)
                await self.conversation.show(self.chat.branch.entries, follow=False)
                self.conversation.reveal(at)
                self.show_last()

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
            typed = self._unsent(conversation)
            await self._leave()
            self.chat.open(conversation)
            await self.conversation.show(self._settled())
            await self.show_writing()
            await self.composer.put(of_kept(typed))
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
        held = self.composer.held if self._editing is None else self._set_aside
        with suppress(NotStored):  # it has been deleted
            self.chat.store.set_unsent(self.chat.branch.id, as_kept(held))
        self._edit(None)
        await self.composer.clear()

    def _settled(self) -> tuple[Entry, ...]:
        """The messages that are whole: not the one that is being gone on with."""
        entries = self.chat.branch.entries
        writing = self.chat.writing
        goes_on = self.chat.shows_writing and writing is not None and writing.goes_on
        return entries[:-1] if goes_on else entries

    def _unsent(self, conversation: int | None) -> str:
        if conversation == self.chat.branch.id:
            return as_kept(self.composer.held if self._editing is None else self._set_aside)
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
        if self.answering or self._editing is None:
            await super().action_stop()
        else:
            await self._leave_edit()

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
        self.show_speculation()
        self.conversation.coloured = outcome.settings.window.colour_tokens
        if outcome.reload and self.config is not None:
            exact = outcome.settings.exact or "normal"
            await self.load(altered(self.config, exact=exact))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed, False hides them."""
        if action == "stop":
            return True if self.answering or self._editing is not None else None
        if action in ("again", "warmer", "same_seed"):
            return True if self.state in ("ready", "asleep") and self.chat.branch.leaf else None
        if action == "restart":
            return self.state == "dead"
        return super().check_action(action, parameters)
