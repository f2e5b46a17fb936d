"""The chat and its engine: models are loaded and rest, an answer is asked for, and what comes of it is shown.

What an engine still says about an answer that was given up never reaches the page.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from textual import on
from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive

from app.attachments import Unsent, as_kept
from app.bridge import Bridge
from app.chat import REST_S, Asked
from app.errors import AppError
from app.screens.desk import Desk, State
from app.setup import Setup
from app.store.store import Store
from app.transcript import Entry
from app.widgets.bar import Progress
from app.widgets.mode_line import ModeLine
from engine.config import EngineConfig, Request, Speculation
from engine.events import Loaded

FIXED = 3
"""Tokens a round that the key for speculation takes, where the settings name none."""
LOOK_S = 20.0
"""Seconds between two looks at the engine's memory and at how long nobody was here."""
QUIET_S = 60.0
"""Seconds in which nobody did anything, after which what was read is kept: a crash then costs nothing of it."""


class AnsweringScreen(Desk):
    """A page with an engine; without a config it asks the shelf for one once it is on the screen."""

    BINDINGS = [
        Binding("f2", "cycle", "Speculation", id="chat.speculation", tooltip="Drafting: automatic, off, fixed length"),
        Binding("escape", "stop", "Stop", id="chat.stop", tooltip="End the answer and keep what there is of it"),
        Binding("f5", "restart", "Restart engine", id="chat.restart", tooltip="Start the engine again"),
    ]

    @dataclass
    class ConfigRefused(Message):
        """What the settings ask for cannot be loaded; the error says what to do."""

        error: Exception

    loaded: reactive[Loaded | None] = reactive[Loaded | None](None, init=False)
    """What the engine runs."""

    def __init__(self, setup: Setup, config: EngineConfig | None, store: Store) -> None:
        super().__init__(setup, store)
        self.config = config
        self._length: int | None = None
        """The fixed length that was in force last."""
        self._due: Asked | None = None
        """What is answered once the engine is ready."""
        self._resting: asyncio.Task[None] | None = None
        """The models on their way out of memory."""
        self._stepped_back = self._told = self._leaving = False
        self._used = setup.clock()
        self._not_kept: set[str] = set()
        """Why caches could not be kept, as far as it has been said."""

    def on_mount(self) -> None:
        """Start the engine once the first frame is out."""
        self.show_speculation()
        self.status.progress = Progress("Starting the engine", 0.0)
        self.set_interval(LOOK_S, self._look_around)
        self.call_after_refresh(self._load)

    # The engine

    def _load(self) -> None:
        self.state = "loading"
        self.run_worker(self._load_pair, group="engine", exclusive=True)

    async def _load_pair(self) -> None:
        if self._resting is not None:
            await asyncio.wait({self._resting})
        await self.chat.keep()
        try:
            if self.config is None:
                self.config = await asyncio.to_thread(self.setup.shelf.config)
        except Exception as error:
            self.post_message(self.ConfigRefused(error))
        else:
            await self.bridge.load(self.config)

    async def load(self, config: EngineConfig) -> None:
        """Run another pair in the place of this one; the conversation goes on with it."""
        self.state = "loading"
        await self.give_up()
        self.bridge.meter.new_chat()
        self.config = config
        self._load()

    async def unload(self) -> None:
        """Give the models' memory back; the next message loads them again."""
        if self.state != "ready":
            self.notify("The models are at work, or not loaded.", markup=False)
            return
        self.state, self.loaded = "asleep", None
        self.status.progress = Progress("The models rest: they load again with the next message", 1.0, "")
        self.panel.memory = None
        self._resting = asyncio.create_task(self.chat.close(REST_S))

    def wake(self) -> None:
        """Load the models again."""
        self._load()

    async def close(self) -> None:
        """End the engine; what is typed or waits, what there is of an answer and what was read stay."""
        with self.telling():
            self.chat.store.set_unsent(self.chat.branch.id, as_kept(self.unsent))
        self._leaving = True
        self.line_up()
        await self.chat.close()
        await self._end(self.chat.break_off)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that are loaded, the target's first."""
        loaded = self.loaded
        return () if loaded is None else (loaded.target, *([loaded.draft] if loaded.draft else []))

    def _look_around(self) -> None:
        self.run_worker(self._look, group="look", exclusive=True)

    async def _look(self) -> None:
        """See what the engine holds; where nobody was here for long, let it rest, or keep what it has read."""
        memory = await self.bridge.memory()
        if self.state != "asleep":
            self.panel.memory = memory
        minutes, quiet = self.chat.settings.window.idle_unload, self.setup.clock() - self._used
        if self.state != "ready":
            return
        if minutes and quiet > 60 * minutes:
            await self.unload()
        elif quiet > QUIET_S:
            await self.chat.keep_aside()

    def watch_loaded(self, loaded: Loaded | None) -> None:
        """Show what runs."""
        self.title_bar.loaded = loaded
        self.composer.count_by(self.bridge.count if loaded else None)
        if loaded is not None:
            self.panel.n_ctx = loaded.n_ctx

    def seen(self) -> None:
        """Somebody is here."""
        self._used = self.setup.clock()

    async def action_restart(self) -> None:
        """Start the engine again, with the same pair."""
        self.status.progress = Progress("Starting the engine", 0.0)
        self._load()

    # Speculation

    @on(ModeLine.ModeWanted)
    async def action_cycle(self) -> None:
        """Automatic, off, fixed: from the next round on, also in the middle of an answer."""
        now = self.chat.speculation
        self._length = now.length or self._length
        fixed = self._length or self.chat.settings.speculation.length or FIXED
        following = {
            "auto": Speculation(mode="off", rule=now.rule),
            "off": Speculation(mode="fixed", length=fixed, rule=now.rule),
            "fixed": Speculation(mode="auto", rule=now.rule),
        }
        with self.telling():
            await self.chat.set_speculation(following[now.mode])
        self.show_speculation()

    def show_speculation(self) -> None:
        """Show the setting of the branch that is looked at."""
        self.status.speculation = self.panel.speculation = self.chat.speculation

    # An answer

    @property
    def answering(self) -> bool:
        """Whether an answer is being written, or waits for the engine."""
        return self.chat.writing is not None or self._due is not None

    def concerns(self, conversation: int) -> bool:
        """Whether the answer in hand, or the one that waits for the engine, is of this conversation."""
        branches = [one.branch for one in (self.chat.writing, self._due) if one is not None]
        return any(branch.id == conversation for branch in branches)

    async def ask(self, asked: Asked) -> None:
        """Have the last message of a branch answered, or gone on with, now or as soon as the engine is ready."""
        self.seen()
        self._due = asked if self.state in ("loading", "asleep") else None
        if self.state == "asleep":
            self.wake()
        self.line_up()
        if self._due is not None:
            return
        request = self.chat.begin(asked)
        self.state, self._told = "writing", False
        if asked.go_on and self.chat.shows_writing:
            await self.conversation.show(self.chat.branch.entries[:-1])
        await self.show_writing()
        self.run_worker(partial(self._answer, request), group="answer", exclusive=True)

    async def _answer(self, request: Request) -> None:
        if not await self.chat.answer(request) and self.chat.writing is not None:
            await self._let_be()  # it was stopped before the engine was asked

    async def show_writing(self) -> None:
        """Show what there is of the answer in hand, where it belongs to the branch that is looked at."""
        writing = self.chat.writing
        if writing is not None and self.chat.shows_writing:
            await self.conversation.begin(follow=self.conversation.following)
            await self.conversation.write(writing.text, writing.trace, writing.opening)

    async def action_stop(self) -> None:
        """End the answer, and what there is of it stays; a question that waits for the engine is given back."""
        if self._due is not None:
            asked, self._due = self._due, None
            self.line_up()
            if asked.branch is self.chat.branch:
                await self.take_back()
        else:
            await self.chat.stop()

    async def give_up(self) -> None:
        """Let the answer in hand be; what there is of it stays in its conversation."""
        self.workers.cancel_group(self, "answer")
        await self._let_be()

    async def _let_be(self) -> None:
        self.bridge.forget()
        self._due = None
        await self._end(self.chat.break_off)
        if self.state == "writing":
            self.state = "ready"

    async def _end(self, end: Callable[[], Entry | None]) -> None:
        """End the answer in hand, keep it and show it; where there is nothing of it, give its question back."""
        if self.chat.writing is None:
            return
        shown, entry = self.chat.shows_writing, end()
        if entry is None:
            if shown:
                await self.take_back()
            return
        with self.telling():
            entry = self.chat.keep_answer() or entry
        if shown:
            await self.conversation.finish(entry)

    def line_up(self) -> None:
        """What is sent while an answer is being written, or waits to be, has to wait; until then Esc ends it."""
        self.conversation.busy = self.state == "writing" or self._due is not None
        self.composer.busy = self.conversation.busy or self._leaving

    def watch_state(self) -> None:
        """Show in classes and keys what can be done."""
        super().watch_state()
        self.line_up()

    # What the engine says

    @on(Bridge.EngineStarted)
    def _started(self) -> None:
        if not self._stepped_back:
            self._stepped_back = True
            self.setup.lower_priority()

    @on(Bridge.LoadProgressed)
    def _loading(self, event: Bridge.LoadProgressed) -> None:
        self.status.show_loading(event.event)

    @on(Bridge.PairLoaded)
    async def _loaded(self, event: Bridge.PairLoaded) -> None:
        self.chat.let_go()
        self.loaded = event.event
        self.status.show_loaded(event.event)
        await self.conversation.notes([*self.setup.shelf.notes(), *event.event.notes])
        self.state = "ready"
        self.run_worker(self.setup.shelf.used, thread=True, exit_on_error=False)
        self.seen()
        self._look_around()
        self.show_last()
        if self._due is not None:
            with self.telling():
                await self.ask(self._due)
        else:
            self.composer.send_next()

    @on(Bridge.CachesMoved)
    def _caches_moved(self, event: Bridge.CachesMoved) -> None:
        self.status.doing = event.what

    @on(Bridge.ReadAgain)
    async def _read_again(self, event: Bridge.ReadAgain) -> None:
        """Say once why a conversation that was kept is read again."""
        if event.conversation == self.chat.branch.id:
            await self.conversation.notes([event.reason])

    @on(Bridge.NotKept)
    def _not_kept_now(self, event: Bridge.NotKept) -> None:
        """Say once why what was read could not be kept; figures in it are no other reason."""
        too_large = event.kept.outcome == "too large"
        why = event.kept.outcome if too_large else event.kept.reason
        if why not in self._not_kept:
            self._not_kept.add(why)
            advice = " (kept_gb sets how much they may)" if too_large else ""
            self.notify(f"{event.kept.reason}{advice}", severity="warning", timeout=15, markup=False)

    @on(Bridge.PromptRead)
    def _reading(self, event: Bridge.PromptRead) -> None:
        """How far the prompt is read; what a draft catches up on later is no news."""
        if self.chat.writing is not None:
            self.chat.writing.open(event.event.opening)
            self.panel.live = event.live
            if not self.chat.writing.begun:
                self.status.show_reading(event.event)

    @on(Bridge.TextStreamed)
    async def _streamed(self, event: Bridge.TextStreamed) -> None:
        if self.chat.writing is None:
            return
        if self.chat.shows_writing:
            await self.conversation.write(event.text, event.trace, self.chat.writing.opening)
        self.status.show_writing(event.live)  # last, so that all is drawn at once
        self.panel.live = event.live
        try:
            self.chat.take(event.text, event.trace)
        except AppError as error:
            if not self._told:
                self.notify(str(error), severity="error", markup=False)
            self._told = True

    @on(Bridge.AnswerFinished)
    async def _finished(self, event: Bridge.AnswerFinished) -> None:
        if self.chat.writing is None:
            return
        self.status.show_finished(event.answer)
        self.panel.live = event.live
        shown = self.chat.shows_writing
        await self._end(partial(self.chat.finish, event.answer))
        if shown:
            await self.conversation.notes(event.answer.notes)
        self.seen()
        self.state = "ready"
        self.sidebar.reload()
        self.ring()

    @on(Bridge.RequestFailed)
    async def _failed(self, event: Bridge.RequestFailed) -> None:
        writing = self.state == "writing"
        if not writing:  # the pair before has made room for the one that could not be loaded
            self.loaded = None
            self.chat.let_go()
        await self._broken(str(event.error), "ready" if writing else "dead")

    @on(Bridge.EngineDied)
    async def _died(self, event: Bridge.EngineDied) -> None:
        self.loaded = None
        self.chat.let_go()
        await self._broken(f"{event.error} (F5)", "dead")

    async def _broken(self, why: str, state: State) -> None:
        """Keep what there is of an answer, or give its question back; say why."""
        self.seen()
        self.status.progress = None
        due, self._due = self._due, None
        elsewhere = self.chat.writing is not None and not self.chat.shows_writing
        if due is not None and due.branch is self.chat.branch:
            await self.take_back()
        await self._end(self.chat.break_off)
        self.state = state
        if elsewhere:
            self.notify(why, severity="error", timeout=15, markup=False)
        else:
            await self.conversation.notice(why, "error")

    @property
    def unsent(self) -> Unsent:
        """What is typed and not sent: for whoever builds on this."""
        return Unsent(self.composer.held)

    async def take_back(self) -> None:
        """A question had no answer: whoever builds on this may give it back."""

    def show_last(self) -> None:
        """Show the figures of the conversation that is looked at: for whoever builds on this."""
