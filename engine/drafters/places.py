"""Where each short run of tokens stands in a text: the places right behind it, the latest first.

One invariant: a place is the number of a token that has a whole run before it, and each is known under that run alone.
So a text that grows at its end, or goes back to a shorter one, costs only what comes or goes.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from engine.model import IntArray

BITS = 21
"""Bits of a token in the key of a run; no vocabulary comes near to 2,097,151 tokens."""
SEPARATOR = (1 << BITS) - 1
"""Stands in a text where nothing goes on; it is no token, so no run of tokens holds it."""


class Index(Protocol):
    """Finds the places behind a run."""

    @property
    def order(self) -> int:
        """Tokens in a run."""
        ...

    def latest(self, ids: Sequence[int], count: int) -> list[int]:
        """Up to `count` places behind the run that `ids` end with, the latest first."""
        ...


def key_of(ids: Sequence[int], end: int, order: int) -> int:
    """The run of `order` tokens before `end`, as a number."""
    key = 0
    for token in ids[max(0, end - order) : end]:
        key = key << BITS | token
    return key


class GrowingPlaces:
    """The places of a text that others append to and cut: each place knows the one before it behind the same run."""

    def __init__(self, text: Sequence[int], order: int) -> None:
        self.order = order
        self._text = text
        self._last: dict[int, int] = {}
        self._before: list[int] = []

    def grow(self) -> None:
        """Enter the places of what was appended to the text."""
        text, last, before, order = self._text, self._last, self._before, self.order
        before.extend([0] * (min(order, len(text)) - len(before)))  # no place has a number under `order`
        start, mask = len(before), (1 << BITS * order) - 1
        key = key_of(text, start - 1, order) if start else 0
        for place in range(start, len(text)):
            key = (key << BITS | text[place - 1]) & mask
            before.append(last.get(key, 0))
            last[key] = place

    def shrink(self, length: int) -> None:
        """Take out the places from `length` on; the text is still whole."""
        for place in range(len(self._before) - 1, max(length, self.order) - 1, -1):
            key, earlier = key_of(self._text, place, self.order), self._before[place]
            if earlier:
                self._last[key] = earlier
            else:
                del self._last[key]
        del self._before[length:]

    def latest(self, ids: Sequence[int], count: int) -> list[int]:
        """See Index."""
        if len(ids) < self.order:
            return []
        found: list[int] = []
        before = self._before
        place = self._last.get(key_of(ids, len(ids), self.order), 0)
        while place and len(found) < count:
            found.append(place)
            place = before[place]
        return found


class SortedPlaces:
    """The places of a text of int64 tokens that stays as it is, made all at once."""

    def __init__(self, text: IntArray, order: int) -> None:
        if BITS * order > 63:
            raise ValueError(f"runs of {order} tokens are too long for a number of 64 bits")
        self.order = order
        runs = np.zeros(max(0, len(text) - order), np.int64)
        for at in range(order):
            runs = runs << BITS | text[at : at + len(runs)]
        ranked = np.argsort(runs, kind="stable")
        self._keys = array("q", runs[ranked].tobytes())
        self._places = array("q", (ranked + order).astype(np.int64).tobytes())

    def latest(self, ids: Sequence[int], count: int) -> list[int]:
        """See Index."""
        if len(ids) < self.order:
            return []
        key, keys = key_of(ids, len(ids), self.order), self._keys
        first = end = bisect_right(keys, key)
        while first and end - first < count and keys[first - 1] == key:
            first -= 1
        return self._places[first:end].tolist()[::-1]
