"""A conversation of `paceline ask`: one engine, one answer a turn, and Ctrl-C that keeps what was answered."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

from app import paths
from app.choice import Choice
from app.commands.talk import Talk
from app.errors import INTERRUPTED
from app.output import CLEAR, Output, styled
from engine.client import EngineClient
from engine.config import Request
from engine.detokenize import sanitize
from engine.events import Finished, Loading, Reading, Tokens

Starter = Callable[[Path], Awaitable[EngineClient]]


class Asking:
    """Answers turns one after the other."""

    def __init__(self, talk: Talk, choice: Choice, out: Output, start: Starter = EngineClient.start) -> None:
        self._talk, self._choice, self._out, self._start = talk, choice, out, start
        self._told: set[str] = set()
        self._interrupted = asyncio.Event()
        self._answering = False

    async def run(self, turns: list[str]) -> int:
        """Answer all turns; the exit code.  Raises what the engine raises."""
        log = paths.log_dir() / "engine.log"
        with self._interruptible():
            try:
                async with await self._start(log) as client:
                    await self._load(client)
                    await self._answer_all(client, turns)
            except asyncio.CancelledError:
                if not self._interrupted.is_set():
                    raise
            finally:
                self._progress("")
                self._out.close()
        return INTERRUPTED if self._interrupted.is_set() else 0

    async def _load(self, client: EngineClient) -> None:
        async with aclosing(client.load(self._choice.config)) as events:
            async for event in events:
                if isinstance(event, Loading):
                    self._progress(f"{event.what} {event.share:.0%}")
                else:
                    self._progress("")
                    self._tell([*self._choice.notes, *event.notes])
        self._choice.remember()

    async def _answer_all(self, client: EngineClient, turns: list[str]) -> None:
        self._answering = True
        stopping = asyncio.create_task(self._stop(client))
        try:
            for turn in turns:
                await self._answer(client, self._talk.ask(turn))
                if self._interrupted.is_set():
                    break
        finally:
            stopping.cancel()

    async def _answer(self, client: EngineClient, request: Request) -> None:
        async with aclosing(client.answer(request)) as events:
            async for event in events:
                if isinstance(event, Reading):
                    self._talk.open(event.opening)
                elif isinstance(event, Tokens):
                    self._out.text(event.text)
                    self._talk.hear(event.text)
                elif isinstance(event, Finished):
                    self._talk.end(event.answer)
                    self._out.end(event.answer)
                    self._tell(event.answer.notes)
                    return
        raise AssertionError("an answer ends with Finished or an error")

    async def _stop(self, client: EngineClient) -> None:
        await self._interrupted.wait()
        await client.stop()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C stops an answer and keeps it; before there is one, or the second time, it ends everything."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            if self._interrupted.is_set() or not self._answering:
                task.cancel()
            self._interrupted.set()

        before = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(interrupt))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _progress(self, text: str) -> None:
        """Show how far the load is, where a person looks on."""
        if not self._answering and styled(sys.stderr):
            sys.stderr.write(CLEAR + sanitize(text))
            sys.stderr.flush()

    def _tell(self, notes: list[str]) -> None:
        """Say each note once."""
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                print(f"paceline: {sanitize(note)}", file=sys.stderr)
