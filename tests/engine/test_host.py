"""The host and its client, over real processes with an engine that does what the prompt says."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from engine import frames, hostlog
from engine.client import EngineClient, environment, how_it_ended
from engine.config import EngineConfig, Message, Request, Speculation
from engine.errors import ConfigError, DecodeFailed, EngineError, HostDied, Interrupted, LoadFailed, PromptTooLong
from engine.events import AnswerEvent, Finished, Loaded, Loading, Reading, Round, Tokens
from engine.frames import Ask, Load
from tests.engine import host_fake

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and modes of POSIX")


def ask(word: str, **settings: object) -> Request:
    return Request(messages=(Message(role="user", content=word),), **settings)  # type: ignore[arg-type]


def config(name: str = "fake") -> EngineConfig:
    return EngineConfig(target=Path(name))


async def start(tmp_path: Path, target: str | None = "fake") -> EngineClient:
    log = tmp_path / "engine.log"
    client = await EngineClient.start(log, host_fake.command_line(log))
    if target:
        assert isinstance([event async for event in client.load(config(target))][-1], Loaded)
    return client


async def collect(client: EngineClient, word: str, seen: list[AnswerEvent] | None = None) -> list[AnswerEvent]:
    """All events of an answer; those before an error are in `seen`."""
    events = [] if seen is None else seen
    async for event in client.answer(ask(word)):
        events.append(event)
    return events


async def test_an_answer_comes_in_order(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        events = await collect(client, "3")
    assert [type(event) for event in events] == [Reading, *[Tokens, Round] * 3, Round, Finished]
    assert "".join(event.text for event in events if isinstance(event, Tokens)) == "0 1 2 "


async def test_loading_tells_how_far_it_is(tmp_path: Path) -> None:
    async with await start(tmp_path, target=None) as client:
        events = [event async for event in client.load(config())]
    assert [type(event) for event in events] == [Loading, Loaded]


async def test_a_request_that_cannot_be_sent_leaves_nothing_to_wait_for(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(ConfigError):
            await collect(client, "half a surrogate \ud800")
        assert isinstance((await asyncio.wait_for(collect(client, "3"), 30))[-1], Finished)


async def test_asking_before_loading_is_an_error(tmp_path: Path) -> None:
    async with await start(tmp_path, target=None) as client:
        with pytest.raises(ConfigError, match="load one first"):
            await collect(client, "1")


@pytest.mark.parametrize(
    ("word", "kind", "text"),
    [
        ("fault", DecodeFailed, "the pass failed: try again"),
        ("long", PromptTooLong, "100 tokens"),
        ("interrupted", Interrupted, "stopped"),
        ("bug", EngineError, "ZeroDivisionError"),
    ],
)
async def test_a_fault_ends_the_request_and_not_the_host(
    tmp_path: Path, word: str, kind: type[EngineError], text: str
) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(kind, match=text) as caught:
            await collect(client, word)
        assert type(caught.value) is kind
        assert isinstance((await collect(client, "1"))[-1], Finished)


async def test_the_trace_of_a_bug_is_in_the_log_and_the_error_names_it(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(EngineError, match=r"engine\.log") as caught:
            await collect(client, "bug")
    assert "Traceback" not in str(caught.value)
    assert "ZeroDivisionError: a bug" in (tmp_path / "engine.log").read_text()


async def test_a_failed_load_leaves_a_host_that_can_load(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(LoadFailed, match="pull it"):
            [event async for event in client.load(config("missing"))]
        with pytest.raises(ConfigError):
            await collect(client, "1")
        assert isinstance([event async for event in client.load(config())][-1], Loaded)
        assert isinstance((await collect(client, "1"))[-1], Finished)


async def test_stop_reaches_an_engine_that_is_blocked_in_a_pass(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        events: list[AnswerEvent] = []
        async for event in client.answer(ask("block")):
            events.append(event)
            if isinstance(event, Tokens) and event.ids == [2]:
                await client.stop()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.answer.finish_reason == "cancelled"
    assert last.answer.ids == [0, 1, 2]


async def test_stop_is_noted_by_a_host_whose_engine_hears_nothing(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        running = asyncio.create_task(collect(client, "deaf"))
        await asyncio.wait_for(client.stop(), 30)
        assert not running.done()
        await client.close()
        with pytest.raises(HostDied):
            await running


async def test_stop_without_an_answer_does_nothing(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        await client.stop()
        last = (await collect(client, "3"))[-1]
        assert isinstance(last, Finished)
        assert last.answer.finish_reason == "length"


async def test_fifty_starts_and_stops_on_one_host(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        for number in range(50):
            events = []
            async for event in client.answer(ask("block" if number % 2 else "100000")):
                if not events:
                    await client.stop()
                events.append(event)
            last = events[-1]
            assert isinstance(last, Finished)
            assert last.answer.finish_reason == "cancelled"
        assert [event.text for event in await collect(client, "2") if isinstance(event, Tokens)] == ["0 ", "1 "]


async def test_leaving_an_answer_stops_it_and_leaves_nothing_for_the_next(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        for _ in range(5):
            async with aclosing(client.answer(ask("block"))) as events:
                async for _event in events:
                    break
            assert len([event for event in await collect(client, "2") if isinstance(event, Tokens)]) == 2


async def test_a_cancelled_task_stops_its_answer(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        first = asyncio.Event()

        async def consume() -> None:
            async for _ in client.answer(ask("block")):
                first.set()

        task = asyncio.create_task(consume())
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await collect(client, "0")) == 3


async def test_a_drain_that_is_cancelled_too_is_made_up_for(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        events = client.answer(ask("100000"))
        await anext(events)
        closing = asyncio.create_task(events.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        assert [event.ids for event in await collect(client, "1") if isinstance(event, Tokens)] == [[0]]


async def test_leaving_a_load_stops_it(tmp_path: Path) -> None:
    async with await start(tmp_path, target=None) as client:
        async with aclosing(client.load(config("slow"))) as events:
            async for _ in events:
                break
        assert isinstance([event async for event in client.load(config())][-1], Loaded)


async def test_speculation_changes_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        rounds: list[Round] = []
        async for event in client.answer(ask("respec", speculation=Speculation(mode="off"))):
            if isinstance(event, Round):
                rounds.append(event)
                if len(rounds) == 3:
                    await client.set_speculation(Speculation(mode="fixed", length=5))
    assert rounds[0].speculation.mode == "off"
    assert rounds[-1].speculation == Speculation(mode="fixed", length=5)


async def test_caches_are_kept_and_taken_up_in_any_folder(tmp_path: Path) -> None:
    folder = Path(os.fsdecode("кэш\udcff"))
    async with await start(tmp_path) as client:
        assert (await client.keep(folder)).bytes == 4
        found = await client.resume(folder)
        assert (found.target, found.draft, found.reason) == (4, None, ascii(folder.name))
        with pytest.raises(DecodeFailed, match="ask again"):
            await client.keep(Path("fault"))
        assert len(await collect(client, "2")) == 7


async def test_what_is_to_be_kept_waits_for_the_answer(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        running = asyncio.create_task(collect(client, "block"))
        keeping = asyncio.create_task(client.keep(Path("here")))
        await client.stop()
        while not running.done():
            assert not keeping.done()
            await client.stop()
        assert (await keeping).bytes == 4


async def test_tokens_are_counted_while_an_answer_runs(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        running = asyncio.create_task(collect(client, "block"))
        assert await client.count(["", "abc", "\ud83d!"]) == [0, 3, 2]
        assert not running.done()
        with pytest.raises(EngineError, match="ZeroDivisionError"):
            await client.count(["bug"])
        await client.stop()
        await running


async def test_what_is_said_at_once_goes_to_who_asked(tmp_path: Path) -> None:
    """Also after an answer was left, which stops it: nobody waits to hear that this was noted."""
    async with await start(tmp_path) as client:
        for _ in range(3):
            events = client.answer(ask("block"))
            await anext(events)
            _, counts, _, _ = await asyncio.gather(
                events.aclose(), client.count(["abc"]), client.stop(), client.prepare(ask("x"))
            )
            assert counts == [3]


async def test_what_is_to_be_prepared_is_noted_at_once(tmp_path: Path) -> None:
    async with await start(tmp_path, target=None) as client:
        await client.prepare(ask("before anything is loaded"))
        await client.prepare(ask("half a surrogate \ud800"))
        with pytest.raises(EngineError, match="load one first"):
            await client.count(["a"])
        with pytest.raises(ConfigError, match="load one first"):
            await client.keep(tmp_path)


async def test_the_memory_of_the_process(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        assert 2**22 < await client.memory() < 2**32
    assert await client.memory() == 0


async def test_a_dead_host_keeps_nothing_and_counts_nothing(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(HostDied):
            await collect(client, "exit")
        for asking in (client.keep(tmp_path), client.resume(tmp_path), client.count(["a"])):
            with pytest.raises(HostDied, match="exit code 7"):
                await asking
        await client.prepare(ask("x"))
        assert await client.memory() == 0


async def test_what_the_library_prints_is_in_the_log_and_nowhere_else(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        assert isinstance((await collect(client, "noise"))[-1], Finished)
    assert (tmp_path / "engine.log").read_text().count("native noise\n") == 1000


@posix
async def test_a_dead_host_is_reported_with_its_signal_and_last_words(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        seen: list[AnswerEvent] = []
        with pytest.raises(HostDied, match=r"SIGSEGV.*GGML_ASSERT\(n > 0\) failed.*start it again") as caught:
            await collect(client, "die", seen)
        assert "\n" not in str(caught.value)
        assert len([event for event in seen if isinstance(event, Tokens)]) == 3
        assert not client.alive
        with pytest.raises(HostDied):
            await collect(client, "1")
        await client.stop()
        await client.set_speculation(Speculation())


async def test_a_host_that_exits_is_reported_with_its_code(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        with pytest.raises(HostDied, match=r"exit code 7\): out of luck"):
            await collect(client, "exit")


async def test_the_words_of_an_earlier_host_are_not_quoted(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text(f"{hostlog.HEADLINE}1, x\nold words\n")
    client = await EngineClient.start(log, [sys.executable, "-c", "pass"])
    with pytest.raises(HostDied, match="left no word"):
        await collect(client, "1")
    await client.close()


async def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(HostDied, match="cannot be started"):
        await EngineClient.start(tmp_path / "log", [str(tmp_path / "nothing")])


async def test_a_host_that_cannot_begin_says_why_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    async with await EngineClient.start(log, [sys.executable, "-P", "-c", "import no_such_module"]) as client:
        with pytest.raises(HostDied, match=r"exit code 1\).*engine\.log"):
            await collect(client, "1")
    assert "No module named 'no_such_module'" in log.read_text()


async def test_a_process_that_will_not_end_is_killed(tmp_path: Path) -> None:
    program = "import threading; threading.Event().wait(60)"
    client = await EngineClient.start(tmp_path / "log", [sys.executable, "-c", program])
    await asyncio.wait_for(client.close(), 30)
    assert client._process.returncode not in (None, 0)


async def test_a_process_that_dies_of_stop_has_noted_it(tmp_path: Path) -> None:
    client = await EngineClient.start(tmp_path / "log", [sys.executable, "-c", "import sys; sys.stdin.read(1)"])
    await asyncio.wait_for(client.stop(), 30)
    assert not client.alive
    await client.close()


async def test_nonsense_on_the_pipe_ends_the_host(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('hello, I am no frame'); sys.stdout.flush(); sys.stdin.read()"
    client = await EngineClient.start(tmp_path / "log", [sys.executable, "-c", program])
    with pytest.raises(HostDied, match="nonsense"):
        await collect(client, "1")
    await client.close()


@pytest.mark.parametrize("word", ["block", "deaf", "100000"])
async def test_quit_in_the_middle_ends_the_process(tmp_path: Path, word: str) -> None:
    client = await start(tmp_path)
    running = asyncio.create_task(collect(client, word))
    await client.stop() if word == "deaf" else None
    await asyncio.wait_for(client.close(), 30)
    await asyncio.gather(running, return_exceptions=True)
    assert client._process.returncode is not None
    await client.close()


async def test_quit_in_the_middle_of_a_load_ends_the_process(tmp_path: Path) -> None:
    client = await start(tmp_path, target=None)

    async def load() -> None:
        async for _ in client.load(config("deaf")):
            pass

    loading = asyncio.create_task(load())
    await asyncio.wait_for(client.close(), 30)
    with pytest.raises(HostDied):
        await loading


@posix
@pytest.mark.parametrize(("word", "code"), [("deaf", 1), ("block", 0)])
def test_the_host_ends_when_the_app_is_killed(tmp_path: Path, word: str, code: int) -> None:
    command = host_fake.command_line(tmp_path / "engine.log")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(frames.pack(Load(config=config())) + frames.pack(Ask(request=ask(word))))
        process.stdin.flush()
        for reply in frames.read(process.stdout, frames.replies):
            if isinstance(reply, Tokens):
                break
        process.stdin.close()
        process.stdout.read()
        assert process.wait(30) == code


@posix
def test_the_host_ends_when_nobody_reads(tmp_path: Path) -> None:
    command = host_fake.command_line(tmp_path / "engine.log")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(frames.pack(Load(config=config())))
        process.stdin.flush()
        assert process.wait(30) == 0


@posix
async def test_ctrl_c_in_the_terminal_does_not_reach_the_host(tmp_path: Path) -> None:
    async with await start(tmp_path) as client:
        assert os.getsid(client._process.pid) != os.getsid(0)
        os.kill(client._process.pid, signal.SIGINT)
        assert isinstance((await collect(client, "1"))[-1], Finished)


def test_codes_are_named() -> None:
    assert how_it_ended(3) == "exit code 3"
    assert how_it_ended(0xC0000005) == "exit code 0xc0000005"
    assert how_it_ended(-200) == "exit code -200"


def test_neither_side_imports_numpy_or_a_library() -> None:
    program = (
        "import sys, engine.client, engine.host;"
        "print([m for m in ('numpy', 'llama_cpp', 'torch', 'textual', 'app', 'models') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"
