"""The app's side of the engine's process: asyncio, one load or answer at a time, no numpy.

A process that dies makes every iterator raise HostDied, and nothing else; one that does not end is killed.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TypeVar

import engine
from engine import frames
from engine.config import EngineConfig, Request, Speculation
from engine.errors import ConfigError, EngineError, HostDied
from engine.events import AnswerEvent, Failed, Finished, Kept, Loaded, Loading, Reading, Resumed, Round, Tokens
from engine.frames import (
    Ask,
    Command,
    Count,
    Counted,
    Job,
    Keep,
    Load,
    Noted,
    Prepare,
    Quit,
    Remark,
    Reply,
    Resume,
    SetSpeculation,
    Stop,
)
from engine.hostlog import last_lines, open_log

PATIENCE = 1.3
"""Seconds that the process has to end by itself."""
CLOSED = "the engine is closed: start it again"


R = TypeVar("R", Kept, Resumed)
Last = type[Loaded] | type[Finished] | type[Kept] | type[Resumed]


def command_line(log: Path) -> list[str]:
    """How the host is started; no folder of the user's can shadow its packages."""
    return [sys.executable, "-P", "-m", "engine.host", str(log)]


def environment() -> dict[str, str]:
    """This environment without PYTHONPATH, which is the folder of this very package where it runs from a checkout."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    root = Path(engine.__file__).resolve().parents[1]
    if root.name not in ("site-packages", "dist-packages"):
        variables["PYTHONPATH"] = str(root)
    return variables


class EngineClient:
    """One engine process; use `start`, then `async with` or `close`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self._log = process, log
        self._replies: asyncio.Queue[Reply | None] = asyncio.Queue()
        """None marks the end."""
        self._one_job = asyncio.Lock()
        self._awaited: dict[type[Remark], deque[asyncio.Future[Remark | None]]] = {Noted: deque(), Counted: deque()}
        """One for each remark that the process owes, in order of its kind; None where it died."""
        self._owed: Last | None = None
        """How the job in hand ends, while it has not."""
        self._died: str | None = None
        self._closing = False
        self._reading = asyncio.create_task(self._read(), name="engine replies")

    @classmethod
    async def start(cls, log: Path, command: list[str] | None = None) -> "EngineClient":
        """Start the process; HostDied where it cannot be started.

        It inherits this thread's priority, and nobody can raise it again: start it before lowering that.
        """
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        written = open_log(log)  # where a process that fails before it takes its streams says why
        try:
            process = await asyncio.create_subprocess_exec(
                *(command or command_line(log)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=written,
                env=environment(),
                start_new_session=sys.platform != "win32",
                creationflags=flags,
            )
        except OSError as error:
            raise HostDied(f"the engine's process cannot be started: {error}") from error
        finally:
            os.close(written)
        return cls(process, log)

    async def __aenter__(self) -> "EngineClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def alive(self) -> bool:
        """Whether the process can still be asked."""
        return self._died is None and not self._closing

    async def load(self, config: EngineConfig) -> AsyncGenerator[Loading | Loaded, None]:
        """Load a pair in place of the one there is; Loaded comes last.

        Raises the EngineError that the engine met, HostDied where the process ends.  Leaving early stops the load.
        """
        async with aclosing(self._job(Load(config=config), Loaded)) as replies:
            async for reply in replies:
                if isinstance(reply, Loading | Loaded):
                    yield reply

    async def answer(self, request: Request) -> AsyncGenerator[AnswerEvent, None]:
        """Events of an answer; Finished comes last, after `stop` too.

        Raises the EngineError that the engine met, HostDied where the process ends.  Leaving early stops the
        answer; its rest is thrown away.
        """
        async with aclosing(self._job(Ask(request=request), Finished)) as replies:
            async for reply in replies:
                if isinstance(reply, Reading | Tokens | Round | Finished):
                    yield reply

    async def stop(self) -> None:
        """End the load or answer that is running; returns once the process has taken note, quietly if it died."""
        await self._note(Stop())

    async def set_speculation(self, speculation: Speculation) -> None:
        """Draft otherwise from the next round of the running answer on; returns as `stop` does."""
        await self._note(SetSpeculation(speculation=speculation))

    async def keep(self, folder: Path, most: int | None = None) -> Kept:
        """Have the caches written to a folder of the conversation's own, once what runs is done.

        What that takes, or why nothing was written, as where they take more than `most` bytes; raises as `load` does.
        """
        return await self._one(Keep(folder=folder, most=most), Kept)

    async def resume(self, folder: Path) -> Resumed:
        """Have the caches take up what was kept of a conversation, in place of what they hold; as `keep`.

        Where nothing was kept, or none of it can be taken up, they hold nothing; so ask whenever another conversation
        is gone over to, whether its folder exists or not.
        """
        return await self._one(Resume(folder=folder), Resumed)

    async def prepare(self, request: Request) -> None:
        """Have the prompt so far read while nothing else is to be done; returns as `stop` does.

        The last message is what is being typed; it may be empty, or missing.  A later one replaces it, and every other
        job ends it at once; while one waits or runs, this is for nothing.  The caches go over to this conversation, so
        ask for the one that is looked at.
        """
        with suppress(ConfigError):  # it cannot be sent, so it cannot be asked either: that will say so
            await self._note(Prepare(request=request))

    async def count(self, texts: list[str]) -> list[int]:
        """How many tokens of the target's each text has, whatever is running; EngineError, HostDied."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        remark = await self._note(Count(texts=clean))
        if not isinstance(remark, Counted):
            raise HostDied(self._died or CLOSED)
        if remark.failed:
            raise EngineError(remark.failed)
        return remark.counts

    async def memory(self) -> int:
        """Bytes of memory that the engine's process takes; 0 where it is gone."""
        import psutil  # type: ignore[import-untyped]

        try:
            process = psutil.Process(self._process.pid)
            # where Python is started by a launcher, the engine is a child of what was started
            return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
        except psutil.Error:
            return 0

    async def close(self) -> None:
        """End the process within two seconds, whatever it does; may be called twice."""
        self._closing = True
        self._write(Quit())
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._reading), PATIENCE)
        except TimeoutError:
            self._kill()
            await self._reading
        except asyncio.CancelledError:
            self._kill()
            raise

    async def _one(self, command: Keep | Resume, last: type[R]) -> R:
        """The one reply to a command."""
        async with aclosing(self._job(command, last)) as replies:
            async for reply in replies:
                if isinstance(reply, last):
                    return reply
        raise HostDied(self._died or CLOSED)

    async def _job(self, command: Job, last: Last) -> AsyncGenerator[Reply, None]:
        """Replies to one command up to `last`; whatever happens, none is left for the next command."""
        async with self._one_job:
            await self._drain()
            self._write(command)  # what cannot be sent is owed no reply
            self._owed = last
            try:
                while self._owed:
                    reply = await self._next()
                    if isinstance(reply, Failed):
                        raise self._error(reply)
                    yield reply
            finally:
                if self._owed:
                    self._say(Stop())
                    await self._drain()

    async def _drain(self) -> None:
        """Throw away what is still to come of a job that was left; where this is cancelled, the next job does it."""
        with suppress(HostDied):
            while self._owed:
                await self._next()

    async def _next(self) -> Reply:
        if self._died is not None and self._replies.empty():
            self._owed = None
            raise HostDied(self._died)
        reply = await self._replies.get()
        if reply is None:
            return await self._next()
        if self._owed and isinstance(reply, (self._owed, Failed)):
            self._owed = None
        return reply

    def _error(self, failed: Failed) -> EngineError:
        if failed.kind == "internal":
            return EngineError(f"{failed.message} ({self._log})")
        return frames.error_of(failed)

    async def _note(self, command: Stop | SetSpeculation | Prepare | Count) -> Remark | None:
        """What the process says to a command; None where it is gone."""
        return await self._say(command) if self.alive else None

    def _say(self, command: Stop | SetSpeculation | Prepare | Count) -> "asyncio.Future[Remark | None]":
        """Send what is answered at once; the answer to come."""
        frame = frames.pack(command)
        future: asyncio.Future[Remark | None] = asyncio.get_running_loop().create_future()
        self._awaited[Counted if isinstance(command, Count) else Noted].append(future)
        self._send(frame)
        return future

    def _write(self, command: Command) -> None:
        self._send(frames.pack(command))

    def _send(self, frame: bytes) -> None:
        """Send a frame; a process that is gone is noticed where its replies are read."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            with suppress(OSError):
                stdin.write(frame)

    async def _read(self) -> None:
        """Take replies until the stream ends, then find out how the process ended."""
        why = ""
        try:
            await self._take_replies()
        except asyncio.IncompleteReadError:
            pass
        except (frames.BadFrame, OSError) as error:
            why = f"it sent nonsense: {error}"
            self._kill()
        code = await self._process.wait()
        self._died = self._obituary(code, why)
        self._replies.put_nowait(None)
        for awaited in self._awaited.values():
            while awaited:
                self._settle(awaited, None)
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _take_replies(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while True:
            size = frames.length(await stdout.readexactly(frames.HEADER.size))
            reply = frames.unpack(await stdout.readexactly(size), frames.replies)
            if isinstance(reply, Remark):
                self._settle(self._awaited[type(reply)], reply)
            else:
                self._replies.put_nowait(reply)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    @staticmethod
    def _settle(awaited: "deque[asyncio.Future[Remark | None]]", remark: Remark | None) -> None:
        if awaited and not (future := awaited.popleft()).done():
            future.set_result(remark)

    def _obituary(self, code: int, why: str) -> str:
        if self._closing:
            return CLOSED
        lines = last_lines(self._log, self._process.pid)
        said = why or " | ".join(lines) or "it left no word"
        advice = "`paceline doctor` says why" if code == -getattr(signal, "SIGILL", 0) else f"the log is {self._log}"
        return f"the engine died ({how_it_ended(code)}): {said}; start it again; {advice}"


def how_it_ended(code: int) -> str:
    """The name of the signal, or the exit code (in hexadecimal where Windows means a status by it)."""
    if code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code:#x}" if code > 255 else f"exit code {code}"
