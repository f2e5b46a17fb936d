"""Private files: made for their owner alone, written whole or not at all.

The one invariant: a final name appears only by renaming a file that is complete and on the disk.
"""

import contextlib
import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from models.errors import NoSpace, NotWritable
from models.progress import Asked, Progress, Report, never, silent, stop_if
from models.text import plain

BLOCK = 1 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn the system's errors about a file or folder into NoSpace and NotWritable."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpace(f"the drive of {path} is full: free some space and try again; nothing is lost") from error
        reason = plain(error.strerror or str(error))
        raise NotWritable(f"{plain(str(path))} cannot be used ({reason}): check the path and its rights") from error


def make_private(folder: Path) -> Path:
    """Make a folder and those above it where they are missing, mode 0700; returns it."""
    if not folder.is_dir():
        if folder.parent != folder:
            make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def open_private(path: Path) -> BinaryIO:
    """Open a new or old file for reading and writing, mode 0600 if new."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.fdopen(os.open(path, flags, 0o600), "r+b")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file, mode 0600, that takes the place of `path` when the block ends well and is deleted otherwise."""
    with guarded(path):
        number, name = tempfile.mkstemp(prefix=f"tmp-{os.getpid()}-", dir=path.parent)
    try:
        with os.fdopen(number, "w+b") as file:
            yield file
            with guarded(path):
                file.flush()
                os.fsync(file.fileno())
        with guarded(path):
            move(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)


def move(source: Path, path: Path) -> None:
    """Rename over `path` at once."""
    tries = 10 if sys.platform == "win32" else 1
    for left in reversed(range(tries)):
        try:
            os.replace(source, path)
            break
        except PermissionError:  # on Windows also while someone reads the old file
            if not left:
                raise
            time.sleep(0.05)
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    if sys.platform != "win32":
        number = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):
            os.fsync(number)
        os.close(number)


def sweep(folder: Path) -> None:
    """Delete the temporary files and folders that dead processes left in a folder."""
    import psutil  # type: ignore[import-untyped]

    for path in folder.iterdir() if folder.is_dir() else ():
        owner = re.match(r"tmp-(\d{1,9})-", path.name)
        if owner and (int(owner[1]) == os.getpid() or not psutil.pid_exists(int(owner[1]))):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def sha256(path: Path, what: str = "", report: Report = silent, cancelled: Asked = never) -> str:
    """The hash of a file, in hex."""
    digest, done = hashlib.sha256(), 0
    with guarded(path), path.open("rb", buffering=0) as file:
        total = path.stat().st_size
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            report(Progress(done, total, what))
            stop_if(cancelled)
    return digest.hexdigest()
