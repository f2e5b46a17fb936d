"""Whether a drive can hold what is about to be written.

The one invariant: a download that cannot end well for want of space is refused before its first byte.
"""

import shutil
from pathlib import Path
from typing import Final

from models.errors import NoSpace
from models.files import guarded
from models.text import plain, size

MARGIN: Final = 256_000_000
"""Left free for everything else, in bytes."""


def require(folder: Path, needed: int, what: str) -> None:
    """Raise NoSpace unless the drive of a folder (which need not exist yet) has `needed` bytes and the margin free."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    with guarded(there):
        free = shutil.disk_usage(there).free
        if free < needed + MARGIN:
            drive = plain(str(_drive(there)))
            raise NoSpace(
                f"{what} needs {size(needed + MARGIN)} free on {drive} and there are {size(free)}: "
                f"free some space, or choose another drive with PACELINE_HOME"
            )


def _drive(path: Path) -> Path:
    """The root of the file system that a path lies on."""
    path = path.resolve()
    while path.parent != path and path.parent.stat().st_dev == path.stat().st_dev:
        path = path.parent
    return path
