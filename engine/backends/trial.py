"""How far a cache can go back, and whether it shifts, found by trying: a few tokens are read and taken out again.

The one invariant: what is promised was done here, over as many tokens as are promised, and gave what a fresh reading
gives.  No name of an architecture is asked for, and no word of a library's is believed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import DecodeFailed, LoadFailed
from engine.model import FloatArray

_KEPT, _NEXT, _AFTER = 0, 1, 2
_REFUSED = range(3, 99)
PLAIN = _REFUSED[40:48]
"""Tokens of text in any vocabulary: the first ones of it are control tokens, which upset some networks."""
_NEARER = 0.15
"""So many times the one distance the other may be.

Seen where all is remembered: up to 0.06, by roundings; where only places are forgotten: 0.25.
"""
_FREE = 4
"""A cache without bounds must take back a pass over so many tokens together with the pass after it."""
_SAME = 0.05
"""How far, as a share of its range, a row may be from that of a fresh reading; a wrong state is further off.

Kept in a wide pass, a token is read with other roundings: logits of quantized weights move by two parts in a hundred.
"""
_PLACES = 8
"""Tokens that are compared after a shift; more would not fit the least context, and short windows."""
_TIMES = 4
"""So often a part is dropped: what is scaled wrongly adds up."""
_PART = 1024
"""Numbers of the cache that are compared at once: of one layer, or parts of two."""
_TINY = 1e-6
"""Where a part is all zero, its change counts against this."""
_TURNED = 0.12
"""How far such a part may be from a fresh reading, as a share of its length.

Seen where shifts are right: up to 0.05, by rounding in models of 4 bits; where they are wrong: from 0.3 on.
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """One model's cache, tried."""

    read: Callable[[Sequence[int]], FloatArray]
    """Appends tokens and returns a copy of the last row, [vocab]."""
    cut: Callable[[int], bool]
    """Keeps the first tokens, so many, and says whether the cache agreed."""
    clear: Callable[[], None]
    drop: Callable[[int, int], bool] = lambda _start, _end: False
    """Forgets the tokens between, moves those after them up, and says whether that was done, rightly or not."""
    cells: Callable[[], FloatArray] = lambda: np.empty(0, np.float32)
    """The keys and values held, in one row."""

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

    def shifts(self, widest: int) -> bool:
        """Whether what moves up is, then, what a fresh reading gives.  The cache is not empty then.

        Of one token read again and again each place holds the same, but for its rotation: so no trace is left of what
        was dropped.  One is where positions are learned, where keys are scaled too, and would be with each move, and
        where they are turned in layers without rotation.
        """
        self._repeat(2 * _PLACES, widest)
        if not all(self.drop(1, 1 + _PLACES // _TIMES) for _ in range(_TIMES)):
            return False
        moved = self.cells()
        self._repeat(_PLACES, widest)
        return _most_change(moved, self.cells()) <= _TURNED

    def remembers(self) -> bool:
        """Whether tokens that are read one by one give what they give together.  The cache is not empty then.

        Roundings of 16 bits can move a row far, so it need only be nearer to that than to what the last token gives
        alone, which is all that is left where nothing is remembered.
        """
        rows = []
        for tokens, width in ((PLAIN, 1), (PLAIN, _PLACES), (PLAIN[-1:], 1)):
            self.clear()
            rows.append([self.read(tokens[at : at + width]) for at in range(0, len(tokens), width)][-1])
        singly, together, alone = rows
        return nearer(together, singly, alone)

    def goes_on(self) -> bool:
        """Whether a wide pass goes on from the state that is held, as single tokens do.  The cache is not empty then.

        In some networks a pass over several tokens begins with an empty state, whatever is held.
        """
        held = []
        for passes in ([[_NEXT, _AFTER]], [[_NEXT], [_AFTER]]):
            self.clear()
            for tokens in (_REFUSED[:_PLACES], *passes):
                self.read(tokens)
            held.append(self.cells())
        return _most_change(*held) <= _TURNED

    def _repeat(self, times: int, widest: int) -> None:
        self.clear()
        for start in range(0, times, widest):
            self.read([_KEPT] * min(widest, times - start))

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
        return alike(row, fresh)


def alike(row: FloatArray, fresh: FloatArray) -> bool:
    """Whether rows are those of a fresh reading, but for roundings."""
    return bool(np.abs(row - fresh).max() <= _SAME * np.ptp(fresh))


def nearer(row: FloatArray, right: FloatArray, wrong: FloatArray) -> bool:
    """Whether a row is near to the right one, as distances go between the right one and a wrong one."""
    return bool(np.abs(row - right).max() <= _NEARER * np.abs(right - wrong).max())


def _most_change(moved: FloatArray, fresh: FloatArray) -> float:
    """The largest change of any part as a share of its length; inf where they do not hold as much."""
    if moved.shape != fresh.shape:
        return np.inf
    parts = max(1, len(fresh) // _PART)
    pairs = zip(np.array_split(moved - fresh, parts), np.array_split(fresh, parts), strict=True)
    return max(float(np.linalg.norm(change)) / max(float(np.linalg.norm(whole)), _TINY) for change, whole in pairs)
