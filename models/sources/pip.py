"""One wheel through pip, run as a program, so that the user's index, proxy and certificates hold.

The one invariant: whatever ends the call (success, failure, cancel, an interrupt), pip is not running afterwards.
Nothing is built, installed or imported: pip only downloads, and only wheels.
"""

import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from models.catalogue import Part
from models.errors import DownloadFailed, ModelsError, NoSpace, WrongHash
from models.progress import Asked, stop_if
from models.text import plain

PIP: Final = (sys.executable, "-P", "-X", "utf8", "-m", "pip")
_DOWNLOAD: Final = ("download", "--no-deps", "--only-binary=:all:", "--progress-bar=raw", "--no-cache-dir")
_QUIETLY: Final = ("--no-input", "--disable-pip-version-check")
_POLL_S: Final = 0.1
_CLUES: Final = (  # what pip says, and what to tell the user
    (("No module named pip",), "pip is missing: python -m ensurepip --upgrade installs it"),
    (
        ("CERTIFICATE_VERIFY_FAILED", "SSLError", "certificate verify failed"),
        "the package index's certificate is not trusted: check pip's `cert` setting and the clock",
    ),
    (("ProxyError", "407 Proxy"), "the proxy refuses: check pip's proxy settings"),
    (
        ("Retrying (", "NewConnectionError", "NameResolutionError", "Timeout", "Connection", "IncompleteRead"),
        "the package index cannot be reached: check the network or pip's index settings, then pull again",
    ),
    (
        ("No matching distribution", "Could not find a version"),
        "pip's package index does not have it: check pip's index settings, or try again later",
    ),
)


def download(
    part: Part,
    version: str,
    folder: Path,
    report: Callable[[int], None],
    cancelled: Asked,
    pip: Sequence[str] = PIP,
) -> Path:
    """Download one wheel into an empty private folder; `report` gets the bytes so far.  The wheel's path.

    Raises DownloadFailed, WrongHash, NoSpace or Cancelled.
    """
    request = folder / "requirements.txt"
    request.write_text(f"{part.name}=={version} --hash=sha256:{part.sha256}\n", encoding="utf-8")
    command = [*pip, *_DOWNLOAD, *_QUIETLY, "-d", str(folder), "-r", str(request)]
    code, said = _run(command, folder, report, cancelled)
    found = list(folder.glob("*.whl"))
    if code or len(found) != 1:
        raise _failure(part, said)
    return found[0]


def environment(folder: Path) -> dict[str, str]:
    """The user's environment without what steers Python itself, and with pip's temporary files in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if "PYTHONUSERBASE" in os.environ:
        kept["PYTHONUSERBASE"] = os.environ["PYTHONUSERBASE"]
    return kept | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))


def _run(command: list[str], folder: Path, report: Callable[[int], None], cancelled: Asked) -> tuple[int, list[str]]:
    """Run pip to its end; its exit code and the last lines it wrote."""
    said: deque[str] = deque(maxlen=60)
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    child = _start(command, folder)
    try:
        threading.Thread(target=_pump, args=(child, lines), daemon=True).start()
        while True:
            stop_if(cancelled)
            try:
                line = lines.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if line is None:
                return child.wait(), list(said)
            text = line.decode("utf-8", "replace").strip()
            words = text.split()
            if len(words) == 4 and words[0] == "Progress" and words[1].isdecimal():
                report(int(words[1]))
            elif text:
                said.append(text)
    finally:
        _stop(child)


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(folder),
        )
    except OSError as error:
        raise DownloadFailed(f"pip cannot be started ({error.strerror}): check the Python installation") from error


def _pump(child: subprocess.Popen[bytes], lines: "queue.SimpleQueue[bytes | None]") -> None:
    """Pass on each line that pip writes, then None."""
    if child.stdout is not None:
        with child.stdout as out:
            for line in out:
                lines.put(line)
    lines.put(None)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _failure(part: Part, said: list[str]) -> ModelsError:
    """What pip's last lines mean for the user."""
    everything = "\n".join(said)
    errors = [line for line in said if line.startswith("ERROR")] or said[-1:]
    last = f' (pip: "{plain(errors[-1].removeprefix("ERROR:").strip(), 200)}")' if errors else ""
    if "No space left" in everything or "[Errno 28]" in everything:
        return NoSpace("the drive is full: free some space and pull again; finished parts are kept" + last)
    if "DO NOT MATCH THE HASHES" in everything:
        return WrongHash(f"pip's package index serves another {part.name} than the published one: use another index")
    for signs, advice in _CLUES:
        if any(sign in everything for sign in signs):
            return DownloadFailed(f"{part.name} could not be fetched: {advice}; finished parts are kept{last}")
    return DownloadFailed(f"{part.name} could not be fetched: pull again, finished parts are kept{last}")
