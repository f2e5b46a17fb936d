"""The host's loop in this process: races between its two threads, made to happen."""

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import frames, host
from engine.config import EngineConfig, Message, Request, Speculation
from engine.errors import CannotRewind, Interrupted
from engine.events import AnswerEvent, Failed, Finished, Loaded
from engine.frames import Ask, Count, Counted, Load, Noted, Prepare, Quit, SetSpeculation, Stop
from tests.engine.host_fake import FakeEngine


class Studious(FakeEngine):
    """Studies for ever, in passes that end when they are told to; fails in the first step if it is a `dunce`."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.inside, self.told = threading.Event(), threading.Event()
        self.studies = self.closed_studies = 0
        self.answering = False

    def study(self) -> Iterator[None]:
        self.studies += 1
        try:
            while True:
                self.inside.set()
                assert self.told.wait(30)
                self.told.clear()
                if self.dunce:
                    raise ZeroDivisionError("a bug")
                raise Interrupted("paused")
                yield
        finally:
            self.closed_studies += 1

    dunce = False

    def pause(self) -> None:
        assert not self.answering
        self.told.set()

    def answer(self, request: Request) -> Iterator[AnswerEvent]:
        self.answering = True
        assert self.closed_studies == self.studies
        yield from super().answer(request)
        self.answering = False


class Dunce(Studious):
    """Cannot study."""

    dunce = True


class Reader(FakeEngine):
    """Reads ahead in passes that end when the test lets them, or when they are told to."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.inside, self.go, self.told = threading.Event(), threading.Event(), threading.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.answered = False

    def prepare(self, request: Request) -> Iterator[None]:
        word = request.messages[-1].content
        self.begun.append(word)
        try:
            while True:
                self.inside.set()
                assert self.go.wait(30)
                self.go.clear()
                if self.told.is_set():
                    raise Interrupted("paused")
                yield
        finally:
            self.ended.append(word)

    def pause(self) -> None:
        self.told.set()
        self.go.set()

    def answer(self, request: Request) -> Iterator[AnswerEvent]:
        assert self.ended == self.begun
        yield from super().answer(request)
        self.answered = True


def ask(word: str) -> Request:
    return Request(messages=(Message(role="user", content=word),))


def config() -> EngineConfig:
    return EngineConfig(target=Path("fake"))


class Served:
    """A host in this process, with what it said."""

    def __init__(self) -> None:
        self.engine: FakeEngine | None = None
        self.out = io.BytesIO()
        self.abandoned: list[int] = []

    def load(self, config: EngineConfig, progress: object) -> FakeEngine:
        self.engine = FakeEngine(config)
        return self.engine

    def run(self, *commands: frames.AnyCommand) -> list[frames.Reply]:
        stream = io.BytesIO(b"".join(frames.pack(command) for command in commands))
        host.serve(stream, self.out, self.load, self.abandoned.append)
        return list(frames.read(io.BytesIO(self.out.getvalue()), frames.replies))


def until(out: io.BytesIO, said: bytes) -> None:
    """Wait until the host has said something."""
    while said not in out.getvalue():
        pass


def finish(served: host.Host, thread: threading.Thread, out: io.BytesIO) -> None:
    """Let the host come to an answer's end, then quit."""
    while thread.is_alive() and b"Finished" not in out.getvalue():
        pass
    served.quit()
    thread.join(30)


def test_the_end_of_the_stream_closes_the_engine() -> None:
    served = Served()
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream, os.fdopen(writer, "wb") as app:
        thread = threading.Thread(target=host.serve, args=(stream, served.out, served.load, served.abandoned.append))
        thread.start()
        app.write(frames.pack(Load(config=config())))
        app.flush()
        while not served.out.getvalue():
            pass
        app.close()
        thread.join(30)
        assert not thread.is_alive()
    assert served.engine is not None
    assert served.engine.closed
    assert served.abandoned == []


def test_commands_after_quit_are_not_heard() -> None:
    assert not any(isinstance(reply, Loaded | Failed) for reply in Served().run(Quit(), Load(config=config())))


def test_stop_and_speculation_are_noted_without_an_engine() -> None:
    replies = Served().run(Stop(), SetSpeculation(speculation=Speculation()), Quit())
    assert replies == [Noted(), Noted()]


def test_stop_for_an_answer_is_not_taken_for_the_load_before_it() -> None:
    class Eager(io.BytesIO):
        """Asks and stops in the very moment in which the load is told to be done."""

        def write(self, frame: object) -> int:
            assert isinstance(frame, bytes)
            if isinstance(frames.unpack(frame[4:], frames.replies), Loaded):
                served.take(Ask(request=ask("100000000")))
                served.take(Stop())
            return super().write(frame)

    out = Eager()
    served = host.Host(out, FakeEngine.load)
    served._writing = threading.RLock()  # type: ignore[assignment]
    served.take(Load(config=config()))
    thread = threading.Thread(target=served.work)
    thread.start()
    finish(served, thread, out)
    last = list(frames.read(io.BytesIO(out.getvalue()), frames.replies))[-1]
    assert isinstance(last, Finished)
    assert last.answer.finish_reason == "cancelled"
    assert len(last.answer.ids) < 10


@pytest.mark.parametrize("kind", [Studious, Dunce])
def test_while_there_is_nothing_to_do_the_engine_studies_and_any_command_ends_it(kind: type[Studious]) -> None:
    engine = kind(config())
    out = io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    thread = threading.Thread(target=served.work)
    thread.start()
    served.take(Load(config=config()))
    for number in range(1, 6):
        assert engine.inside.wait(30)
        engine.inside.clear()
        assert engine.studies == number
        served.take(Ask(request=ask("3")))
    assert engine.inside.wait(30)
    served.take(Quit())
    thread.join(30)
    assert not thread.is_alive()
    assert engine.closed
    assert engine.closed_studies == engine.studies
    replies = list(frames.read(io.BytesIO(out.getvalue()), frames.replies))
    assert sum(isinstance(reply, Finished) for reply in replies) == 5
    assert not any(isinstance(reply, Failed) for reply in replies)


def test_a_study_that_cannot_be_closed_does_not_end_the_host() -> None:
    class Stuck(FakeEngine):
        """Cannot put its caches back where a study is ended between two passes."""

        def study(self) -> Iterator[None]:
            try:
                while True:
                    served.take(Ask(request=ask("3")))
                    yield
            finally:
                raise CannotRewind("no")

    engine, out = Stuck(config()), io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    served.take(Load(config=config()))
    thread = threading.Thread(target=served.work)
    thread.start()
    finish(served, thread, out)
    assert engine.closed
    assert b"Finished" in out.getvalue()
    assert not any(isinstance(reply, Failed) for reply in frames.read(io.BytesIO(out.getvalue()), frames.replies))


def test_an_answer_ends_what_is_read_ahead_within_its_pass_and_more_typing_after_it() -> None:
    engine, out = Reader(config()), io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    thread = threading.Thread(target=served.work, daemon=True)
    thread.start()
    served.take(Load(config=config()))
    until(out, b"Loaded")
    for number, word in enumerate(("a", "ab", "abc"), start=1):
        served.take(Prepare(request=ask(word)))
        assert not engine.told.is_set()
        engine.go.set() if number > 1 else None
        while len(engine.begun) < number:
            assert engine.inside.wait(30)
    served.take(Ask(request=ask("3")))
    finish(served, thread, out)
    assert engine.told.is_set()
    assert engine.begun == ["a", "ab", "abc"]
    assert b"Failed" not in out.getvalue()


def test_what_was_to_be_read_ahead_is_left_where_jobs_wait() -> None:
    engine = Reader(config())
    served = host.Host(io.BytesIO(), lambda _config, _progress: engine)
    for command in (Load(config=config()), Prepare(request=ask("a")), Prepare(request=ask("b")), Ask(request=ask("3"))):
        served.take(command)
    served._jobs.put(None)
    served.work()
    assert served._done == 2
    assert engine.begun == []


def test_a_stop_is_for_the_answer_and_not_for_what_is_to_be_read_ahead_after_it() -> None:
    engine, out = FakeEngine(config()), io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    for command in (Load(config=config()), Ask(request=ask("block")), Prepare(request=ask("a"))):
        served.take(command)
    thread = threading.Thread(target=served.work)
    thread.start()
    served.take(Stop())
    finish(served, thread, out)
    last = list(frames.read(io.BytesIO(out.getvalue()), frames.replies))[-1]
    assert isinstance(last, Finished)
    assert last.answer.finish_reason == "cancelled"


def test_nothing_is_read_ahead_and_nothing_counted_without_a_model() -> None:
    out = io.BytesIO()
    served = host.Host(out, FakeEngine.load)
    served.take(Prepare(request=ask("a")))
    served.take(Count(texts=["a"]))
    served._texts.put(None)
    served.count()
    noted, counted = frames.read(io.BytesIO(out.getvalue()), frames.replies)
    assert noted == Noted()
    assert isinstance(counted, Counted)
    assert "load one first" in counted.failed


class Counter(FakeEngine):
    """Counts texts that take as long as the test wants."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.inside, self.go = threading.Event(), threading.Event()
        self.closed_under: list[bool] = []

    def count(self, texts: list[str]) -> list[int]:
        self.inside.set()
        assert self.go.wait(30)
        self.closed_under.append(self.closed)
        return super().count(texts)


def test_a_long_text_to_count_holds_up_no_stop_and_no_answer_and_the_engine_stays_open_for_it() -> None:
    engine, out = Counter(config()), io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    threads = [threading.Thread(target=work, daemon=True) for work in (served.work, served.count)]
    for thread in threads:
        thread.start()
    served.take(Load(config=config()))
    until(out, b"Loaded")
    served.take(Count(texts=["abc", "de"]))
    assert engine.inside.wait(30)
    served.take(Ask(request=ask("block")))
    served.take(Stop())
    until(out, b"Finished")
    assert b"Counted" not in out.getvalue()
    served.take(Load(config=config()))
    while served._engine is not None and not engine.closed:
        pass
    engine.go.set()
    until(out, b"Counted")
    served.take(Quit())
    for thread in threads:
        thread.join(30)
    replies = list(frames.read(io.BytesIO(out.getvalue()), frames.replies))
    assert [reply.finish_reason for reply in (r.answer for r in replies if isinstance(r, Finished))] == ["cancelled"]
    assert engine.closed
    assert engine.closed_under[0] is False


def test_what_is_to_be_read_ahead_is_dropped_while_an_answer_runs_and_not_once_it_has_ended() -> None:
    """It would take the new answer out of the caches again; who has seen the answer's end may ask again at once."""

    class Prompt(io.BytesIO):
        """Types on in the very moment in which the answer is told to be done."""

        def write(self, frame: object) -> int:
            assert isinstance(frame, bytes)
            if isinstance(frames.unpack(frame[4:], frames.replies), Finished):
                assert not engine.answered
                served.take(Prepare(request=ask("after")))
            return super().write(frame)

    engine, out = Reader(config()), Prompt()
    served = host.Host(out, lambda _config, _progress: engine)
    served._writing = threading.RLock()  # type: ignore[assignment]
    thread = threading.Thread(target=served.work, daemon=True)
    thread.start()
    served.take(Load(config=config()))
    until(out, b"Loaded")
    served.take(Ask(request=ask("block")))
    until(out, b"Reading")
    for word in ("b", "bu", "but"):
        served.take(Prepare(request=ask(word)))
        assert served._jobs.empty()
    served.take(Stop())
    assert engine.inside.wait(30)
    served.quit()
    thread.join(30)
    assert engine.begun == ["after"]


def test_of_what_is_to_be_read_ahead_the_latest_counts() -> None:
    """Also where the ones before it were not begun yet."""
    engine = Reader(config())
    out = io.BytesIO()
    served = host.Host(out, lambda _config, _progress: engine)
    served.take(Load(config=config()))
    served._jobs.put(None)
    served.work()
    served._engine = engine
    for word in ("a", "ab", "abc"):
        served.take(Prepare(request=ask(word)))
    first, *_ = (served._jobs.get() for _ in range(3))
    assert first is not None
    served._do(first)
    assert engine.begun == []
    assert isinstance(served._ahead, Prepare)
    assert served._ahead.request == ask("abc")


def test_no_study_is_begun_while_jobs_wait() -> None:
    engine = Studious(config())
    served = host.Host(io.BytesIO(), lambda _config, _progress: engine)
    for command in (Load(config=config()), Ask(request=ask("3")), Ask(request=ask("3"))):
        served.take(command)
    served._jobs.put(None)
    served.work()
    assert served._done == 3
    assert engine.studies == 0
