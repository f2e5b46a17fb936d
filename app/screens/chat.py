"""The chat: a conversation, its figures and a prompt.

The transcript is the truth and the widgets show it; what an engine still says about a request that was given up never
reaches the screen.
"""

import asyncio
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace
from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer

from app.bridge import Bridge
from app.pace import Pace
from app.setup import Setup
from app.transcript import Entry, Transcript
from app.widgets.bar import Progress
from app.widgets.conversation import Conversation
from app.widgets.prompt import Prompt, is_blank
from app.widgets.prose import Prose
from app.widgets.status import StatusLine
from app.widgets.title_bar import TitleBar
from engine.config import EngineConfig, Speculation

State = Literal["loading", "ready", "writing", "dead"]

FIXED = 3
"""Tokens a round that the key for speculation takes, where the settings name none."""


class ChatScreen(Screen[None]):
    """One conversation with one pair; without a config it asks the shelf for one once it is on the screen."""

    CSS_PATH = "chat.tcss"
    AUTO_FOCUS = "#prompt"
    BINDINGS = [
        Binding("f2", "cycle", "Speculation", id="chat.speculation", tooltip="Drafting: automatic, off, fixed length"),
        Binding("escape", "stop", "Stop", id="chat.stop", tooltip="End the answer and keep what there is of it"),
        Binding("ctrl+n", "new", "New chat", id="chat.new", tooltip="Start an empty conversation", priority=True),
        Binding("ctrl+r", "again", "Again", id="chat.again", tooltip="Answer the last question anew"),
        Binding("f5", "restart", "Restart engine", id="chat.restart", tooltip="Start the engine again"),
        Binding(
            "ctrl+c,super+c", "copy_or_stop", "Copy or stop", id="chat.copy", show=False,
            tooltip="Copy the selection; without one, end the answer",
        ),
        Binding(
            "pageup", "earlier", "Scroll up", id="chat.up", show=False, priority=True,
            tooltip="Scroll the conversation up",
        ),
        Binding(
            "pagedown", "later", "Scroll down", id="chat.down", show=False, priority=True,
            tooltip="Scroll the conversation down",
        ),
        Binding(
            "ctrl+end", "end", "To the end", id="chat.end", show=False, priority=True,
            tooltip="Follow the end of the conversation",
        ),
    ]  # fmt: skip

    @dataclass
    class ConfigRefused(Message):
        """What the settings ask for cannot be loaded; the error says what to do."""

        error: Exception

    state: reactive[State] = reactive[State]("loading", init=False)

    conversation = getters.query_one(Conversation)
    prompt = getters.query_one(Prompt)
    status = getters.query_one(StatusLine)
    title_bar = getters.query_one(TitleBar)

    def __init__(self, setup: Setup, config: EngineConfig | None) -> None:
        super().__init__()
        self._setup, self._config = setup, config
        self.transcript = Transcript()
        self.speculation = setup.request.speculation
        self.bridge = Bridge(self, setup.start, setup.log, Pace(setup.frame_s))
        self._partial: list[str] = []
        self._due = False
        """Whether the last question waits for the engine to be ready."""
        self._stepped_back = False

    def compose(self) -> ComposeResult:
        """Title, conversation, figures, prompt, keys."""
        yield TitleBar()
        yield Conversation()
        yield StatusLine()
        yield Prompt(quiet_s=self._setup.quiet_s)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Start the engine once the first frame is out."""
        self.status.speculation = self.speculation
        self.status.progress = Progress("Starting the engine", 0.0)
        self.call_after_refresh(self._load)

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

    # What the user does

    @on(Prompt.Submitted)
    async def send(self, event: Prompt.Submitted) -> None:
        """Ask, now or as soon as the engine is ready."""
        if is_blank(event.text):
            self.notify("Write something first.", markup=False)
        elif self.state == "writing" or self._due:
            self.notify("One answer at a time: Esc stops this one.", markup=False)
        elif self.state == "dead":
            self.notify("The engine is not running: F5 starts it again.", severity="warning", markup=False)
        else:
            self.prompt.accept(event.text)
            entry = Entry("user", event.text.strip("\n"))
            self.transcript.add(entry)
            await self.conversation.add(entry)
            await self._ask()

    async def _ask(self) -> None:
        self._due = self.state == "loading"
        if self._due:
            return
        self.state = "writing"
        self._partial.clear()
        await self.conversation.begin()
        template = self._setup.request
        messages = (*template.messages, *self.transcript.messages())
        request = replace(template, messages=messages, speculation=self.speculation)
        self.run_worker(self.bridge.answer(request), group="answer", exclusive=True)

    async def action_cycle(self) -> None:
        """Automatic, off, fixed: from the next round on, also in the middle of an answer."""
        fixed = self._setup.request.speculation.length or FIXED
        rule = self.speculation.rule
        following = {
            "auto": Speculation(mode="off", rule=rule),
            "off": Speculation(mode="fixed", length=fixed, rule=rule),
            "fixed": Speculation(mode="auto", rule=rule),
        }
        self.speculation = self.status.speculation = following[self.speculation.mode]
        if self.state == "writing":
            await self.bridge.set_speculation(self.speculation)

    async def action_stop(self) -> None:
        """End the answer; what there is of it stays."""
        await self.bridge.stop()

    async def action_copy_or_stop(self) -> None:
        """Copy what is selected; else end the answer; else say how to quit."""
        if selected := self.get_selected_text():
            self.app.copy_to_clipboard(selected)
        elif self.state == "writing":
            await self.action_stop()
        else:
            self.notify("Nothing is selected. Ctrl+Q quits.", markup=False)

    async def action_new(self) -> None:
        """Give up what is running and start an empty conversation."""
        self._give_up()
        self.transcript.clear()
        await self.conversation.show(self.transcript)
        self.status.clear()
        self.prompt.focus()

    def _give_up(self) -> None:
        self.workers.cancel_group(self, "answer")
        self.bridge.forget()
        self._due = False
        if self.state == "writing":
            self.state = "ready"

    async def action_again(self) -> None:
        """Answer the last question anew."""
        if self.transcript.drop_answer():
            await self.conversation.show(self.transcript)
            await self._ask()

    async def action_restart(self) -> None:
        """Start the engine again, with the same pair."""
        self.status.progress = Progress("Starting the engine", 0.0)
        self._load()

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
            return True if self.state == "writing" else None
        if action == "again":
            return True if self.state == "ready" and len(self.transcript) else None
        if action == "restart":
            return self.state == "dead"
        return super().check_action(action, parameters)

    def watch_state(self) -> None:
        """Show in classes and keys what can be done."""
        for state in ("loading", "ready", "writing", "dead"):
            self.set_class(self.state == state, f"-{state}")
        self.refresh_bindings()

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
        self.title_bar.loaded = event.event
        self.status.show_loaded(event.event)
        for note in event.event.notes:
            await self.conversation.notice(note)
        self.state = "ready"
        self.run_worker(self._setup.shelf.used, thread=True, exit_on_error=False)
        if self._due:
            await self._ask()

    @on(Bridge.PromptRead)
    def _reading(self, event: Bridge.PromptRead) -> None:
        """How far the prompt is read; what a draft catches up on later is no news."""
        if self.state == "writing" and not self._partial:
            self.status.show_reading(event.event)

    @on(Bridge.TextStreamed)
    async def _streamed(self, event: Bridge.TextStreamed) -> None:
        if self.state == "writing":
            self.status.show_writing(event.live)
            self._partial.append(event.text)
            await self.conversation.write(event.text)

    @on(Bridge.AnswerFinished)
    async def _finished(self, event: Bridge.AnswerFinished) -> None:
        if self.state != "writing":
            return
        self.status.show_finished(event.answer)
        await self._close_answer(Entry.of_answer(event.answer))
        await self.conversation.notes(event.answer.notes)

    async def _close_answer(self, entry: Entry) -> None:
        self.transcript.add(entry)
        await self.conversation.finish(entry)
        self.state = "ready"

    @on(Bridge.RequestFailed)
    async def _failed(self, event: Bridge.RequestFailed) -> None:
        await self._broken(str(event.error), "ready" if self.state == "writing" else "dead")

    @on(Bridge.EngineDied)
    async def _died(self, event: Bridge.EngineDied) -> None:
        await self._broken(f"{event.error} (F5)", "dead")

    async def _broken(self, why: str, state: State) -> None:
        """Keep what there is of an answer; give an unanswered question back to the prompt; say why."""
        writing, self.status.progress = self.state == "writing", None
        if writing and (text := "".join(self._partial)):
            await self._close_answer(Entry("assistant", text, ending="broken off"))
        elif writing or self._due:
            await self._take_back()
        self._due = False
        self.state = state
        await self.conversation.notice(why, "error")

    async def _take_back(self) -> None:
        question = self.transcript.pop()
        await self.conversation.show(self.transcript)
        if is_blank(self.prompt.text):
            self.prompt.text = question.text
            self.prompt.move_cursor(self.prompt.document.end)

    @on(Prose.LinkChosen)
    def _link(self, event: Prose.LinkChosen) -> None:
        self.app.copy_to_clipboard(event.address)
        self.notify(f"Copied the address {event.address}", markup=False)
