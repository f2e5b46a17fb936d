"""A saved cache of a draft with another vocabulary: the draft's own file, and behind it where each token ends.

One invariant: what was saved for other vocabularies, or was cut, is never taken for a cache.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from engine.config import Frozen
from engine.errors import LoadFailed
from engine.token_map import TokenMap

_MAGIC = b"paceline-map-2\n"
_TAIL = 8 + len(_MAGIC)
"""Bytes behind the record with its checksum: their number, and what the file is."""

_SUM = hashlib.sha256().digest_size


class _Record(Frozen, frozen=True):
    target: str
    draft: str
    ends: list[int]


def append(path: Path, token_map: TokenMap, ends: Sequence[int]) -> None:
    """Write behind a saved cache how long it was after each of the target's tokens.  OSError."""
    target, draft = token_map.target.fingerprint, token_map.draft.fingerprint
    record = msgspec.json.encode(_Record(target=target, draft=draft, ends=list(ends)))
    with path.open("ab") as file:
        body = hashlib.sha256(record).digest() + record
        file.write(body + len(body).to_bytes(8, "little") + _MAGIC)


@contextmanager
def apart(path: Path, token_map: TokenMap) -> Iterator[tuple[Path, list[int]]]:
    """The draft's own file, there while the context is open, and the ends.  LoadFailed."""
    with ExitStack() as stack:
        try:
            record, size = _read(path)
            if (record.target, record.draft) != (token_map.target.fingerprint, token_map.draft.fingerprint):
                raise LoadFailed(f"the saved cache {path.name} is of other models: the conversation is read again")
            own = stack.enter_context(_beside(path))
            shutil.copyfile(path, own)
            os.truncate(own, size)
        except (OSError, msgspec.DecodeError) as error:
            raise LoadFailed(f"{path.name} is no saved cache ({error}): the conversation is read again") from error
        yield own, record.ends


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file in the same folder, gone in the end; by its name `keeping` sweeps one that a dead process has left."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        with suppress(OSError):
            Path(name).unlink()


def _read(path: Path) -> tuple[_Record, int]:
    """The record, and the length of what stands before it."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END) - _TAIL
        file.seek(max(0, end))
        tail = file.read()
        start = end - int.from_bytes(tail[:8], "little")
        if start < 0 or tail[8:] != _MAGIC:
            raise LoadFailed(f"{path.name} is no such cache: the conversation is read again")
        file.seek(start)
        said, record = file.read(_SUM), file.read(max(0, end - start - _SUM))
        if hashlib.sha256(record).digest() != said:
            raise LoadFailed(f"{path.name} is damaged: the conversation is read again")
        return msgspec.json.decode(record, type=_Record), start
