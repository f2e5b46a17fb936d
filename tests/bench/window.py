"""What the window costs and how fast it answers while a long answer streams into a long conversation.

The real window runs in a terminal of its own on a toy engine of a set rate.  Printed for each size: the time from a key
to the frame that shows it, the process's share of one core, the growth of its memory, what the answer cost, its end
too, against one of half the length, and how long it took to show the conversation; then the same as JSON.

Usage: python tests/bench/window.py [--seconds 60] [--rate 250] [--kind mixed|code|list] [--messages 300]
                                     [--scrolled] [--coloured]
"""

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.commands.chat import FPS

SIZES = ((80, 24), (200, 60))
KEY_S = 0.13
"""Seconds between two keys: no multiple of a frame's time."""
PATIENCE = 60.0
CHILD = Path(__file__).with_name("window_toy.py")
FIRST_MARK = 0x4E00
"""Keys are characters that nothing else on the screen holds, each another one."""
LINE = 30
"""Keys that fit on a line of the prompt."""
CLEAR = b"\x15"
"""Deletes them."""
PAGE_UP = b"\x1b[5~"


class Terminal:
    """The window in a terminal: what it draws, and what it tells of itself."""

    def __init__(self, size: tuple[int, int], arguments: list[str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._told, telling = os.pipe()
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "TEXTUAL_FPS": FPS}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, str(CHILD), str(telling), *arguments],
            stdin=slave, stdout=slave, stderr=slave, env=environment, pass_fds=(telling,), start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.close(telling)
        self._drawn = b""
        self._lines = b""
        self.drawn_bytes = 0
        self.events: dict[str, dict[str, float]] = {}

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def read(self, seconds: float) -> None:
        """Take in what comes within so many seconds, at least once."""
        ready, _, _ = select.select([self._master, self._told], [], [], max(0.0, seconds))
        if self._master in ready:
            piece = os.read(self._master, 65536)
            self.drawn_bytes += len(piece)
            self._drawn = self._drawn[-8:] + piece
        if self._told in ready:
            self._lines += os.read(self._told, 65536)
            *whole, self._lines = self._lines.split(b"\n")
            for line in map(json.loads, whole):
                self.events[line["what"]] = line

    def shows(self, mark: bytes) -> bool:
        """Whether the last piece that was drawn holds this."""
        return mark in self._drawn

    def until(self, what: str) -> dict[str, float]:
        """Wait for the window to tell this."""
        begun = time.monotonic()
        while what not in self.events:
            self.read(0.1)
            if time.monotonic() - begun > PATIENCE or self.process.poll() is not None:
                raise SystemExit(f"the window never said {what!r}: {self._drawn[-2000:]!r}")
        return self.events[what]

    def close(self) -> None:
        """End the window."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._master)
        os.close(self._told)


def lags(terminal: Terminal, until: float) -> list[float]:
    """Milliseconds from each key to the frame that shows it; a key that is not shown within 5 s counts as 5 s."""
    found: list[float] = []
    while time.monotonic() < until and "written" not in terminal.events:
        mark = chr(FIRST_MARK + len(found)).encode()
        begun = time.monotonic()
        terminal.press(mark)
        while not terminal.shows(mark) and time.monotonic() - begun < 5.0:
            terminal.read(0.5)
        found.append(1000 * (time.monotonic() - begun))
        full = len(found) % LINE == 0
        if full:
            terminal.press(CLEAR)  # Textual acts on such a key only after letters that follow at once
        rest = begun + KEY_S + 0.5 * full
        while time.monotonic() < rest:
            terminal.read(rest - time.monotonic())
    return found


def measure(size: tuple[int, int], options: argparse.Namespace) -> dict[str, object]:
    """One answer at one size."""
    arguments = [str(options.rate), str(options.seconds), options.kind, str(options.messages)]
    arguments += ["coloured"] if options.coloured else []
    terminal = Terminal(size, arguments)
    try:
        loaded, shown = terminal.until("loaded"), terminal.until("shown")
        terminal.read(1.0)
        terminal.press(b"go")
        time.sleep(0.1)
        terminal.press(b"\r")
        begun = terminal.until("begun")
        if options.scrolled:
            terminal.read(1.0)
            for _ in range(12):
                terminal.press(PAGE_UP)
                terminal.read(0.1)
        drawn = terminal.drawn_bytes
        found = sorted(lags(terminal, time.monotonic() + 2 * options.seconds + 30))
        written, finished = (terminal.until(what) for what in ("written", "finished"))
    finally:
        terminal.close()
    took = written["time"] - begun["time"]
    return {
        "size": f"{size[0]}x{size[1]}",
        "kind": f"{options.kind}, coloured" if options.coloured else options.kind,
        "tokens": round(options.rate * options.seconds),
        "keys": len(found),
        "lag_p50_ms": round(statistics.median(found), 1),
        "lag_p95_ms": round(found[int(0.95 * len(found))], 1),
        "lag_max_ms": round(found[-1], 1),
        "cpu_share": round((written["cpu"] - begun["cpu"]) / took, 3),
        "cpu_s": round(finished["cpu"] - begun["cpu"], 2),
        "growth_mb": round((finished["rss"] - begun["rss"]) / 1e6, 1),
        "rss_mb": round(finished["rss"] / 1e6, 1),
        "show_ms": round(1000 * (shown["time"] - loaded["time"]), 1),
        "seconds": round(took, 1),
        "terminal_kb_s": round((terminal.drawn_bytes - drawn) / took / 1000, 1),
    }


def main() -> None:
    """Measure each size in turn, print a table, then JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=250.0)
    parser.add_argument("--kind", choices=("mixed", "code", "list"), default="mixed")
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--scrolled", action="store_true", help="read far above the answer meanwhile")
    parser.add_argument("--coloured", action="store_true", help="tokens in the colours of their origins")
    parser.add_argument("--size", action="append", help="such as 80x24; both sizes without it")
    options = parser.parse_args()
    sizes = [tuple(map(int, size.split("x"))) for size in options.size] if options.size else SIZES
    rows = []
    for width, height in sizes:
        half = measure((width, height), argparse.Namespace(**{**vars(options), "seconds": options.seconds / 2}))
        row = measure((width, height), options)
        row["doubling"] = round(float(str(row["cpu_s"])) / float(str(half["cpu_s"])), 2)
        rows.append(row)
        for name, value in row.items():
            print(f"{name:>14}  {value}")
        print(flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
