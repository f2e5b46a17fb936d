"""What llama.cpp's memory of one context holds, and every way in which it may be changed.

The one invariant: nothing is removed or moved that llama.cpp would not do rightly.  It says yes to removals after
which a window, or a recurrent state, is not that of the tokens that are left; so this module asks first.
"""

import numpy as np

from engine.backends.llamacpp_library import lib
from engine.backends.llamacpp_state import state_bytes
from engine.model import FloatArray

_WINDOW_ALONE = 1
_BOOKKEEPING = 32
"""Most bytes of a saved token that are no keys and values; one layer has more."""


class Memory:
    """The memory of sequence 0."""

    def __init__(self, model: int, context: int) -> None:
        self._context = context
        self._native = lib.llama_get_memory(context)
        self.window: int = lib.llama_model_n_swa(model)
        """Tokens that a layer with a sliding window sees; 0: none has one."""
        self.snapshots: int = lib.llama_n_rs_seq(context)
        """States of a recurrent memory that are kept beside the present one, those after the last tokens of a pass."""

    @property
    def held(self) -> int:
        """Tokens in it."""
        return int(lib.llama_memory_seq_pos_max(self._native, 0)) + 1

    @property
    def _first(self) -> int:
        """The first position that every layer holds; -1 where nothing is held."""
        return int(lib.llama_memory_seq_pos_min(self._native, 0))

    def sees(self, length: int) -> bool:
        """Whether all that the token after the first `length` attends to is still there."""
        return self._first <= max(0, length - self.window)

    def cut(self, length: int) -> bool:
        """Remove all but the first `length` tokens; whether llama.cpp agreed, which says nothing about a state."""
        return bool(lib.llama_memory_seq_rm(self._native, 0, length, -1))

    def clear(self) -> None:
        """Remove everything."""
        lib.llama_memory_clear(self._native, False)

    def cells(self) -> FloatArray:
        """Keys and values of 16 bits, as llama.cpp lays them out, with a few words about them that are no numbers."""
        state = state_bytes(self._context)
        return np.nan_to_num(state[: len(state) // 2 * 2].view(np.float16).astype(np.float32), posinf=0, neginf=0)

    def _moves(self) -> bool:
        """Whether cells of 16 bits can move at all; to be asked while some tokens are held.

        llama.cpp ends the process when it moves a memory of two halves of which one has no layers, so both are
        weighed.  (So it does for quantized keys of some widths.)
        """
        if not lib.llama_memory_can_shift(self._native):
            return False
        if not self.window:
            return True
        both, windowed = (lib.llama_state_seq_get_size_ext(self._context, 0, flag) for flag in (0, _WINDOW_ALONE))
        least = _BOOKKEEPING * self.held
        return bool(windowed > least and both - windowed > least)

    def drop(self, start: int, end: int) -> bool:
        """Remove the tokens from `start` to `end` and mark those after them as moved: the next pass moves them.

        Whether that was done; a window that is not whole any more would be left with less than it must see.  Whether
        it is right for this model at all is found by trying (Trial.shifts).
        """
        if self._first > 0 or not self._moves() or not lib.llama_memory_seq_rm(self._native, 0, start, end):
            return False
        lib.llama_memory_seq_add(self._native, 0, end, -1, start - end)
        return True
