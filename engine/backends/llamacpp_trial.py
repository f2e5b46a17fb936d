"""How far a cache can go back, found by trying: a few tokens are read, taken back, and the next row compared.

The one invariant: what is promised was done here, over as many tokens as are promised, and gave the row that a fresh
reading gives.  No name of an architecture is asked for, and no word of llama.cpp's is believed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import DecodeFailed, LoadFailed
from engine.model import FloatArray

_KEPT, _NEXT, _AFTER = 0, 1, 2
_REFUSED = range(3, 99)
_FREE = 4
"""A cache without bounds must take back a pass over so many tokens together with the pass after it."""
_SAME = 0.05
"""How far, as a share of its range, a row may be from that of a fresh reading; a wrong state is further off.

Kept in a wide pass, a token is read with other roundings: logits of quantized weights move by two parts in a hundred.
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """One model's cache, tried."""

    read: Callable[[Sequence[int]], FloatArray]
    """Appends tokens and returns a copy of the last row, [vocab]."""
    cut: Callable[[int], bool]
    """Keeps the first tokens, so many, and says whether llama.cpp agreed."""
    clear: Callable[[], None]

    def reach(self, snapshots: int, widest: int) -> int | None:
        """See Model.reach, of a memory with so many snapshots and passes over `widest` tokens at most.

        Raises LoadFailed where the rows are no numbers, ModelError where a pass fails.  The cache is not empty then.
        """
        self.read([_KEPT])
        fresh = self.read([_NEXT])
        if not np.isfinite(fresh).all():
            raise LoadFailed("its first logits are no numbers")
        if self._comes_back([[_KEPT], list(_REFUSED[: min(_FREE, widest)]), [_AFTER]], fresh):
            return None
        most = min(snapshots, widest - 1, len(_REFUSED))
        for back in range(1, most + 1):
            if not self._comes_back([[_KEPT, *_REFUSED[:back]]], fresh):
                return back - 1
        return most

    def _comes_back(self, passes: Sequence[Sequence[int]], fresh: FloatArray) -> bool:
        """Whether all but the first token of these passes can be taken back, without a trace in the next row."""
        self.clear()
        for tokens in passes:
            self.read(tokens)
        if not self.cut(1):
            return False
        try:
            row = self.read([_NEXT])
        except DecodeFailed:  # it holds more than it says
            return False
        return bool(np.abs(row - fresh).max() <= _SAME * np.ptp(fresh))
