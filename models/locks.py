"""A lock between processes, kept by the operating system on an open file.

The one invariant: the system frees the lock when its holder ends in whatever way, so a dead holder never blocks.
Where a file system has no locks, work goes on without: all files here are written under names of their own and
renamed, so the worst is work done twice.
"""

import contextlib
import errno
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from models.errors import Busy
from models.files import guarded, make_private, open_private

_TAKEN: Final = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}
_POLL: Final = 0.1


def refuse() -> None:
    """For `waiting`: do not wait at all."""
    raise Busy("another process is using this: wait until it is done, or stop it, and try again")


def patience(seconds: float) -> Callable[[], None]:
    """For `waiting`: wait at most so long."""
    end = time.monotonic() + seconds

    def waiting() -> None:
        if time.monotonic() > end:
            refuse()

    return waiting


@contextlib.contextmanager
def hold(path: Path, waiting: Callable[[], None] = refuse) -> Iterator[None]:
    """Hold the lock at `path`; while another process has it, `waiting` is called again and again and may raise."""
    with guarded(path):
        make_private(path.parent)
        file = open_private(path)
    with file:
        while not _take(file):
            waiting()
            time.sleep(_POLL)
        yield


def _take(file: BinaryIO) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _TAKEN
    return True
