"""A saved cache as a file: a header that says what it belongs to, then a backend's own bytes.

Backends check shapes at most, so the header carries the model's identity, the setting and a checksum.  The one
invariant: what does not match in every field is never handed to a backend.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from engine.config import Frozen
from engine.errors import LoadFailed

_MAGIC = b"paceline-kv-1\n"
_MOST = 1 << 16

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Origin(Frozen, frozen=True):
    """What a cache was made with; two that are equal can take over each other's state."""

    library: str
    model: str
    kv: str
    flash_attention: str


class _Header(Frozen, frozen=True):
    origin: Origin
    length: int
    size: int
    sha256: str


def write(path: Path, origin: Origin, length: int, payload: Bytes) -> None:
    """Write the cache of `length` tokens; the file appears whole or not at all, readable by its owner.  OSError."""
    header = _Header(origin=origin, length=length, size=len(payload), sha256=hashlib.sha256(payload.data).hexdigest())
    head = msgspec.json.encode(header)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + len(head).to_bytes(4, "little") + head)
            file.write(payload.data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path, origin: Origin, n_ctx: int) -> tuple[int, Bytes]:
    """The length of a cache that belongs here, and its bytes; LoadFailed where it is damaged or belongs elsewhere."""
    header, payload = _read(path)
    for field in Origin.__struct_fields__:
        saved, here = getattr(header.origin, field), getattr(origin, field)
        if saved != here:
            raise unusable(path, f"its {field.replace('_', ' ')} is {saved}, here it is {here}")
    if header.length > n_ctx:
        raise unusable(path, f"it holds {header.length:,} tokens and the context {n_ctx:,}")
    if hashlib.sha256(payload.data).hexdigest() != header.sha256:
        raise unusable(path, "its checksum is wrong")
    return header.length, payload


def _read(path: Path) -> tuple[_Header, Bytes]:
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise unusable(path, "it is no such file")
            size = int.from_bytes(file.read(4), "little")
            header = msgspec.json.decode(file.read(min(size, _MOST)), type=_Header)
            payload = np.fromfile(file, np.uint8)
    except (OSError, msgspec.DecodeError) as error:
        raise unusable(path, str(error)) from error
    if len(payload) != header.size or header.length < 0:
        raise unusable(path, f"it is incomplete: {len(payload):,} of {header.size:,} bytes")
    return header, payload


def unusable(path: Path, why: str) -> LoadFailed:
    """The error for a file that cannot be taken over."""
    return LoadFailed(f"the saved cache {path.name} cannot be used, {why}: the conversation is read again")
