"""The chat's screen: conversations, the one in use, its figures and a prompt.

The store is the truth and the widgets show it; what an engine still says about an answer that was given up never
reaches the screen.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace as altered
from textual import events, getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer

from app import attachments
from app.attachments import Draft
from app.bridge import Bridge
from app.chat import Chat
from app.errors import AppError
from app.options import Options
from app.pace import Pace
from app.screens.settings import Outcome, SettingsScreen, Subject
from app.setup import Setup
from app.store.store import Store
from app.widgets.answer import AnswerMessage
from app.widgets.bar import Progress
from app.widgets.chat_message import ChatMessage
from app.widgets.composer import Composer
from app.widgets.conversation import Conversation
from app.widgets.panel import Panel
from app.widgets.prompt import Prompt, is_blank
from app.widgets.prose import Prose
from app.widgets.sidebar import Sidebar
from app.widgets.status import StatusLine
from app.widgets.title_bar import TitleBar
from engine.config import EngineConfig, Speculation
from engine.events import Loaded
from engine.stats import Answer

State = Literal["loading", "ready", "writing", "dead", "asleep"]

FIXED = 3
"""Tokens a round that the key for speculation takes, where the settings name none."""
LOOK_S = 20.0
"""Seconds between two looks at the engine's memory and at how long nobody was here."""


@dataclass(frozen=True)
class Asked:
    """An answer that waits for the engine."""

    go_on: bool = False
    once: Options | None = None


class ChatScreen(Screen[None]):
    """Conversations with one pair; without a config it asks the shelf for one once it is on the screen."""

    CSS_PATH = ["chat.tcss", "composer.tcss", "../widgets/sidebar.tcss", "../widgets/panel.tcss"]
    AUTO_FOCUS = "#prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    BINDINGS = [
        Binding("f2", "cycle", "Speculation", id="chat.speculation", tooltip="Drafting: automatic, off, fixed length"),
        Binding("escape", "stop", "Stop", id="chat.stop", tooltip="End the answer and keep what there is of it"),
        Binding("ctrl+n", "new", "New chat", id="chat.new", tooltip="Start an empty conversation", priority=True),
        Binding("ctrl+r", "again", "Again", id="chat.again", tooltip="Answer the last question anew"),
        Binding("ctrl+b", "chats", "Chats", id="chat.chats", tooltip="Show or hide all conversations", priority=True),
        Binding("ctrl+f", "search", "Search", id="chat.search", show=False, tooltip="Search all conversations", priority=True),
        Binding("f3", "figures", "Figures", id="chat.figures", tooltip="Show or hide the panel of figures"),
        Binding("f4", "colours", "Origins", id="chat.colours", tooltip="Colour tokens by where they came from"),
        Binding("f6", "models", "Models", id="chat.models", tooltip="Choose, fetch and load models", priority=True),
        Binding("f7", "settings", "Settings", id="chat.settings", tooltip="System prompt, sampling and the program", priority=True),
        Binding("f8", "warmer", "Again, warmer", id="chat.warmer", show=False, tooltip="Answer anew, more boldly"),
        Binding("f9", "same_seed", "Same seed", id="chat.same_seed", show=False, tooltip="Answer anew with the same draws"),
        Binding("ctrl+l", "go_on", "Continue", id="chat.continue", show=False, tooltip="Go on with a half answer"),
        Binding("ctrl+up", "browse", "Messages", id="chat.browse", show=False, tooltip="Go through the messages", priority=True),
        Binding("f5", "restart", "Restart engine", id="chat.restart", tooltip="Start the engine again"),
        Binding("ctrl+c,super+c", "copy_or_stop", "Copy or stop", id="chat.copy", show=False, tooltip="Copy the selection; without one, end the answer"),
        Binding("pageup", "earlier", "Scroll up", id="chat.up", show=False, priority=True, tooltip="Scroll the conversation up"),
        Binding("pagedown", "later", "Scroll down", id="chat.down", show=False, priority=True, tooltip="Scroll the conversation down"),
        Binding("ctrl+end", "end", "To the end", id="chat.end", show=False, priority=True, tooltip="Follow the end of the conversation"),
    ]  # fmt: skip

    @dataclass
    class ConfigRefused(Message):
        """What the settings ask for cannot be loaded; the error says what to do."""

        error: Exception

    @dataclass
    class ModelsWanted(Message):
        """The user wants to see the models."""

    state: reactive[State] = reactive[State]("loading", init=False)
    loaded: reactive[Loaded | None] = reactive[Loaded | None](None, init=False)
    """What the engine runs."""

    conversation = getters.query_one(Conversation)
    composer = getters.query_one(Composer)
    prompt = getters.query_one(Prompt)
    status = getters.query_one(StatusLine)
    title_bar = getters.query_one(TitleBar)
    sidebar = getters.query_one(Sidebar)
    panel = getters.query_one(Panel)

    def __init__(self, setup: Setup, config: EngineConfig | None, store: Store) -> None:
        super().__init__()
        self._setup, self._config = setup, config
        self.bridge = Bridge(self, setup.start, setup.log, Pace(setup.frame_s))
        self.chat = Chat(store, self.bridge, setup.caches, setup.settings)
        self._due: Asked | None = None
        """What is answered once the engine is ready."""
        self._editing: int | None = None
        """The message that the prompt writes anew."""
        self._stepped_back = False
        self._used = time.monotonic()

    def compose(self) -> ComposeResult:
        """Conversations; title, messages, figures and prompt; more figures; keys."""
        with Horizontal(id="desk"):
            yield Sidebar(self.chat.store)
            with Vertical(id="chat"):
                yield TitleBar()
                yield Conversation()
                yield StatusLine()
                yield Composer(quiet_s=self._setup.quiet_s)
            yield Panel()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Start the engine once the first frame is out."""
        self._show_speculation()
        self.conversation.coloured = self.chat.settings.window.colour_tokens
        self.status.progress = Progress("Starting the engine", 0.0)
        self.set_interval(LOOK_S, self._look)
        self.call_after_refresh(self._begin)

    async def _begin(self) -> None:
        self._load()
        with self._telling():
            self.composer.remember(self.chat.store.inputs())
            await self.composer.put(Draft(self.chat.store.unsent()))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Say in one line what the store, or a file, refuses."""
        try:
            yield
        except AppError as error:
            self.notify(str(error), severity="error", markup=False)

    # The engine

    def _load(self) -> None:
        self.state = "loading"
        self.run_worker(self._load_pair(), group="engine", exclusive=True)

    async def _load_pair(self) -> None:
        try:
            if self._config is None:
                self._config = await asyncio.to_thread(self._setup.shelf.config)
        except Exception as error:
            self.post_message(self.ConfigRefused(error))
        else:
            await self.bridge.load(self._config)

    async def load(self, config: EngineConfig) -> None:
        """Run another pair in the place of this one; the conversation goes on with it."""
        await self._give_up()
        await self.chat.keep()
        self.bridge.meter.new_chat()
        self._config = config
        self._load()

    async def unload(self) -> None:
        """Give the models' memory back; the next message loads them again."""
        if self.state == "ready":
            self.state = "asleep"
            self.status.progress = Progress("The models rest: they load again with the next message", 1.0, "")
            await self.chat.close()
            self.loaded, self.panel.memory = None, None

    async def close(self) -> None:
        """End the engine; what is typed, what there is of an answer and what was read stay."""
        with self._telling():
            self.chat.store.set_unsent(self.chat.branch.id, self.prompt.text)
        await self.chat.close()
        with self._telling():
            self.chat.break_off()

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that are loaded, the target's first."""
        loaded = self.loaded
        return () if loaded is None else (loaded.target, *([loaded.draft] if loaded.draft else []))

    async def _look(self) -> None:
        """See what the engine holds, and let it rest where nobody was here for long."""
        self.panel.memory = await self.bridge.memory()
        minutes = self.chat.settings.window.idle_unload
        if minutes and time.monotonic() - self._used > 60 * minutes:
            await self.unload()

    def watch_loaded(self, loaded: Loaded | None) -> None:
        """Show what runs."""
        self.title_bar.loaded = loaded
        self.composer.count_by(self.bridge.count if loaded else None)
        if loaded is not None:
            self.panel.n_ctx = loaded.n_ctx

    # What is said

    @on(Composer.Submitted)
    async def send(self, event: Composer.Submitted) -> None:
        """Ask, now or as soon as the engine is ready."""
        if self.state == "dead":
            self.notify("The engine is not running: F5 starts it again.", severity="warning", markup=False)
            return
        with self._telling():
            if self._editing is not None:
                self.chat.branch.cut(self.chat.branch.index(self._editing))
                await self.conversation.show(self.chat.branch.entries)
                self._edit(None)
            entry = self.chat.branch.say(event.draft.message, event.draft.names)
            self.chat.store.set_unsent(None, "")
            await self.composer.accept(event.draft)
            await self.conversation.add(entry)
            self.sidebar.opened = self.chat.branch.id
            self.sidebar.reload()
            await self._ask(Asked())

    async def _ask(self, asked: Asked) -> None:
        """Have the last message answered, or gone on with."""
        self._due = asked if self.state in ("loading", "asleep") else None
        if self.state == "asleep":
            self._load()
        self._busy()
        if self._due is not None:
            return
        request = self.chat.begin(go_on=asked.go_on, once=asked.once)
        self.state = "writing"
        if asked.go_on:
            await self.conversation.show(self.chat.branch.entries[:-1])
        await self._show_writing()
        self.run_worker(self.chat.answer(request), group="answer", exclusive=True)

    async def _show_writing(self) -> None:
        writing = self.chat.writing
        if writing is not None and self.chat.shows_writing:
            await self.conversation.begin()
            await self.conversation.write(writing.text, writing.trace)

    @on(Composer.Paused)
    async def _paused(self, event: Composer.Paused) -> None:
        """Keep what is typed, and have what is sure of it read."""
        self._used = time.monotonic()
        with self._telling():
            self.chat.store.set_unsent(self.chat.branch.id, event.draft.text)
        if self.state == "ready" and self._editing is None and not is_blank(event.draft.text):
            await self.chat.prepare(event.draft.message)

    # What is done with messages

    def _again(self, entry: int, once: Options | None = None) -> Asked | None:
        """Cut the branch behind the question that this message is or answers; None where it cannot be answered now."""
        if self.chat.writing is not None or self._due or self.state == "dead":
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
            with self._telling():
                await self._ask(asked)

    @on(ChatMessage.AgainWanted)
    async def _again_wanted(self, event: ChatMessage.AgainWanted) -> None:
        await self._answer_again(event.entry_id)

    @on(ChatMessage.ContinueWanted)
    async def action_go_on(self) -> None:
        """Go on with the last answer, where it is not whole."""
        leaf = self.chat.branch.leaf
        if self.state in ("ready", "asleep") and leaf is not None and leaf.role == "assistant" and leaf.ending:
            with self._telling():
                await self._ask(Asked(go_on=True))

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
        with self._telling():
            at = self.chat.branch.index(event.entry_id)
            if self.chat.branch.take(event.entry_id, event.step):
                await self.conversation.show(self.chat.branch.entries, follow=False)
                self.conversation.reveal(at)
                self._show_last()

    @on(ChatMessage.CopyWanted)
    def _copy_wanted(self, event: ChatMessage.CopyWanted) -> None:
        self._copy(event.text, f"Copied {len(event.text):,} characters.")

    @on(Prose.LinkChosen)
    def _link(self, event: Prose.LinkChosen) -> None:
        self._copy(event.address, f"Copied the address {event.address}")

    def _copy(self, text: str, said: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(said, markup=False)

    @on(AnswerMessage.TraceWanted)
    async def _trace_wanted(self, event: AnswerMessage.TraceWanted) -> None:
        if event.entry_id is not None and isinstance(event.message, AnswerMessage):
            with self._telling():
                await event.message.show_trace(self.chat.store.trace(event.entry_id))

    # Conversations

    async def open(self, conversation: int | None, message: int | None = None) -> None:
        """Look at another conversation, None: at a new one; an answer that is being written goes on."""
        with self._telling():
            left = await self.composer.clear()
            self.chat.store.set_unsent(self.chat.branch.id, left.text if self._editing is None else "")
            self._edit(None)
            self.chat.open(conversation)
            await self.conversation.show(self.chat.branch.entries)
            await self._show_writing()
            await self.composer.put(Draft(self._unsent(conversation)))
            self._busy()
            if message is not None:
                self.conversation.reveal(self.chat.branch.index(message))
        self.sidebar.opened = self.chat.branch.id
        self.bridge.meter.new_chat()
        self._show_last()
        self.prompt.focus()

    def _unsent(self, conversation: int | None) -> str:
        store = self.chat.store
        return store.unsent() if conversation is None else store.get(conversation).unsent

    def _show_last(self) -> None:
        """The figures of the last answer of the conversation that is looked at."""
        answers = [entry.answer for entry in self.chat.branch.entries if entry.answer]
        if self.chat.shows_writing:
            return
        self.panel.live = self.bridge.meter.show(answers[-1]) if answers else self.bridge.meter.new_chat()
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
            with self._telling():
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
            await self._give_up()
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

    async def action_cycle(self) -> None:
        """Automatic, off, fixed: from the next round on, also in the middle of an answer."""
        now = self.chat.speculation
        fixed = self.chat.settings.speculation.length or FIXED
        following = {
            "auto": Speculation(mode="off", rule=now.rule),
            "off": Speculation(mode="fixed", length=fixed, rule=now.rule),
            "fixed": Speculation(mode="auto", rule=now.rule),
        }
        await self.chat.set_speculation(following[now.mode])
        self._show_speculation()

    def _show_speculation(self) -> None:
        self.status.speculation = self.panel.speculation = self.chat.speculation

    async def action_stop(self) -> None:
        """End the answer, and what there is of it stays; else leave the message that is written anew."""
        if self.state == "writing":
            await self.bridge.stop()
        elif self._editing is not None:
            self._edit(None)
            await self.composer.clear()

    async def action_copy_or_stop(self) -> None:
        """Copy what is selected; else end the answer; else say how to quit."""
        if selected := self.get_selected_text():
            self._copy(selected, f"Copied {len(selected):,} characters.")
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

    async def action_restart(self) -> None:
        """Start the engine again, with the same pair."""
        self.status.progress = Progress("Starting the engine", 0.0)
        self._load()

    def action_chats(self) -> None:
        """Show or hide the conversations."""
        self.sidebar.toggle()

    def action_search(self) -> None:
        """Search them."""
        self.sidebar.action_search()

    def action_figures(self) -> None:
        """Show or hide the panel."""
        self.panel.toggle()

    def action_colours(self) -> None:
        """Show where each token came from, or not."""
        self.conversation.coloured = not self.conversation.coloured

    def action_browse(self) -> None:
        """Go through the messages by keys."""
        self.conversation.browse()

    def action_models(self) -> None:
        """Go to the models."""
        self.post_message(self.ModelsWanted())

    def action_settings(self) -> None:
        """Show the settings of this conversation and of the program."""
        chat, thinks = self.chat, self.loaded is None or self.loaded.thinks
        themes = tuple(sorted(self.app.available_themes))
        subject = Subject(
            chat.settings, chat.branch.options, chat.branch.system, chat.store, self._setup.save, themes, thinks
        )
        self.app.push_screen(SettingsScreen(subject), self._apply)

    async def _apply(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        with self._telling():
            self.chat.branch.set_options(outcome.system, outcome.options)
        self.chat.set_settings(outcome.settings)
        self.conversation.coloured = outcome.settings.window.colour_tokens
        if outcome.reload and self._config is not None:
            exact = outcome.settings.exact or "normal"
            await self.load(altered(self._config, exact=exact))

    async def action_earlier(self) -> None:
        """Scroll the conversation up a page."""
        await self.conversation.page_up()

    def action_later(self) -> None:
        """Scroll the conversation down a page."""
        self.conversation.scroll_page_down(animate=False)

    def action_end(self) -> None:
        """Follow the end again."""
        self.conversation.anchor()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys do something now: None shows them greyed, False hides them."""
        if action == "stop":
            return True if self.state == "writing" or self._editing is not None else None
        if action in ("again", "warmer", "same_seed"):
            return True if self.state in ("ready", "asleep") and self.chat.branch.leaf else None
        if action == "restart":
            return self.state == "dead"
        return super().check_action(action, parameters)

    def watch_state(self) -> None:
        """Show in classes and keys what can be done."""
        for state in ("loading", "ready", "writing", "dead", "asleep"):
            self.set_class(self.state == state, f"-{state}")
        self._busy()
        self.refresh_bindings()

    def _busy(self) -> None:
        """What is sent while an answer is being written, or waits to be, has to wait."""
        self.composer.busy = self.state == "writing" or self._due is not None

    def on_resize(self, event: events.Resize) -> None:
        """Fold what there is no room for."""
        self.panel.fit(event.size.width)

    async def _give_up(self) -> None:
        """Let the answer in hand be; what there is of it stays in its conversation."""
        self.workers.cancel_group(self, "answer")
        self.bridge.forget()
        self._due = None
        shown = self.chat.shows_writing
        with self._telling():
            entry = self.chat.break_off()
            if shown and entry is not None:
                await self.conversation.finish(entry)
        if self.state == "writing":
            self.state = "ready"

    # What the engine says

    @on(Bridge.EngineStarted)
    def _started(self) -> None:
        if not self._stepped_back:
            self._stepped_back = True
            self._setup.lower_priority()

    @on(Bridge.LoadProgressed)
    def _loading(self, event: Bridge.LoadProgressed) -> None:
        self.status.show_loading(event.event)

    @on(Bridge.PairLoaded)
    async def _loaded(self, event: Bridge.PairLoaded) -> None:
        self.loaded = event.event
        self.status.show_loaded(event.event)
        await self.conversation.notes(event.event.notes)
        self.state = "ready"
        self.run_worker(self._setup.shelf.used, thread=True, exit_on_error=False)
        self.run_worker(self._look(), group="look", exclusive=True)
        if self._due is not None:
            with self._telling():
                await self._ask(self._due)
        self._busy()

    @on(Bridge.PromptRead)
    def _reading(self, event: Bridge.PromptRead) -> None:
        """How far the prompt is read; what a draft catches up on later is no news."""
        if self.chat.writing is not None:
            self.panel.live = event.live
            if not self.chat.writing.begun:
                self.status.show_reading(event.event)

    @on(Bridge.TextStreamed)
    async def _streamed(self, event: Bridge.TextStreamed) -> None:
        if self.chat.writing is None:
            return
        self.status.show_writing(event.live)
        self.panel.live = event.live
        with self._telling():
            self.chat.take(event.text, event.trace)
        if self.chat.shows_writing:
            await self.conversation.write(event.text, event.trace)

    @on(Bridge.AnswerFinished)
    async def _finished(self, event: Bridge.AnswerFinished) -> None:
        if self.chat.writing is None:
            return
        self.status.show_finished(event.answer)
        self.panel.live = event.live
        shown = self.chat.shows_writing
        with self._telling():
            entry = self.chat.finish(event.answer)
            if shown and entry is not None:
                await self.conversation.finish(entry)
                await self.conversation.notes(event.answer.notes)
        self.state, self._used = "ready", time.monotonic()
        self.sidebar.reload()
        self._ring()

    def _ring(self) -> None:
        """Say that an answer has ended, where that is wanted."""
        bell = self.chat.settings.window.bell
        if bell == "sound":
            self.app.bell()
        elif bell == "notice":
            self.app.notify_terminal("Paceline", "The answer is here.")

    @on(Bridge.RequestFailed)
    async def _failed(self, event: Bridge.RequestFailed) -> None:
        await self._broken(str(event.error), "ready" if self.state == "writing" else "dead")

    @on(Bridge.EngineDied)
    async def _died(self, event: Bridge.EngineDied) -> None:
        self.loaded = None
        await self._broken(f"{event.error} (F5)", "dead")

    async def _broken(self, why: str, state: State) -> None:
        """Keep what there is of an answer; bring an unanswered question into the prompt; say why."""
        self.status.progress = None
        shown, asked = self.chat.shows_writing, self.chat.writing is not None or self._due is not None
        with self._telling():
            entry = self.chat.break_off()
            if shown and entry is not None:
                await self.conversation.finish(entry)
            elif asked:
                await self._take_back()
        self._due = None
        self.state = state
        await self.conversation.notice(why, "error")

    async def _take_back(self) -> None:
        """What had no answer is written anew, unless something else is being written."""
        self.chat.branch.read()
        await self.conversation.show(self.chat.branch.entries)
        leaf = self.chat.branch.leaf
        if leaf is not None and leaf.id is not None and is_blank(self.prompt.text):
            await self._write_anew(leaf.id)
