"""A saved cache as a file: a header that says what it belongs to, then llama.cpp's own bytes.

llama.cpp checks shapes only, so a header of our own carries the model's identity, the setting and a checksum.  The
one invariant: what does not match in every field is never handed to llama.cpp.
"""

import ctypes
import hashlib
import os
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from engine.backends.llamacpp_library import lib
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


def save_state(context: int, path: Path, origin: Origin, length: int) -> None:
    """Write the cache of `length` tokens; the file appears whole or not at all, readable by its owner.  OSError."""
    payload = state_bytes(context)
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


def load_state(context: int, path: Path, origin: Origin, n_ctx: int) -> int:
    """Read a cache into an empty context; its length.  LoadFailed may leave the context in any state."""
    header, payload = _read(path)
    for field in Origin.__struct_fields__:
        saved, here = getattr(header.origin, field), getattr(origin, field)
        if saved != here:
            raise _unusable(path, f"its {field.replace('_', ' ')} is {saved}, here it is {here}")
    if header.length > n_ctx:
        raise _unusable(path, f"it holds {header.length:,} tokens and the context {n_ctx:,}")
    if hashlib.sha256(payload.data).hexdigest() != header.sha256:
        raise _unusable(path, "its checksum is wrong")
    taken = lib.llama_state_seq_set_data(context, _bytes(payload), len(payload), 0)
    last = lib.llama_memory_seq_pos_max(lib.llama_get_memory(context), 0)
    if taken != len(payload) or last + 1 != header.length:
        raise _unusable(path, "llama.cpp does not take it")
    return header.length


def state_bytes(context: int) -> Bytes:
    """What llama.cpp would save of sequence 0."""
    size = lib.llama_state_seq_get_size(context, 0)
    data = np.empty(size, np.uint8)
    return data[: lib.llama_state_seq_get_data(context, _bytes(data), size, 0)]


def _read(path: Path) -> tuple[_Header, Bytes]:
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise _unusable(path, "it is no such file")
            size = int.from_bytes(file.read(4), "little")
            header = msgspec.json.decode(file.read(min(size, _MOST)), type=_Header)
            payload = np.fromfile(file, np.uint8)
    except (OSError, msgspec.DecodeError) as error:
        raise _unusable(path, str(error)) from error
    if len(payload) != header.size or header.length < 0:
        raise _unusable(path, f"it is incomplete: {len(payload):,} of {header.size:,} bytes")
    return header, payload


def _unusable(path: Path, why: str) -> LoadFailed:
    return LoadFailed(f"the saved cache {path.name} cannot be used, {why}: the conversation is read again")


def _bytes(array: Bytes) -> object:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
