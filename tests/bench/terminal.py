"""The program in a terminal of a script's own: keys go in as a hand types them, and what it writes is listened to."""

import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
KEY_S = 0.045
"""Seconds between two keys."""
DONE = " won "
"""Stands on the screen from the end of an answer on, and in its receipt alone."""
START = "import sys; sys.path.insert(0, {root!r}); from app.cli import main; main()"


class Terminal:
    """The window in a home of its own, from its start to Ctrl+Q."""

    def __init__(self, home: str, options: Sequence[str], size: tuple[int, int] = (120, 34)) -> None:
        self._descriptor, inner = pty.openpty()
        termios.tcsetwinsize(inner, (size[1], size[0]))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START.format(root=str(ROOT)), *options],
            stdin=inner, stdout=inner, stderr=inner, cwd=home,
            env={**os.environ, "PACELINE_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )  # fmt: skip
        os.close(inner)
        self._began = time.monotonic()
        self._seen = ""
        self.heard: Callable[[float, str], object] = lambda _seconds, _text: None
        """Told what the program writes, and when since its start."""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.type("\x11")
        self.read(3.0)
        self._process.wait(10)
        os.close(self._descriptor)

    def read(self, seconds: float) -> None:
        """Listen for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._descriptor], [], [], left)[0]:
                return
            try:
                text = os.read(self._descriptor, 65536).decode("utf-8", "ignore")
            except OSError:  # how Linux says that the other side is closed
                return
            self._seen = (self._seen + text)[-50_000:]
            self.heard(time.monotonic() - self._began, text)

    def wait_for(self, mark: str) -> None:
        """Listen until this stands in what has come since the last call."""
        deadline = time.monotonic() + PATIENCE_S
        while mark not in self._seen:
            if time.monotonic() > deadline:
                raise SystemExit(f"{mark!r} never came")
            self.read(0.2)
        self._seen = ""

    def type(self, keys: str) -> None:
        """Press one key after another."""
        for key in keys:
            os.write(self._descriptor, key.encode())
            self.read(KEY_S)
