import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app import cli, paths
from app.output import JsonLines, Raw, Terminal, figures
from engine import client
from tests.app.command import FAKE, PROGRAM, in_terminal, paceline, variables
from tests.engine import host_fake
from tests.engine.host_fake import answer_of
from tests.tiny_gguf import write_llama

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")
Run = Callable[..., tuple[int, str, str]]

KEYS = {
    "": "text ids finish_reason stop_kind target draft settings cache timings speculation verdict forgotten",
    "settings": "seed temperature exact kv flash_attention threads device n_ctx",
    "cache": "prompt_tokens target draft",
    "timings": "load_s ttft_s prompt_s prompt_tps decode_s decode_tps",
    "speculation": "mode length width_limit rule rounds drafted accepted acceptance_rate acceptance_per_test "
    "mean_tokens_per_round by_source by_position plan",
    "verdict": "kind threshold near_ties",
}
"""The keys that other programs read."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `ask` in this process, with an engine that does what the prompt says."""
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.setattr(client, "command_line", host_fake.command_line)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["ask", "--demo", *arguments])
        return (code, *capfd.readouterr())

    return go


def test_turns_past_the_context_say_what_is_no_longer_seen(tmp_path: Path) -> None:
    model = write_llama(tmp_path / "model.gguf")
    (tmp_path / "turns.json").write_text(json.dumps(["tell me of all the trains in the world"] * 6))
    asked = ["--turns", str(tmp_path / "turns.json"), "--ctx", "256", "--max-tokens", "20", "--threads", "1"]
    said = paceline(tmp_path / "home", "ask", "--target", str(model), "--json", *asked)
    answers = [json.loads(line) for line in said.out.splitlines()]
    gone = [answer["forgotten"] for answer in answers]
    assert (len(gone), gone[0]) == (6, 0)
    assert gone == sorted(gone)
    assert gone[-1] >= 2
    told = [line for line in said.errors.splitlines() if "no longer sees" in line]
    assert len(told) == len(set(gone)) - 1
    assert f"the context of 256 tokens is full: the model no longer sees the first {gone[-1] // 2} turns" in told[-1]
    assert all(
        told[-1].removeprefix("paceline: ") in answer["notes"] for answer in answers if answer["forgotten"] == gone[-1]
    )


def test_a_pipe_gets_the_text_and_a_line_end(run: Run) -> None:
    assert run("3") == (0, "0 1 2 \n", "paceline: a note\n")


def test_json_is_one_object_a_line_and_nothing_else(run: Run) -> None:
    code, out, _ = run("3", "--json", "--seed", "7")
    assert (code, out.count("\n")) == (0, 1)
    answer = json.loads(out)
    assert (answer["text"], answer["ids"], answer["settings"]["seed"]) == ("0 1 2 ", [0, 1, 2], 7)


def test_the_json_has_the_keys_that_others_read(run: Run) -> None:
    answer = json.loads(run("1", "--json")[1])
    for name, keys in KEYS.items():
        part = answer[name] if name else answer
        assert set(keys.split()) <= part.keys()
    assert answer["cache"]["target"].keys() == {"reused", "read"}
    assert answer["speculation"]["acceptance_rate"] is None


@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        (["3"], b"", "3"),
        (["-"], b"4", "4"),
        (["-"], "\ufeffü\r\n".encode(), "ü\r\n"),
        (["-"], b"\xff", "\N{REPLACEMENT CHARACTER}"),
        (["say", "-"], b"stdin", "say\n\nstdin"),
        (["-", "say"], b"stdin", "say\n\nstdin"),
        (["--", "-"], b"stdin", "-"),
        (["--", "--json"], b"", "--json"),
        (["\udcff"], b"", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_the_prompt_comes_first_and_then_stdin(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], stdin: bytes, prompt: str
) -> None:
    asked: list[str] = []
    real = client.EngineClient.answer

    def answer(self: client.EngineClient, request: client.Request) -> object:
        asked.append(request.messages[-1].content)
        return real(self, request)

    monkeypatch.setattr(client.EngineClient, "answer", answer)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    assert run(*arguments)[0] == 0
    assert asked == [prompt]


def test_turns_are_one_conversation(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[client.Request] = []
    real = client.EngineClient.answer

    def answer(self: client.EngineClient, request: client.Request) -> object:
        asked.append(request)
        return real(self, request)

    monkeypatch.setattr(client.EngineClient, "answer", answer)
    (tmp_path / "turns.json").write_text('["2", "1"]')
    code, out, errors = run("--turns", str(tmp_path / "turns.json"), "--system", "be brief")
    assert (code, out) == (0, "0 1 \n\n0 \n")
    assert errors.count("a note") == 1
    assert [(message.role, message.content, message.ids) for message in asked[1].messages] == [
        ("system", "be brief", None),
        ("user", "2", None),
        ("assistant", "0 1 ", (0, 1)),
        ("user", "1", None),
    ]
    assert run("--turns", str(tmp_path / "turns.json"), "--json")[1].count("\n") == 2


@pytest.mark.parametrize(
    ("word", "part"),
    [("fault", "the pass failed: try again"), ("bug", "engine.log"), ("exit", "exit code 7): out of luck")],
)
def test_an_answer_that_fails_keeps_what_came_and_says_why(run: Run, word: str, part: str) -> None:
    code, out, errors = run(word)
    assert (code, out) == (1, "0 1 2 \n")
    assert errors.splitlines()[-1].startswith("paceline: ")
    assert part in errors.splitlines()[-1]
    assert len(errors.splitlines()) == 2
    assert run(word, "--json")[1] == ""


def test_native_noise_reaches_neither_stream(run: Run) -> None:
    assert run("noise") == (0, "0 1 2 \n", "paceline: a note\n")
    assert (paths.log_dir() / "engine.log").read_text().count("native noise") == 1000


def test_a_number_too_large_for_the_engine_is_wrong_usage(run: Run) -> None:
    code, _, errors = run("3", "--max-tokens", str(2**70))
    assert code == 2
    assert "too large" in errors


def interrupted(home: Path, *arguments: str) -> tuple[int, bytes, bytes]:
    """Run ask, and send Ctrl-C once the answer has begun (with --json: once the pair is loaded)."""
    command = [*FAKE, "ask", "--demo", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables(home), start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        begun = process.stdout.read(6) if "--json" not in arguments else process.stderr.readline()[:0]
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    return process.returncode, begun + out, errors


@posix
def test_ctrl_c_stops_the_answer_and_keeps_it(tmp_path: Path) -> None:
    assert interrupted(tmp_path, "block") == (130, b"0 1 2 \n", b"paceline: a note\n")


@posix
def test_ctrl_c_prints_the_json_of_what_was_answered(tmp_path: Path) -> None:
    code, out, errors = interrupted(tmp_path, "100000000", "--json")
    assert (code, errors) == (130, b"")
    if out:  # nothing, where Ctrl-C came between the load and the answer
        assert json.loads(out)["finish_reason"] == "cancelled"


@posix
def test_ctrl_c_ends_all_turns(tmp_path: Path) -> None:
    (tmp_path / "turns.json").write_text('["block", "3"]')
    code, out, _ = interrupted(tmp_path, "--turns", str(tmp_path / "turns.json"))
    assert (code, out) == (130, b"0 1 2 \n")


@posix
def test_a_second_ctrl_c_ends_an_engine_that_hears_nothing(tmp_path: Path) -> None:
    command = [*FAKE, "ask", "--demo", "deaf"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables(tmp_path), start_new_session=True
    ) as process:
        assert process.stdout is not None
        begun = process.stdout.read(6)
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert begun + out == b"0 1 2 \n"
    assert b"Traceback" not in errors


def test_the_demo_answers_through_the_real_engine(tmp_path: Path) -> None:
    said = paceline(tmp_path, "ask", "hi", "--demo", "--max-tokens", "8", "--temperature", "0", "--json")
    assert (said.code, said.errors) == (0, "")
    answer = json.loads(said.out)
    assert (answer["finish_reason"], len(answer["ids"])) == ("length", 8)
    for name, keys in KEYS.items():
        assert set(keys.split()) <= (answer[name] if name else answer).keys()


@posix
@pytest.mark.parametrize("history", ["true", "false"])
def test_answers_are_kept_for_later_ones_unless_history_is_off(tmp_path: Path, history: str) -> None:
    model = write_llama(tmp_path / "model.gguf")
    options = ["--ctx", "256", "--max-tokens", "40", "--threads", "1", "--temperature", "0"]
    said = paceline(
        tmp_path / "home", "ask", "hi", "--target", str(model), "--json", *options, PACELINE_HISTORY=history
    )
    length = len(json.loads(said.out)["ids"])
    kept = list((tmp_path / "home").glob("data/answers/*/*"))
    assert length >= 16
    assert [file.name for file in kept] == (["answers"] if history == "true" else [])
    assert all(file.stat().st_mode & 0o077 == 0 and file.stat().st_size > 4 * length for file in kept)


def test_no_token_is_an_answer(tmp_path: Path) -> None:
    said = paceline(tmp_path, "ask", "hi", "--demo", "--max-tokens", "0")
    assert (said.code, said.out.strip(), said.errors) == (0, "", "")
    answer = json.loads(paceline(tmp_path, "ask", "hi", "--demo", "--max-tokens", "0", "--json").out)
    assert (answer["ids"], answer["finish_reason"]) == ([], "length")


@posix
def test_a_terminal_gets_a_line_of_figures(tmp_path: Path) -> None:
    code, seen = in_terminal([*FAKE, "ask", "--demo", "3"], variables(tmp_path))
    assert code == 0
    assert b"0 1 2 \r\n\x1b[2m12.5 tok/s" in seen
    assert b"read \xc2\xb7 nothing to draft\x1b[0m\r\n" in seen
    plain = in_terminal([*FAKE, "ask", "--demo", "3"], variables(tmp_path, NO_COLOR="1"))[1]
    assert b"\x1b" not in plain


@posix
def test_ctrl_c_in_a_terminal_reaches_the_app_alone(tmp_path: Path) -> None:
    typed: list[bytes] = []

    def react(seen: bytes, pid: int) -> bytes | None:
        if b"0 1 2 " in seen and not typed:
            typed.append(b"\x03")
            return typed[0]
        return None

    code, seen = in_terminal([*FAKE, "ask", "--demo", "block"], variables(tmp_path), react)
    assert code == 130
    assert b"0 1 2 " in seen
    assert b"tok/s" in seen
    assert b"Traceback" not in seen


@posix
@pytest.mark.parametrize("noise", ["noise", "die"])
def test_nothing_native_reaches_the_terminal(tmp_path: Path, noise: str) -> None:
    code, seen = in_terminal([*FAKE, "ask", "--demo", noise], variables(tmp_path, NO_COLOR="1"))
    assert code == (0 if noise == "noise" else 1)
    assert b"native noise" not in seen
    assert seen.count(b"GGML_ASSERT") == (0 if noise == "noise" else 1)
    assert b"SIGSEGV" in seen or noise == "noise"


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True

    def shown(self) -> bytes:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue()


HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2J\x1b[6n\x1bP1$r\x9b31m\x9d0;x\x07\x1b[?1003h\r\b\0"


def test_a_terminal_never_gets_a_control_character() -> None:
    screen, errors = Screen(), Screen()
    out = Terminal(screen, errors)
    for character in f"a\tb\n{HOSTILE}":
        out.text(character)
    out.end(answer_of([1]))
    shown = screen.shown().decode()
    assert shown.startswith("a\tb\n␛]52;c;aGk=␇␛[2J")
    assert not set(shown) & (set(map(chr, range(0x20))) - {"\t", "\n"} | set(map(chr, range(0x7F, 0xA0))))


def test_a_pipe_gets_the_text_untouched() -> None:
    stream = io.BytesIO()
    Raw(stream).text(HOSTILE)
    assert stream.getvalue() == HOSTILE.encode()


def test_a_terminal_of_few_characters_gets_question_marks() -> None:
    screen = Screen("ascii")
    Terminal(screen, Screen()).text("für 😀")
    assert screen.shown() == b"f?r ?"


@pytest.mark.parametrize(
    ("answers", "shown"),
    [
        ([["a", "b"]], "ab\n"),
        ([["a\n"]], "a\n"),
        ([[]], "\n"),
        ([["a"], ["b"]], "a\n\nb\n"),
        ([["a\n"], ["", "b\n"]], "a\n\nb\n"),
    ],
)
def test_answers_end_their_line_and_are_parted_by_an_empty_one(answers: list[list[str]], shown: str) -> None:
    stream = io.BytesIO()
    out = Raw(stream)
    for pieces in answers:
        for piece in pieces:
            out.text(piece)
        out.end(answer_of([]))
    out.close()
    assert stream.getvalue() == shown.encode()


def test_each_burst_is_flushed() -> None:
    class Counting(io.BytesIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    stream = Counting()
    out = Raw(stream)
    for number in range(5):
        out.text("x")
        assert stream.flushes == number + 1


def test_a_line_left_open_is_ended() -> None:
    stream = io.BytesIO()
    out = Raw(stream)
    out.text("half")
    out.close()
    out.close()
    assert stream.getvalue() == b"half\n"


def test_json_is_written_at_the_end_alone() -> None:
    stream = io.BytesIO()
    out = JsonLines(stream)
    out.text("x")
    assert stream.getvalue() == b""
    out.end(answer_of([1, 2]))
    out.close()
    assert json.loads(stream.getvalue())["ids"] == [1, 2]


def test_figures_leave_out_what_is_not_known() -> None:
    assert figures(answer_of([1])) == "12.5 tok/s · 1.0 tokens a round · 0 reused, 1 read · nothing to draft"


def test_streaming_is_not_held_back_by_the_pipe(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*FAKE, "ask", "--demo", "block"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables(tmp_path)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == b"0 1 2 "
        process.kill()


def test_the_app_imports_no_numpy(tmp_path: Path) -> None:
    program = (
        "import sys; from app.cli import run; run(['ask', 'hi', '--demo', '--max-tokens', '1']);"
        "print([m for m in ('numpy', 'llama_cpp', 'torch', 'textual') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, env=variables(tmp_path), check=True
    )
    assert done.stdout.splitlines()[-1] == b"[]"


def test_nothing_connects_to_anything(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "def hook(event, values):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'urllib.Request'):\n"
        "        with open(os.environ['SEEN'], 'a') as file:\n"
        "            file.write(f'{event} {values}\\n')\n"
        "sys.addaudithook(hook)\n"
        "open(os.environ['SEEN'] + f'.{os.getpid()}', 'w').close()\n"
    )
    model = write_llama(tmp_path / "model.gguf")
    env = variables(tmp_path / "home", SEEN=str(tmp_path / "seen"))
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    passed_on = "import os, engine.client; engine.client.environment = lambda: dict(os.environ); "
    command = [*PROGRAM[:-1], passed_on + PROGRAM[-1], "ask", "hi", "--target", str(model), "--max-tokens", "2"]
    done = subprocess.run(command, capture_output=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(tmp_path.glob("seen.*"))) >= 2  # the app and the engine were watched
    assert not (tmp_path / "seen").exists()
