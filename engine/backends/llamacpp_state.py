"""The cache of one llama.cpp context as a file: llama.cpp's own bytes under our header (state_file)."""

import ctypes
from pathlib import Path

import numpy as np

from engine.backends import state_file
from engine.backends.llamacpp_library import lib
from engine.backends.state_file import Bytes, Origin


def save_state(context: int, path: Path, origin: Origin, length: int) -> None:
    """Write the cache of `length` tokens.  OSError."""
    state_file.write(path, origin, length, state_bytes(context))


def load_state(context: int, path: Path, origin: Origin, n_ctx: int) -> int:
    """Read a cache into an empty context; its length.  LoadFailed may leave the context in any state."""
    length, payload = state_file.read(path, origin, n_ctx)
    taken = lib.llama_state_seq_set_data(context, _bytes(payload), len(payload), 0)
    last = lib.llama_memory_seq_pos_max(lib.llama_get_memory(context), 0)
    if taken != len(payload) or last + 1 != length:
        raise state_file.unusable(path, "llama.cpp does not take it")
    return length


def state_size(context: int) -> int:
    """How many bytes llama.cpp would save of sequence 0."""
    return int(lib.llama_state_seq_get_size(context, 0))


def state_bytes(context: int) -> Bytes:
    """What llama.cpp would save of sequence 0."""
    size = state_size(context)
    data = np.empty(size, np.uint8)
    return data[: lib.llama_state_seq_get_data(context, _bytes(data), size, 0)]


def _bytes(array: Bytes) -> object:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
