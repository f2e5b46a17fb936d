"""Measurements kept on disk, each under everything that it depends on.

A file that is damaged, or of another version, counts as none at all; writing never leaves half a file.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from engine.config import FlashAttention, Frozen
from engine.identity import cpu_model, file_identity
from engine.stats import EngineName, HeldAs

Record = TypeVar("Record", bound=Frozen)


class Key(Frozen, frozen=True):
    """What a measurement depends on; another value of any field makes it void."""

    file: str
    library: str
    cpu: str
    device: str
    threads: int
    engine: EngineName = "llamacpp"
    weights: str | None = None
    """How the torch engine held them."""
    gpu_layers: int = -1
    kv: HeldAs | None = None
    """None: whatever the measurement itself chose."""
    flash_attention: FlashAttention = "auto"


def key_for(path: Path, library: str, device: str, threads: int) -> Key:
    """The key of a model file on this machine, cache setting left open.  OSError where there is no such file."""
    return Key(file=file_identity(path), library=library, cpu=cpu_model(), device=device, threads=threads)


class _Kept(Frozen, frozen=True):
    key: Key
    record: msgspec.Raw


class CalibrationStore:
    """A folder of measurements; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: Key, kind: type[Record]) -> Record | None:
        """What was kept under `key`; None where nothing usable was."""
        if self._folder is None:
            return None
        try:
            kept = msgspec.json.decode(self._path(key, kind).read_bytes(), type=_Kept)
            return msgspec.json.decode(kept.record, type=kind) if kept.key == key else None
        except (OSError, ValueError):
            return None

    def put(self, key: Key, record: Frozen) -> None:
        """Keep a measurement; a folder that cannot be written to keeps nothing, which costs only time."""
        if self._folder is None:
            return
        path = self._path(key, type(record))
        data = msgspec.json.encode(_Kept(key=key, record=msgspec.Raw(msgspec.json.encode(record))))
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, data)
        except OSError:
            return

    def _path(self, key: Key, kind: type[Frozen]) -> Path:
        assert self._folder is not None
        digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()[:20]
        return self._folder / f"{kind.__name__.lower()}-{digest}.json"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, for its owner alone, that appears whole or not at all.  OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
