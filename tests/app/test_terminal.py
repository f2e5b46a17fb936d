"""The program in a real terminal, on the demo model: it opens, answers, ends, and leaves the terminal as it was."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
fcntl = pytest.importorskip("fcntl", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
LEFT = [b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l"]
"""What puts a terminal back: the first screen, the cursor, no mouse, no bracketed paste."""


class Terminal:
    """A program in a terminal of 80 by 24."""

    def __init__(self, home: Path, *options: str, **variables: str) -> None:
        self.descriptor, inner = pty.openpty()
        termios.tcsetwinsize(inner, (24, 80))
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from app.cli import main; main()", *options],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=ROOT,
            env={**os.environ, "PACELINE_HOME": str(home), "TERM": "xterm-256color", **variables},
            start_new_session=True,
        )
        os.close(inner)
        self.seen = b""

    def read_until(self, mark: bytes) -> None:
        """Read what the program writes until the mark is in it."""
        deadline = time.monotonic() + PATIENCE_S
        while mark not in self.seen:
            if not select.select([self.descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"never saw {mark!r}: {self.seen[-2000:]!r}")
            self.seen += os.read(self.descriptor, 65536)

    def write(self, data: bytes) -> None:
        os.write(self.descriptor, data)

    def end(self) -> int:
        """Read to the end; the exit code."""
        try:
            while data := os.read(self.descriptor, 65536):
                self.seen += data
        except OSError:  # how Linux says that the other side is closed
            pass
        return self.process.wait(PATIENCE_S)


def test_a_model_that_is_not_there_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    one = Terminal(tmp_path, "--target", str(tmp_path / "none.gguf"))
    assert one.end() == 1
    os.close(one.descriptor)
    line = one.seen.rsplit(b"\x1b", 1)[-1]
    assert b"none.gguf" in line
    assert b"Traceback" not in one.seen
    assert all(code in one.seen for code in LEFT)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    one = Terminal(tmp_path, "--demo")
    try:
        one.read_until(b"demo-draft")
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        os.close(one.descriptor)


def test_a_question_is_answered_and_ctrl_q_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.write(b"hello\r")
    terminal.read_until(b"scripted demo")
    terminal.write(b"\x11")
    assert terminal.end() == 0
    assert all(code in terminal.seen for code in LEFT)
    assert b"Traceback" not in terminal.seen


@pytest.mark.parametrize("variables", [{"TERM": "xterm"}, {"TERM": "vt100"}, {"TERM": "screen", "NO_COLOR": "1"}])
def test_it_works_on_lesser_terminals(tmp_path: Path, variables: dict[str, str]) -> None:
    one = Terminal(tmp_path, "--demo", **variables)
    try:
        one.read_until(b"demo-draft")
        one.write(b"hello\r")
        one.read_until(b"scripted demo")
        one.write(b"\x11")
        assert one.end() == 0
        assert b"Traceback" not in one.seen
        if "NO_COLOR" in variables:
            assert b";2;" not in one.seen  # no colour of 24 bits
    finally:
        one.process.kill()
        one.process.wait()
        os.close(one.descriptor)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_in_mid_answer_leaves_the_terminal_as_it_was(terminal: Terminal, name: str) -> None:
    terminal.write(b"hello\r")
    terminal.read_until(b"scripted demo")
    terminal.process.send_signal(getattr(signal, name))
    assert terminal.end() == 0
    assert all(code in terminal.seen for code in LEFT)
    assert b"Traceback" not in terminal.seen


def test_the_program_ends_with_its_terminal(tmp_path: Path) -> None:
    """Nobody reads any more, so all that is written blocks in the end: a signal must end the program all the same."""
    one = Terminal(tmp_path, "--demo")
    try:
        one.read_until(b"demo-draft")
        one.write(b"hello\r")
        unread, before = unread_bytes(one.descriptor), -1
        while unread != before:  # until the terminal takes no more
            before = unread
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.process.wait(1.0)
            unread = unread_bytes(one.descriptor)
        one.process.send_signal(signal.SIGHUP)
        assert one.process.wait(PATIENCE_S) == 0
    finally:
        one.process.kill()
        one.process.wait()
        os.close(one.descriptor)


def unread_bytes(descriptor: int) -> int:
    """What the program has written and nobody has read."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def test_an_unbracketed_paste_of_lines_is_not_sent(terminal: Terminal) -> None:
    terminal.write(b"one\rtwo\rthree\r")
    terminal.read_until(b"three")
    terminal.write(b"\x11")
    assert terminal.end() == 0
    assert b"scripted demo" not in terminal.seen
