"""The one place where the window meets the engine: awaits its events and posts them on as messages.

Messages with new text come no faster than `app.pace` allows, however many rounds there are; what is posted is in
order, and the last message of an answer carries the whole of it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from textual.message import Message
from textual.message_pump import MessagePump

from app.live import Live, Meter
from app.pace import Pace
from engine.config import EngineConfig, Request, Speculation
from engine.errors import EngineError, HostDied
from engine.events import AnswerEvent, Finished, Kept, Loaded, Loading, Reading, Resumed, Round, TokenTrace
from engine.stats import Answer

CLOSE_S = 1.2
"""Longest wait for the engine when the window closes; it kills its process a little before."""
SLOW_S = 0.3
"""What the caches do is said once it has taken so long."""
KEEPING = "Keeping what was read, for the next time…"
TAKING_UP = "Taking up what was read of this conversation…"


class Client(Protocol):
    """The face of `engine.client.EngineClient`."""

    def load(self, config: EngineConfig) -> AsyncIterator[Loading | Loaded]:
        """Load a pair."""
        ...

    def answer(self, request: Request) -> AsyncIterator[AnswerEvent]:
        """Answer a conversation."""
        ...

    async def stop(self) -> None:
        """End what is running."""
        ...

    async def set_speculation(self, speculation: Speculation) -> None:
        """Draft otherwise from the next round on."""
        ...

    async def keep(self, folder: Path, most: int | None = None) -> Kept:
        """Write the caches to a folder, unless they take more bytes than `most`."""
        ...

    async def resume(self, folder: Path) -> Resumed:
        """Take up caches that were kept."""
        ...

    async def prepare(self, request: Request) -> None:
        """Read this while nothing else is to be done."""
        ...

    async def count(self, texts: list[str]) -> list[int]:
        """Tokens of each text."""
        ...

    async def memory(self) -> int:
        """Bytes that the engine holds."""
        ...

    async def close(self) -> None:
        """End the engine's process."""
        ...


Starter = Callable[[Path], Awaitable[Client]]
"""Starts an engine whose native output goes to the file named."""


async def start_engine(log: Path) -> Client:
    """Start the real engine in a process of its own."""
    from engine.client import EngineClient

    return await EngineClient.start(log)


class Bridge:
    """One engine and the pump that its messages go to."""

    @dataclass
    class EngineStarted(Message):
        """The engine's process runs; nothing is loaded yet."""

    @dataclass
    class LoadProgressed(Message):
        """A part of the load is done."""

        event: Loading

    @dataclass
    class PairLoaded(Message):
        """The pair is ready."""

        event: Loaded

    @dataclass
    class PromptRead(Message):
        """A part of the prompt has been read."""

        event: Reading
        live: Live

    @dataclass
    class TextStreamed(Message):
        """New text of the answer, where each token of it came from, and the figures with it."""

        text: str
        trace: list[TokenTrace]
        live: Live

    @dataclass
    class AnswerFinished(Message):
        """The answer is whole, or stopped."""

        answer: Answer
        live: Live

    @dataclass
    class CachesMoved(Message):
        """They go to or from the disk, and that takes a while; empty: no longer."""

        what: str

    @dataclass
    class ReadAgain(Message):
        """What was kept of a conversation cannot be taken up."""

        conversation: int
        reason: str

    @dataclass
    class NotKept(Message):
        """What was read could not be kept."""

        kept: Kept

    @dataclass
    class RequestFailed(Message):
        """A load or an answer failed; the engine goes on."""

        error: EngineError

    @dataclass
    class EngineDied(Message):
        """The engine's process is gone."""

        error: HostDied

    def __init__(self, pump: MessagePump, start: Starter, log: Path, pace: Pace, meter: Meter | None = None) -> None:
        self._pump, self._start, self._log, self._pace = pump, start, log, pace
        self._client: Client | None = None
        self.meter = meter or Meter()
        """The figures of all that this window's engines answered."""
        self._text: list[str] = []
        self._trace: list[TokenTrace] = []
        self._due: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        self._closing: asyncio.Task[None] | None = None

    async def load(self, config: EngineConfig) -> None:
        """Load a pair, starting the engine first where there is none."""
        if self._closing is not None:
            await asyncio.wait({self._closing})  # two engines at once would need the memory twice
        try:
            if self._client is None:
                self._client = await self._start(self._log)
                self._pump.post_message(self.EngineStarted())
            async for event in self._client.load(config):
                if isinstance(event, Loaded):
                    self._pump.post_message(self.PairLoaded(event))
                else:
                    self._pump.post_message(self.LoadProgressed(event))
        except EngineError as error:
            await self._fail(error)

    async def answer(self, request: Request) -> None:
        """Answer a conversation; text and figures are posted at most once a frame."""
        if self._client is None:
            self._pump.post_message(self.EngineDied(HostDied("the engine is not running: restart it")))
            return
        self.meter.begin()
        try:
            async for event in self._client.answer(request):
                self._take(event)
        except EngineError as error:
            self._flush()
            await self._fail(error)

    def _take(self, event: AnswerEvent) -> None:
        if isinstance(event, Finished):
            self._flush()
            self._pump.post_message(self.AnswerFinished(event.answer, self.meter.finish(event.answer)))
        elif isinstance(event, Reading):
            self._pump.post_message(self.PromptRead(event, self.meter.read(event)))
        elif isinstance(event, Round):
            self.meter.add(event)
            self._plan_flush()
        else:
            self.meter.take(event)
            self._text.append(event.text)
            self._trace += event.trace
            self._plan_flush()

    def _plan_flush(self) -> None:
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._last + self._pace.interval_s), self._flush)

    def _flush(self) -> None:
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        text, trace = "".join(self._text), self._trace
        self._text, self._trace = [], []
        self._pace.updated()
        self._last = asyncio.get_running_loop().time()
        self._pump.post_message(self.TextStreamed(text, trace, self.meter.live))

    def forget(self) -> None:
        """Drop what was taken in and not posted yet: its answer has been given up."""
        self._text, self._trace = [], []
        if self._due is not None:
            self._due.cancel()
            self._due = None

    async def stop(self) -> None:
        """End the answer that is being written; what it has so far comes as finished."""
        if self._client is not None:
            with suppress(EngineError):
                await self._client.stop()

    async def set_speculation(self, speculation: Speculation) -> None:
        """Draft otherwise from the next round on, without a reload."""
        if self._client is not None:
            with suppress(EngineError):
                await self._client.set_speculation(speculation)

    @property
    def running(self) -> bool:
        """Whether there is an engine."""
        return self._client is not None

    async def keep(self, folder: Path, most: int) -> Kept | None:
        """Write the caches of the conversation that the engine holds to its folder; None as `resume`."""
        if self._client is not None:
            with suppress(EngineError), self._saying(KEEPING):
                return await self._client.keep(folder, most)
        return None

    async def resume(self, folder: Path) -> Resumed | None:
        """Have the engine hold the conversation of this folder; None where there is no engine, or it failed."""
        if self._client is not None:
            with suppress(EngineError), self._saying(TAKING_UP):
                return await self._client.resume(folder)
        return None

    @contextmanager
    def _saying(self, what: str) -> Iterator[None]:
        """Say what is done, where it takes long, and that it is done."""
        said = False

        def say() -> None:
            nonlocal said
            said = True
            self.post(self.CachesMoved(what))

        due = asyncio.get_running_loop().call_later(SLOW_S, say)
        try:
            yield
        finally:
            due.cancel()
            if said:
                self.post(self.CachesMoved(""))

    def post(self, message: Message) -> None:
        """Have the window hear of something."""
        self._pump.post_message(message)

    async def prepare(self, request: Request) -> None:
        """Have what is sure of the next prompt read."""
        if self._client is not None:
            with suppress(EngineError):
                await self._client.prepare(request)

    async def count(self, text: str) -> int:
        """Tokens of a text; EngineError where there is no engine."""
        if self._client is None:
            raise HostDied("the engine is not running: restart it")
        return (await self._client.count([text]))[0]

    async def memory(self) -> int | None:
        """Bytes that the engine holds; None where there is none."""
        return await self._client.memory() if self._client is not None else None

    async def close(self) -> None:
        """End the engine; returns within `CLOSE_S` whatever it is doing."""
        client, self._client = self._client, None
        if client is not None:
            self._closing = asyncio.create_task(self._end(client))
            await asyncio.wait({self._closing})

    @staticmethod
    async def _end(client: Client) -> None:
        with suppress(EngineError, TimeoutError):
            await asyncio.wait_for(client.close(), CLOSE_S)

    async def _fail(self, error: EngineError) -> None:
        if isinstance(error, HostDied):
            await self.close()
            self._pump.post_message(self.EngineDied(error))
        else:
            self._pump.post_message(self.RequestFailed(error))
