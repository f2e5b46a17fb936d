"""What the models have read of each conversation, on the disk: a folder for each, and one budget for all.

The one invariant: nothing here is anything but quicker.  What is removed is read again when its conversation goes on.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from app import paths

BUDGET = 2 * 10**9
"""Bytes that all of them may take."""


def conversations_dir() -> Path:
    """Where they are."""
    return paths.cache_dir() / "conversations"


class Caches:
    """The folders, which the engine fills and reads; those used least recently leave."""

    def __init__(self, root: Path | None, budget: int = BUDGET) -> None:
        """`root` None: nothing is kept, as where history is off."""
        self._root, self.budget = root, budget

    def folder(self, conversation: int) -> Path | None:
        """Where the engine keeps what it has read of a conversation, be it there yet or not; None: nowhere."""
        return None if self._root is None or self.budget <= 0 else self._root / str(conversation)

    def used(self, conversation: int) -> None:
        """It has been written or read: it is the last to leave.  Those for which there is no room leave now."""
        if (folder := self.folder(conversation)) is not None:
            with suppress(OSError):
                os.utime(folder)
        self.trim()

    def trim(self) -> None:
        """Go from the one used last to the oldest, and remove each that does not fit beside those that stay."""
        taken = 0
        for folder in sorted(self._folders(), key=_used, reverse=True):
            if taken + (size := _size(folder)) > self.budget:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                taken += size

    def numbers(self) -> list[int]:
        """The conversations that have a folder."""
        return [int(folder.name) for folder in self._folders()]

    def remove(self, conversations: Iterable[int]) -> None:
        """Remove those of conversations that are gone."""
        for conversation in conversations if self._root else ():
            shutil.rmtree(self._root / str(conversation), ignore_errors=True)

    def _folders(self) -> list[Path]:
        """All that stand for a conversation."""
        try:
            return [path for path in (self._root.iterdir() if self._root else ()) if path.name.isdecimal()]
        except OSError:
            return []


def _used(folder: Path) -> float:
    """When it was last used; what is just going counts as never."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    """Bytes that it takes."""
    with suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0
