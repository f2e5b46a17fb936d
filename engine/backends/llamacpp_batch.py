"""One reusable batch of llama.cpp: tokens, positions and which rows of logits are wanted.

All arrays are made once; filling them for a pass is three slice assignments.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.backends.llamacpp_library import lib


class Batch:
    """Room for `capacity` tokens of sequence 0."""

    def __init__(self, capacity: int) -> None:
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        self._steps = np.arange(capacity, dtype=np.int32)
        self._counts = np.ones(capacity, np.int32)
        self._sequence = np.zeros(1, np.int32)
        self._sequences = np.full(capacity, self._sequence.ctypes.data, np.uintp)
        self.native: Any = lib.llama_batch()
        self.native.token = _pointer(self._tokens, ctypes.c_int32)
        self.native.pos = _pointer(self._positions, ctypes.c_int32)
        self.native.n_seq_id = _pointer(self._counts, ctypes.c_int32)
        self.native.seq_id = _pointer(self._sequences, ctypes.POINTER(ctypes.c_int32))
        self.native.logits = _pointer(self._wanted, ctypes.c_int8)

    def fill(self, tokens: Sequence[int], position: int, rows: int) -> None:
        """Take `tokens` from `position` on, logits for the last `rows`; ids must have been checked."""
        count = len(tokens)
        self._tokens[:count] = tokens
        np.add(self._steps[:count], position, out=self._positions[:count])
        self._wanted[: count - rows] = 0
        self._wanted[count - rows : count] = 1
        self.native.n_tokens = count


def _pointer(array: npt.NDArray[np.generic], kind: type) -> object:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
