"""The conversation in use, the answer being written, and the engine that writes it: the chat without its looks.

Two invariants.  An answer belongs to the conversation that it was asked in, whichever is looked at.  The engine's
caches hold one conversation; before they go over to another, what they have read is kept on the disk.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from msgspec.structs import replace as altered

from app import options
from app.branch import Branch
from app.bridge import Bridge
from app.caches import Caches
from app.options import Options
from app.settings import Settings
from app.store.store import Store
from app.transcript import Entry
from app.writing import Writing
from engine.config import Message, Request, Speculation
from engine.events import TokenTrace
from engine.stats import Answer

KEEP_S = 1.0
"""Longest wait for the caches to be written when the window closes."""


class Chat:
    """One window's chat; what touches the store raises StoreError."""

    def __init__(self, store: Store, bridge: Bridge, caches: Caches, settings: Settings) -> None:
        self.store, self.bridge, self._caches = store, bridge, caches
        self.settings = settings
        self.speculation = settings.speculation
        """How the next round drafts, in every conversation."""
        self.branch = Branch(store)
        self.writing: Writing | None = None
        """The answer in hand; None where there is none."""
        self._ended: Writing | None = None
        """The one that has just ended, and is not kept yet."""
        self._held: int | None = None
        """The conversation that the engine's caches hold."""

    @property
    def shows_writing(self) -> bool:
        """Whether the answer in hand belongs to the conversation that is looked at."""
        return self.writing is not None and self.writing.conversation == self.branch.id

    # The conversation

    def open(self, conversation: int | None) -> None:
        """Look at this conversation; None: at a new one."""
        self.branch = Branch(self.store, None if conversation is None else self.store.get(conversation))
        leaf = self.branch.leaf
        if self.writing is not None and leaf is not None and leaf.id == self.writing.id:
            self.branch.cut(-1)  # it is shown as what it is: an answer being written

    def set_settings(self, settings: Settings) -> None:
        """Other settings hold from the next answer on."""
        self.settings = settings

    def forget(self, conversation: int) -> None:
        """Remove what was read of a conversation that is deleted."""
        if self._held == conversation:
            self._held = None
        self._caches.remove([conversation])

    def clean_up(self) -> None:
        """Erase what was deleted before this run, and what was read of it; it may take a second, so in a thread."""
        self._caches.remove(self.store.purge())
        self._caches.trim()

    # The answer

    def begin(self, *, go_on: bool = False, once: Options | None = None) -> Request:
        """An answer begins, or the last one goes on, `once` with settings for it alone; what to ask the engine."""
        request = self._request(self.branch.messages(), once)
        self.writing = self.branch.write(go_on=go_on)
        return altered(request, go_on=go_on, trace=True)

    async def answer(self, request: Request) -> None:
        """Have it written; what comes of it is posted by the bridge."""
        if self.writing is not None:
            await self._hold(self.writing.conversation)
            await self.bridge.answer(request)

    def take(self, text: str, trace: Sequence[TokenTrace]) -> None:
        """More of it has come."""
        if self.writing is not None:
            self.writing.take(text, trace)

    def finish(self, answer: Answer) -> Entry | None:
        """It is done; the entry that it is, yet to be kept.  None where it was given up."""
        writing, self.writing = self.writing, None
        self._ended = writing
        return writing.finish(answer) if writing else None

    def break_off(self) -> Entry | None:
        """It ends where it is; the same.  None where nothing had come of it, too."""
        writing, self.writing = self.writing, None
        self._ended = writing
        return writing.break_off() if writing else None

    def keep_answer(self, entry: Entry) -> Entry:
        """Keep the answer that has just ended; as the store has it, which knows its versions."""
        writing, self._ended = self._ended, None
        if writing is None:
            return entry
        number = writing.keep(entry)
        if writing.conversation == self.branch.id:
            self.branch.read()
            leaf = self.branch.leaf
            if leaf is not None and leaf.id == number:
                return replace(leaf, trace=entry.trace)
        return replace(entry, id=number)

    def _request(self, messages: tuple[Message, ...], once: Options | None = None) -> Request:
        said = (once or Options()).merge(self.branch.options)
        system = self.branch.system or self.settings.system or ""
        request = options.request(self.settings, said, messages, system)
        rule = request.speculation.rule
        mode = self.speculation if said.spec is None else request.speculation
        return altered(request, speculation=altered(mode, rule=rule))

    async def set_speculation(self, speculation: Speculation) -> None:
        """Draft so from the next round on, also in the middle of an answer."""
        self.speculation = speculation
        if self.writing is not None:
            await self.bridge.set_speculation(speculation)

    # The engine's caches

    async def prepare(self, typed: str) -> None:
        """Have the engine read what is sure of the next prompt, while it has nothing else to do."""
        if self.writing is not None or not self.bridge.running:
            return
        await self._hold(self.branch.id)
        messages = (*self.branch.messages(), Message(role="user", content=typed))
        await self.bridge.prepare(self._request(messages))

    async def _hold(self, conversation: int | None) -> None:
        """Let the caches hold this conversation, as far as they were kept."""
        if conversation == self._held:
            return
        await self.keep()
        self._held = conversation
        folder = None if conversation is None else self._caches.folder(conversation)
        if folder is not None and folder.exists():
            await self.bridge.resume(folder)
            self._caches.used(conversation or 0)

    async def keep(self) -> None:
        """Keep what the engine has read of the conversation that it holds."""
        held, self._held = self._held, None
        folder = None if held is None else self._caches.folder(held)
        if held is not None and folder is not None:
            await self.bridge.keep(folder)
            self._caches.used(held)

    async def close(self) -> None:
        """Give the engine's memory back, and keep what it has read as far as that is quick."""
        if self.writing is not None:
            await self.bridge.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.keep(), KEEP_S)
        await self.bridge.close()
