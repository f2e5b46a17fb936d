"""The log of the engine's process: private, of bounded size, and quoted from when the process dies.

Each process opens its part with a headline, so that nobody quotes what another one wrote.
"""

import os
import time
from pathlib import Path

LIMIT = 2**20
"""Bytes above which a log is started anew."""
LAST_LINES = 3
"""Lines that the report of a death quotes."""
LAST_BYTES = 8192
"""Bytes at the end in which they are looked for."""
HEADLINE = "--- engine process "
TRACE = "Fatal Python error"
"""How the interpreter opens its trace of a fatal signal; the words before it are worth more."""


def open_log(path: Path) -> int:
    """A descriptor that appends to the log; the null device where there can be no log."""
    try:
        _make_private(path.parent)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)
    if hasattr(os, "fchmod"):
        os.fchmod(log, 0o600)
    if os.fstat(log).st_size > LIMIT:
        os.ftruncate(log, 0)
    return log


def _make_private(folder: Path) -> None:
    """Make a folder and those above it where they are missing, mode 0700 (mkdir's `parents` would be open to all)."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def headline() -> bytes:
    """What this process writes first."""
    return f"{HEADLINE}{os.getpid()}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode()


def last_lines(path: Path, process: int) -> list[str]:
    """The last lines after the headline of this process and before the trace of its death."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LAST_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    _, headline, own = text.rpartition(f"{HEADLINE}{process},")
    if not headline:
        return []
    lines = [" ".join(line.split()) for line in own.partition(TRACE)[0].splitlines()[1:]]
    return [line for line in lines if line and not line.startswith(HEADLINE)][-LAST_LINES:]
