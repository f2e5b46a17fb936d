"""The chat's screen: what is said, what is done with messages and conversations, and the ways to other screens.

The store is the truth and the widgets show it.
"""

from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace as altered
from textual import on
from textual.binding import Binding
from textual.message import Message

from app.attachments import Draft, as_kept
from app.chat import Asked
from app.errors import AppError
from app.options import Options
from app.screens.conversing import ConversingScreen
from app.screens.settings import Outcome, SettingsScreen, Subject
from app.transcript import Entry
from app.widgets.answer import AnswerMessage
from app.widgets.chat_message import ChatMessage
from app.widgets.composer import Composer
from app.widgets.prompt import is_blank
from app.widgets.prose import Prose
from engine.stats import Answer


class ChatScreen(ConversingScreen):
    """Conversations with one pair."""

    BINDINGS = [
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

    # What is said

    @on(Composer.Submitted)
    async def send(self, event: Composer.Submitted) -> None:
        """Ask, now or as soon as the engine is ready."""
        if not any(one is event.draft for one in self.composer.waiting.drafts):
            return  # it was taken back, or its conversation left, before this was heard
        if self.state == "dead":
            self.composer.refuse()
            self.notify("The engine is not running: F5 starts it again.", severity="warning", markup=False)
            return
        if self.answering:
            self.composer.refuse()
            return
        aside = self.unsent.aside
        try:
            entry = await self._say(event.draft)
        except AppError as error:
            self.composer.refuse()
            self.notify(str(error), severity="error", markup=False)
            return
        self.composer.busy = True
        await self.composer.accept(event.draft)
        if aside != Draft(""):
            await self.composer.put(aside)
        await self.conversation.add(entry, follow=not event.waited)
        self.sidebar.opened = self.chat.branch.id
        self.sidebar.reload()
        if entry.role == "user":
            await self._ask(Asked(self.chat.branch))
        else:
            self.line_up()

    async def _say(self, draft: Draft) -> Entry:
        """Keep what is said, or the answer that was put in other words."""
        branch, at = self.chat.branch, self.chat.branch.index(self.editing)
        self.chat.keep_answer()
        before = None if at is None else branch.entries[at]
        if at is not None:
            branch.cut(at)
            await self.conversation.show(branch.entries)
        self.edit(None)
        return branch.say(draft) if before is None or before.role == "user" else branch.correct(draft, before)

    async def _ask(self, asked: Asked) -> None:
        try:
            await self.ask(asked)
        except AppError as error:
            self.notify(str(error), severity="error", markup=False)
        finally:
            self.line_up()

    @on(Composer.Counted)
    def _counted(self, event: Composer.Counted) -> None:
        self.status.typed = self.panel.typed = event.tokens

    @on(Composer.Paused)
    def _paused(self, event: Composer.Paused) -> None:
        """Keep what is typed, and have what is sure of it read."""
        self.seen()
        with self.telling():
            self.chat.store.set_unsent(self.chat.branch.id, as_kept(self.unsent))
        if self.editing is not None:
            return
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
        elif self.editing is not None:
            self.notify("A message is being written anew: Enter sends it, Esc leaves it.", markup=False)
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
        question = self.chat.branch.entries[at].role == "user"
        self.chat.branch.cut(at + 1 if question else at)
        await self.conversation.show(self.chat.branch.entries)
        self.prompt.focus()
        await self._ask(Asked(self.chat.branch, once=once))

    @on(ChatMessage.AgainWanted)
    async def _again_wanted(self, event: ChatMessage.AgainWanted) -> None:
        await self._answer_again(event.entry_id, event.once)

    @on(ChatMessage.ContinueWanted)
    async def _continue_wanted(self, event: ChatMessage.ContinueWanted) -> None:
        await self._go_on(event.entry_id)

    async def action_go_on(self) -> None:
        """Go on with the last answer, where it is not whole."""
        await self._go_on(self.last)

    async def _go_on(self, entry: int | None) -> None:
        at = self.chat.branch.index(entry)
        if at is None or self._is_busy() or self.answering or self.state == "dead":
            return
        half = self.chat.branch.entries[at]
        if half.role == "assistant" and half.ending:
            self.chat.branch.cut(at + 1)
            await self._ask(Asked(self.chat.branch, go_on=True))

    @on(ChatMessage.EditWanted)
    async def _edit_wanted(self, event: ChatMessage.EditWanted) -> None:
        if not self._is_busy():
            await self.write_anew(event.entry_id)

    @on(ChatMessage.BranchWanted)
    async def _branch_wanted(self, event: ChatMessage.BranchWanted) -> None:
        """Go on behind this message in another way; what followed stays as a version."""
        at = self.chat.branch.index(event.entry_id)
        if at is not None and not self._is_busy():
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

    # Keys

    async def action_stop(self) -> None:
        """End the answer, and what there is of it stays; else leave the message that is written anew."""
        if self.answering or self.editing is None:
            await super().action_stop()
        else:
            await self.leave_edit()

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
        await self._answer_again(self.last)

    async def action_warmer(self) -> None:
        """Answer it anew, more boldly."""
        if (answer := self._last_answer) is not None:
            await self._answer_again(self.last, Options.warmer(answer.settings))

    async def action_same_seed(self) -> None:
        """Answer it anew with the draws of the last answer."""
        if (answer := self._last_answer) is not None:
            await self._answer_again(self.last, Options.same_seed(answer))

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
        self.show_window(outcome.settings.window)
        if outcome.reload and self.config is not None:
            exact = outcome.settings.exact or "normal"
            await self.load(altered(self.config, exact=exact))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed, False hides them."""
        if action == "stop":
            return True if self.answering or self.editing is not None else None
        if action in ("again", "warmer", "same_seed"):
            return True if self.state in ("ready", "asleep") and self.chat.branch.leaf else None
        if action == "restart":
            return self.state == "dead"
        return super().check_action(action, parameters)
