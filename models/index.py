"""What a library knows beyond its files: one small JSON file, read whole and replaced whole.

The one invariant: a change reads, changes and replaces the file under one lock, so two processes never lose each
other's change; a file that cannot be understood is set aside, never overwritten.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from models.errors import NotWritable
from models.files import guarded, make_private, move, replacing
from models.locks import hold, patience

_VERSION: Final = 1
_PATIENCE_S: Final = 10.0


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept about one file."""

    bytes: int
    mtime_ns: int
    sha256: str | None = None
    """Holds for this length and time of change only."""
    path: str | None = None
    """Where a file that was added in place lies; None for one in the library's folder."""

    def hash_of(self, path: Path) -> str | None:
        """The hash, if the file has not changed since it was taken."""
        status = path.stat()
        return self.sha256 if (status.st_size, status.st_mtime_ns) == (self.bytes, self.mtime_ns) else None


Records = dict[str, Record]


class _Content(msgspec.Struct, kw_only=True):
    version: int = _VERSION
    files: Records = {}


class Index:
    """The records of one library by id."""

    def __init__(self, root: Path) -> None:
        self._path = root / "index.json"
        self._lock = root / ".index.lock"

    def read(self) -> Records:
        """All records; none where there is no file or it is broken."""
        with guarded(self._path):
            text = self._path.read_bytes() if self._path.exists() else b"{}"
        try:
            content = msgspec.json.decode(text, type=_Content)
        except msgspec.DecodeError:
            return {}
        if content.version > _VERSION:
            raise NotWritable(f"{self._path} was written by a newer version of this program: update it")
        return content.files

    def update(self, change: Callable[[Records], None]) -> None:
        """Apply a change to the records and keep them; NotWritable, NoSpace or Busy leave them as they were."""
        with hold(self._lock, patience(_PATIENCE_S)):
            records = self.read()
            if not records:
                self._set_aside()
            change(records)
            make_private(self._path.parent)
            with replacing(self._path) as file, guarded(self._path):
                file.write(msgspec.json.format(msgspec.json.encode(_Content(files=records))))

    def _set_aside(self) -> None:
        """Keep a broken file under another name."""
        if not self._path.exists():
            return
        try:
            msgspec.json.decode(self._path.read_bytes(), type=_Content)
        except msgspec.DecodeError:
            with guarded(self._path):
                move(self._path, self._path.with_suffix(".json.broken"))


def record(path: Path, digest: str | None, in_place: bool) -> Record:
    """A record of a file as it is now."""
    with guarded(path):
        status = path.stat()
    return Record(
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        sha256=digest,
        path=str(path) if in_place else None,
    )
