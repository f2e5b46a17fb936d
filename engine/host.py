"""The engine in a process of its own: `python -P -m engine.host LOG`, spoken to in frames over its standard streams.

Frames run over private copies of descriptors 0 and 1, made before anything else; descriptors 1 and 2 then are the
log, so nothing that a native library prints can reach the app.  The main thread loads and answers; a second one reads
commands, so that Stop acts while the first is inside a native pass, and so that the process never outlives the app; a
third one counts tokens, so that a long text holds up neither.
"""

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from engine import frames
from engine.config import EngineConfig, Request
from engine.errors import ConfigError, EngineError, Interrupted
from engine.events import Failed, Finished, Loading
from engine.frames import (
    AnyCommand,
    Ask,
    Count,
    Counted,
    Job,
    Keep,
    Load,
    Noted,
    Prepare,
    Quit,
    Resume,
    SetSpeculation,
    Stop,
)
from engine.hosted import Hosted
from engine.hostlog import headline, open_log

GRACE = 1.0
"""Seconds in which the main thread must come to an end once the app wants to quit."""


Loader = Callable[[EngineConfig, Callable[[Loading], None]], Hosted]


class AppGone(Exception):
    """Nobody reads what the host writes."""


def load_engine(config: EngineConfig, progress: Callable[[Loading], None]) -> Hosted:
    """The real engine; numpy and the native libraries are imported here, not before."""
    from engine.engine import Engine

    return Engine.load(config, progress)


class Host:
    """Takes commands, does one job at a time, and outlives its faults."""

    def __init__(self, out: BinaryIO, load: Loader) -> None:
        self._out, self._load = out, load
        self._writing = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._texts: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        """To be counted; None ends that."""
        self._counting = threading.Lock()
        """Held while the engine counts a text: it must not be closed meanwhile."""
        self._turn = threading.Lock()
        """Guards all below: what the reading thread says to a job must not be lost while the job begins."""
        self._engine: Hosted | None = None
        self._taken = 0
        self._done = 0
        """Jobs taken in and finished; the next command counts for the last one taken in."""
        self._ending = False
        """Whether the last reply to the job in hand is on its way: what comes from now on may answer to it."""
        self._ahead: Prepare | None = None
        """What is to be read ahead; the latest one alone, and none while a job waits or runs."""
        self._answering = self._idling = False
        """Whether the main thread is in an answer, or in what ends as soon as there is a job."""
        self._early: list[tuple[int, Stop | SetSpeculation]] = []
        """What was said to jobs that are not finished, with their number: they may not have heard it."""
        self._quitting = False

    def take(self, command: AnyCommand) -> None:
        """Act on one command; called by the reading thread."""
        match command:
            case Load() | Ask() | Keep() | Resume():
                with self._turn:
                    self._taken += 1
                    self._ahead = None
                    self._jobs.put(command)
                    self._rouse()
            case Prepare():
                self._prepare(command)
                self._remark(Noted())
            case Stop() | SetSpeculation():
                with self._turn:
                    if self._taken > self._done:
                        self._early.append((self._taken, command))
                    if self._taken == self._done + 1:
                        self._tell(command)
                self._remark(Noted())
            case Count():
                self._texts.put(command.texts)
            case Quit():
                self.quit()

    def _prepare(self, command: Prepare) -> None:
        """A job that nobody waits for: no command counts for it, and the pass that runs may end.

        After another job it would take what that has read out of the caches again.
        """
        with self._turn:
            if self._taken <= self._done + self._ending:
                self._ahead = command
                self._jobs.put(command)

    def quit(self) -> None:
        """End the job in hand and take no other."""
        self._texts.put(None)
        with self._turn:
            self._quitting = True
            self._tell(Stop())
            self._jobs.put(None)
            self._rouse()

    def work(self) -> None:
        """Do jobs until there will be no more; called by the main thread."""
        try:
            while (job := self._next()) is not None and not self._quitting:
                self._guarded(job)
                if not isinstance(job, Prepare):
                    self._finished()
        except AppGone:
            pass
        finally:
            self._drop()

    def _finished(self) -> None:
        with self._turn:
            self._done += 1
            self._ending = False
            self._early = [early for early in self._early if early[0] > self._done]

    def _remark(self, remark: frames.Remark) -> None:
        """What the reading thread says; where nobody reads it, the main thread finds out."""
        with suppress(AppGone):
            self._send(remark)

    def count(self) -> None:
        """Count what is asked for until there will be no more; called by a thread of its own."""
        while (texts := self._texts.get()) is not None and not self._quitting:
            self._remark(self._count(texts))

    def _count(self, texts: list[str]) -> Counted:
        counts: list[int] = []
        try:
            for text in texts:
                with self._counting:
                    counts += self._loaded().count([text])
            return Counted(counts=counts)
        except EngineError as error:
            return Counted(counts=[], failed=str(error))
        except Exception as error:
            return Counted(counts=[], failed=_unexpected(error))

    def _next(self) -> Job | None:
        """The next job; until there is one the engine studies."""
        self._idle(lambda engine: engine.study())
        return self._jobs.get()

    def _idle(self, work: Callable[[Hosted], Iterator[None]]) -> None:
        """Do what is to be done only as long as there is no job."""
        with self._turn:
            engine = self._engine
            self._idling = engine is not None and self._jobs.empty()
        if engine is not None and self._idling:
            try:
                self._steps(work(engine))
            finally:
                with self._turn:
                    self._idling = False

    def _steps(self, steps: Iterator[None]) -> None:
        try:
            try:
                while self._jobs.empty() and next(steps, True) is None:
                    pass
            finally:
                if isinstance(steps, Generator):
                    steps.close()  # which puts caches back, and may fail as well
        except Interrupted:
            pass
        except Exception:  # it was nobody's wish: the log has it, and answers go on
            traceback.print_exc()

    def _rouse(self) -> None:
        """End an idle pass, as there is a job; needs `_turn`."""
        if self._idling and self._engine is not None:
            self._engine.pause()

    def _tell(self, command: Stop | SetSpeculation) -> None:
        """Pass a command to a running answer; needs `_turn`."""
        if self._engine is None or not self._answering:
            return
        if isinstance(command, Stop):
            self._engine.cancel()
        else:
            self._engine.set_speculation(command.speculation)

    def _guarded(self, job: Job) -> None:
        try:
            self._do(job)
        except EngineError as error:
            self._end(frames.failed(error))
        except AppGone:
            raise
        except Exception as error:
            self._end(Failed(kind="internal", message=_unexpected(error)))

    def _do(self, job: Job) -> None:
        match job:
            case Load():
                self._begin(job.config)
            case Ask():
                self._answer(job.request)
            case Keep():
                self._end(self._loaded().keep(job.folder, job.most))
            case Resume():
                self._end(self._loaded().resume(job.folder))
            case Prepare():
                if job is self._ahead:
                    self._idle(lambda engine: engine.prepare(job.request))

    def _loaded(self) -> Hosted:
        if self._engine is None:
            raise ConfigError("no model is loaded: load one first")
        return self._engine

    def _begin(self, config: EngineConfig) -> None:
        self._drop()
        engine = self._load(config, self._progress)
        with self._turn:
            self._engine = engine
        self._end(engine.loaded)

    def _progress(self, loading: Loading) -> None:
        self._send(loading)
        with self._turn:
            stopped = any(isinstance(command, Stop) for command in self._said())
        if stopped:
            raise Interrupted("loading was stopped")

    def _answer(self, request: Request) -> None:
        events = self._loaded().answer(request)
        with self._turn:
            self._answering = True
        try:
            for number, event in enumerate(events):
                if number == 0:
                    self._tell_again()
                if isinstance(event, Finished):
                    self._hush()  # a Stop from here on must not reach the next answer
                    self._end(event)
                else:
                    self._send(event)
        finally:
            self._hush()
            if isinstance(events, Generator):
                events.close()

    def _hush(self) -> None:
        with self._turn:
            self._answering = False

    def _tell_again(self) -> None:
        """After the first event, when the engine surely listens: what was said before it did."""
        with self._turn:
            for command in self._said():
                self._tell(command)

    def _said(self) -> list[Stop | SetSpeculation]:
        """What was said to the running job; needs `_turn`."""
        said = [command for number, command in self._early if number == self._done + 1]
        return [*said, Stop()] if self._quitting else said

    def _drop(self) -> None:
        with self._turn:
            engine, self._engine = self._engine, None
        if engine is not None:
            with self._counting:
                engine.close()

    def _end(self, reply: frames.Reply) -> None:
        """Send the last reply to a job."""
        with self._turn:
            self._ending = True
        self._send(reply)

    def _send(self, reply: frames.Reply) -> None:
        with self._writing:
            try:
                self._out.write(frames.pack(reply))
                self._out.flush()
            except (OSError, ValueError) as error:
                raise AppGone from error


def _unexpected(error: Exception) -> str:
    """What a user is told of a bug; the log has it all."""
    traceback.print_exception(error)
    return f"unexpected {type(error).__name__} in the engine: see its log"


def serve(
    stream_in: BinaryIO,
    stream_out: BinaryIO,
    load: Loader,
    abandon: Callable[[int], object] = os._exit,
) -> None:
    """Serve until Quit or the end of `stream_in`; a main thread that does not end within GRACE is abandoned."""
    host = Host(stream_out, load)
    over = threading.Event()

    def listen() -> None:
        try:
            for command in frames.read(stream_in, frames.commands):
                host.take(command)
                if isinstance(command, Quit):
                    break
        except (frames.BadFrame, OSError, ValueError):
            traceback.print_exc()
        host.quit()
        if not over.wait(GRACE):
            abandon(1)

    threading.Thread(target=listen, name="commands", daemon=True).start()
    threading.Thread(target=host.count, name="counts", daemon=True).start()
    try:
        host.work()
    finally:
        over.set()


def take_streams(log: Path) -> tuple[BinaryIO, BinaryIO]:
    """Private copies of descriptors 0 and 1 for frames; 0 becomes the null device, 1 and 2 the log."""
    stream_in, stream_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null, written = os.open(os.devnull, os.O_RDONLY), open_log(log)
    for source, target in ((null, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(written)
    os.write(2, headline())
    return stream_in, stream_out


def main() -> None:
    """Entry of the process; the one argument is the log's path."""
    stream_in, stream_out = take_streams(Path(sys.argv[1]))
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal: the app decides
    os.environ["GGML_NO_BACKTRACE"] = "1"
    serve(stream_in, stream_out, load_engine)
    sys.stderr.flush()
    os._exit(0)  # native exit handlers may wait for threads that never end


if __name__ == "__main__":
    main()
