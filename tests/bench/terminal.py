"""The program in a terminal of a script's own: keys go in as a hand types them, and what it writes is listened to.

What the window draws are changes, so a phrase on the screen need not come as one; whether an answer is whole is told
by the conversations that the program keeps.
"""

import codecs
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.store.store import Store
from engine.stats import Answer

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 600.0
KEY_S = 0.045
"""Seconds between two keys."""
QUIET_S = 1.0
"""Seconds without anything drawn after which nothing is being written."""
READY = "0 / "
"""How full the context is once the models are loaded: the line it stands in is drawn whole."""
START = "import sys; sys.path.insert(0, {root!r}); from app.cli import main; main()"


class Terminal:
    """The window in a home of its own, from its start to Ctrl+Q."""

    def __init__(self, home: str, options: Sequence[str], size: tuple[int, int], fps: int = 120) -> None:
        self._descriptor, inner = pty.openpty()
        termios.tcsetwinsize(inner, (size[1], size[0]))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", START.format(root=str(ROOT)), *options],
            stdin=inner, stdout=inner, stderr=inner, cwd=home,
            env={
                **os.environ, "PACELINE_HOME": home, "TERM": "xterm-256color", "COLORTERM": "truecolor",
                "TEXTUAL_FPS": str(fps),
            },
        )  # fmt: skip
        os.close(inner)
        self._conversations = Path(home) / "data" / "conversations.db"
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._began = time.monotonic()
        self._seen = ""
        self.heard: Callable[[float, str], object] = lambda _seconds, _text: None
        """Told what the program writes, and when since its start."""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.type("\x11")
            self.read(3.0)
            self._process.wait(10)
        finally:
            self._process.kill()
            os.close(self._descriptor)

    def read(self, seconds: float) -> None:
        """Listen for this long, or until the program ends."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._take(left):
            pass

    def _take(self, seconds: float) -> bool:
        """Take in what comes next within this long; whether anything came."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        try:
            text = self._decoder.decode(os.read(self._descriptor, 65536))
        except OSError:  # how Linux says that the other side is closed
            return False
        self._seen = (self._seen + text)[-50_000:]
        self.heard(time.monotonic() - self._began, text)
        return True

    def ready(self) -> None:
        """Listen until the models are loaded."""
        self._until(lambda: READY in self._seen, "the models were never loaded")

    def answered(self, question: str) -> Answer:
        """Listen until there is a whole answer to the last question, which this is.

        The conversations are looked at while nothing is drawn, so that the writing of an answer is not disturbed.
        """
        found: list[Answer] = []

        def there() -> bool:
            found[:] = [] if self._take(QUIET_S) else self._newest(question)
            return bool(found)

        self._until(there, "the window never kept an answer")
        return found[0]

    def _newest(self, question: str) -> list[Answer]:
        """The whole answer to this question, read as another program would."""
        store = Store.open(self._conversations)
        try:
            paths = [store.get(summary.id).path for summary in store.summaries(1)]
        finally:
            store.close()
        ends = [(path[-2].entry, path[-1].entry) for path in paths if len(path) > 1]
        return [answer.answer for asked, answer in ends if asked.text == question and answer.answer is not None]

    def _until(self, there: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not there():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise SystemExit(what)
            self.read(0.2)

    def type(self, keys: str) -> None:
        """Press one key after another."""
        for key in keys:
            with suppress(OSError):  # the program has ended
                os.write(self._descriptor, key.encode())
            self.read(KEY_S)
