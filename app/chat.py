"""The conversation in use, the answer being written, and the engine that writes it: the chat without its looks.

Two invariants.  An answer belongs to the branch that it was asked on, whichever is looked at.  The engine's caches hold
one conversation; before they go over to another, what they have read is kept on the disk, under its own number, as long
as there is a conversation of this number.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as altered

from app import options
from app.branch import Branch
from app.bridge import Bridge
from app.caches import Caches
from app.errors import StoreError
from app.options import Options
from app.settings import Settings
from app.store.store import Store
from app.transcript import Entry
from app.writing import Writing
from engine.config import Message, Request, Speculation
from engine.events import TokenTrace
from engine.stats import Answer

KEEP_S = 0.7
"""Longest wait for the caches to be written when the window closes."""
REST_S = 60.0
"""The same when the models rest and the window stays."""


@dataclass(frozen=True)
class Asked:
    """An answer that is wanted: to the last message of a branch, or the rest of the last one."""

    branch: Branch
    go_on: bool = False
    once: Options | None = None
    """Settings for it alone."""


class Chat:
    """One window's chat; what touches the store raises StoreError."""

    def __init__(
        self,
        store: Store,
        bridge: Bridge,
        caches: Caches,
        settings: Settings,
        remember: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`remember` keeps how rounds are drafted for the next run."""
        self.store, self.bridge, self._caches = store, bridge, caches
        self.settings = settings
        self._remember = remember
        self.branch = Branch(store)
        """The one that is looked at."""
        self.writing: Writing | None = None
        """The answer in hand; None where there is none."""
        self._ended: tuple[Writing, Entry] | None = None
        """The one that has just ended, and is not kept yet."""
        self._held: Branch | None = None
        """The one that the engine's caches hold."""
        self._unkept = False
        """Whether the engine has been given something to read since they were kept."""
        self._ahead: Request | None = None
        """What was asked to be read ahead last, while nothing else was."""
        self._moving = asyncio.Lock()
        """Held while they go to or from the disk."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Moves that are under way."""

    @property
    def shows_writing(self) -> bool:
        """Whether the answer in hand belongs to the branch that is looked at."""
        return self.writing is not None and self.writing.branch is self.branch

    # The conversation

    def open(self, conversation: int | None) -> None:
        """Look at this conversation; None: at a new one."""
        if self.writing is not None and conversation == self.writing.branch.id:
            self.branch = self.writing.branch
        else:
            self.branch = Branch(self.store, None if conversation is None else self.store.get(conversation))

    def set_settings(self, settings: Settings) -> None:
        """Other settings hold from the next answer on."""
        self.settings = settings

    def forget(self, conversation: int) -> None:
        """Remove what was read of a conversation that is deleted."""
        if self._held is not None and self._held.id == conversation:
            self._unkept, self._ahead = True, None  # it is kept again if it comes back
        self._caches.remove([conversation])

    def clean_up(self) -> None:
        """Erase what was deleted before this run, and what was read of it; it may take seconds, so in a thread."""
        self.store.purge()
        self._caches.remove(number for number in self._caches.numbers() if not self.store.has(number))
        self._caches.trim()

    # How it is drafted

    @property
    def speculation(self) -> Speculation:
        """The setting that the next round has, on the branch that is looked at."""
        return self._speculation(self.branch.options)

    def _speculation(self, said: Options) -> Speculation:
        return said.over(self.settings).speculation

    async def set_speculation(self, speculation: Speculation) -> None:
        """Draft so from the next round on, also in the middle of an answer."""
        spec = str(speculation.length) if speculation.mode == "fixed" else speculation.mode
        if self.branch.options.spec is None:
            self.settings = replace(self.settings, spec=spec)
            self._remember(spec)
        else:
            self.branch.set_options(self.branch.system, replace(self.branch.options, spec=spec))
        if self.writing is not None:
            await self.bridge.set_speculation(speculation)

    # The answer

    def begin(self, asked: Asked) -> Request:
        """An answer begins, or the last one goes on; what the engine is to be asked."""
        branch = asked.branch
        request = self._request(branch, branch.messages(), asked.once)
        begun = branch.last if asked.go_on else None
        earlier = replace(begun.entry, trace=self.store.trace(begun.id)) if begun else None
        self.writing = Writing(branch, branch.grow(begun), earlier)
        return altered(request, go_on=asked.go_on, trace=True)

    async def answer(self, request: Request) -> bool:
        """Have it written; what comes of it is posted by the bridge.  Whether the engine was asked at all."""
        writing = self.writing
        if writing is None:
            return False
        await writing.unless_stopped(self._hold(writing.branch))
        if writing.stopped or writing is not self.writing:
            return False
        now = self._speculation(writing.branch.options)
        self._unkept, self._ahead = True, None
        await self.bridge.answer(altered(request, speculation=now))
        return True

    async def stop(self) -> None:
        """End the answer in hand; what there is of it comes as finished."""
        if self.writing is not None:
            self.writing.stop()
        await self.bridge.stop()

    def take(self, text: str, trace: Sequence[TokenTrace]) -> None:
        """More of it has come."""
        if self.writing is not None:
            self.writing.take(text, trace)

    def finish(self, answer: Answer) -> Entry | None:
        """It is done; the entry that it is, yet to be kept.  None where it was given up."""
        writing, self.writing = self.writing, None
        entry = writing.finish(answer) if writing else None
        self._ended = (writing, entry) if writing and entry else None
        return entry

    def break_off(self) -> Entry | None:
        """It ends where it is; the same.  None where nothing had come of it, too."""
        writing, self.writing = self.writing, None
        entry = writing.break_off() if writing else None
        self._ended = (writing, entry) if writing and entry else None
        return entry

    def keep_answer(self) -> Entry | None:
        """Keep the answer that ended last, unless that is done; as the store has it, which knows its versions."""
        if self._ended is None:
            return None
        writing, entry = self._ended
        number = writing.keep(entry)
        self._ended = None
        writing.branch.read()
        leaf = writing.branch.leaf
        if leaf is not None and leaf.id == number:
            return replace(leaf, trace=entry.trace)
        return replace(entry, id=number)

    def _request(self, branch: Branch, messages: tuple[Message, ...], once: Options | None = None) -> Request:
        said = (once or Options()).merge(branch.options)
        request = options.request(self.settings, said, messages, branch.system or self.settings.system or "")
        return altered(request, speculation=self._speculation(said))

    # The engine's caches

    async def prepare(self, typed: str) -> None:
        """Have the engine read what is sure of the next prompt, while it has nothing else to do."""
        branch = self.branch
        if self.writing is not None or not self.bridge.running:
            return
        await self._hold(branch)
        if self.writing is None and branch is self.branch:
            messages = (*branch.messages(), Message(role="user", content=typed))
            self._ahead = self._request(branch, messages)
            self._unkept = True
            await self.bridge.prepare(self._ahead)

    def _hold(self, branch: Branch) -> asyncio.Future[None]:
        """Let the caches hold this branch's conversation, as far as they were kept."""
        return self._through(self._go_over(branch))

    def _through(self, work: Coroutine[object, object, None]) -> asyncio.Future[None]:
        """Do this to its end, also where whoever waits for it no longer does: the engine does so, too."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    async def _go_over(self, branch: Branch) -> None:
        async with self._moving:
            held = self._held
            if held is branch or (held is not None and held.id is not None and held.id == branch.id):
                self._held = branch
            elif branch is (self.writing.branch if self.writing else self.branch):  # else nobody waits for it any more
                await self._write_down()
                self._held = None
                self._held = await self._taken_up(branch)

    async def _taken_up(self, branch: Branch) -> Branch | None:
        """This branch, once the caches hold what was kept of it; None where the engine cannot say what they hold."""
        self._unkept, number = False, branch.id or 0
        folder = self._caches.folder(number)
        if folder is None:
            return branch
        found = await self.bridge.resume(folder)
        self._caches.used(number)
        if found is None:
            return None
        if found.found and found.reason:
            self.bridge.post(Bridge.ReadAgain(number, found.reason))
        return branch

    async def keep(self) -> None:
        """Keep what the engine has read of the conversation that it holds, and goes on holding."""
        await self._through(self._keep())

    async def keep_aside(self) -> None:
        """The same, while nobody waits for anything; what was being read ahead goes on."""
        if self._unkept and self._held is not None and self._held.id is not None:
            ahead, self._ahead = self._ahead, None
            await self.keep()
            if ahead is not None and self.writing is None:
                self._unkept = True
                await self.bridge.prepare(ahead)

    async def _keep(self) -> None:
        async with self._moving:
            await self._write_down()

    async def _write_down(self) -> None:
        number = self._held.id if self._held else None
        folder = None if number is None else self._caches.folder(number)
        if number is None or folder is None or not self._unkept or not self._there(number):
            return
        self._unkept = False
        kept = await self.bridge.keep(folder, self._caches.budget)
        if not self._there(number):  # it was deleted meanwhile
            self._caches.remove([number])
            return
        self._caches.used(number)
        if kept is not None and kept.outcome in ("too large", "failed"):
            self.bridge.post(Bridge.NotKept(kept))

    def _there(self, conversation: int) -> bool:
        """Whether there is such a conversation, as far as can be told."""
        try:
            return self.store.has(conversation)
        except StoreError:
            return True

    def let_go(self) -> None:
        """The engine is gone, or has other models: its caches hold nothing that is known of."""
        self._held = self._ahead = None

    async def close(self, patience: float = KEEP_S) -> None:
        """Give the engine's memory back, and keep what it has read as far as that is done in so many seconds."""
        await asyncio.wait({self._through(self._stop_and_keep())}, timeout=patience)
        await self.bridge.close()
        self.let_go()

    async def _stop_and_keep(self) -> None:
        if self.writing is not None:
            await self.stop()
        await self.keep()
