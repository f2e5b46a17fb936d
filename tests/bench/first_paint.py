"""First paint: from starting `paceline --demo` in a terminal to the first frame with the prompt in it.

Beside it, in turns, `python -c "import textual.app"`; prints both medians and their ratio, and the memory of the
window's process.  Usage: python tests/bench/first_paint.py [RUNS]
"""

import os
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

MARK = b"Ask something"[1:]
"""Part of the first frame (its first letter is under the cursor)."""
PATIENCE = 20.0


def main() -> None:
    """Measure in turns, print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    paints, imports, memory = [], [], 0
    with tempfile.TemporaryDirectory() as home:
        for _ in range(runs):
            imports.append(import_seconds())
            seconds, memory = paint_seconds(home)
            paints.append(seconds)
    paint, bare = statistics.median(paints), statistics.median(imports)
    print(
        f"first paint {paint:.3f} s, import textual.app {bare:.3f} s, ratio {paint / bare:.2f} ({runs} runs in turns)"
    )
    print(f"window process {memory / 1e6:.0f} MB")


def import_seconds() -> float:
    """Seconds of `python -c "import textual.app"`."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import textual.app"], check=True)
    return time.perf_counter() - begin


def paint_seconds(home: str) -> tuple[float, int]:
    """Seconds to the first frame, and the bytes of memory of the process a moment later."""
    begin = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "PACELINE_HOME": home, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execve(str(Path(sys.executable).with_name("paceline")), ["paceline", "--demo"], environment)
    try:
        seen = b""
        while MARK not in seen:
            seen += os.read(terminal, 65536)
            if time.perf_counter() - begin > PATIENCE:
                raise SystemExit(f"no frame within {PATIENCE} s: {seen[-500:]!r}")
        seconds = time.perf_counter() - begin
        time.sleep(1.0)
        return seconds, psutil.Process(pid).memory_info().rss
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


if __name__ == "__main__":
    main()
