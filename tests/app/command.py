"""Runs the `paceline` command as a user would: in a process of its own, on pipes or in a terminal."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.client import environment

PROGRAM = [sys.executable, "-P", "-c", "from app.cli import main; main()"]
FAKE = [
    sys.executable,
    "-P",
    "-c",
    "import engine.client; from tests.engine import host_fake; engine.client.command_line = host_fake.command_line;"
    "from app.cli import main; main()",
]
"""The same with an engine that does what the prompt says (tests.engine.host_fake); needs --demo."""
LONG = 60


def variables(home: Path, **more: str) -> dict[str, str]:
    """The environment of a user whose only folder is `home`."""
    kept = {name: value for name, value in environment().items() if not name.startswith(("PACELINE_", "COLUMNS"))}
    return {**kept, "PACELINE_HOME": str(home), "PACELINE_OFFLINE": "1", "TERM": "xterm-256color", **more}


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    errors: str


def paceline(home: Path, *arguments: str, stdin: bytes = b"", **more: str) -> Said:
    """Run the command on pipes."""
    done = subprocess.run(
        [*PROGRAM, *arguments], input=stdin, capture_output=True, env=variables(home, **more), timeout=LONG, check=False
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def in_terminal(
    command: list[str], env: Mapping[str, str], react: Callable[[bytes, int], bytes | None] = lambda _seen, _pid: None
) -> tuple[int, bytes]:
    """Run a command in a pseudo-terminal; the exit code and all bytes that reached the screen.

    `react` sees all bytes so far at each read and may give bytes to type.
    """
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, dict(env))
    seen = b""
    try:
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # how Linux tells that the other side is closed
                break
            if not piece:
                break
            seen += piece
            if typed := react(seen, pid):
                os.write(terminal, typed)
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), seen
