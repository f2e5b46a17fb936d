"""A draft with another vocabulary, seen as a Model in the target's.

One invariant: the inner cache holds the opening token, where the draft wants one, and then the spelling of each token
in order; `_ends[i]` is its length after token i.  So going back is exact, and nothing is ever tokenized again.
"""

import threading
from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path

import numpy as np

from engine import mapped_file
from engine.bounds import check_drop, check_pass, check_rewind
from engine.errors import CannotRewind, DecodeFailed, Interrupted
from engine.model import FloatArray, Model, TellsSize, Vocabulary
from engine.token_map import TokenMap


class MappedModel:
    """See engine.model.Model.  Closing it closes the inner model."""

    def __init__(self, inner: Model, token_map: TokenMap) -> None:
        self.inner, self._map = inner, token_map
        self.vocab: Vocabulary = token_map.target
        self._opening = () if token_map.draft.bos is None else (token_map.draft.bos,)
        self._ends: list[int] = []
        self._rate = 1.0
        self._stopped = threading.Event()
        self._out = np.empty((0, self.vocab.size), np.float32)

    @property
    def length(self) -> int:
        """Tokens of the target's in the cache."""
        return len(self._ends)

    @property
    def n_ctx(self) -> int:
        """Most of the target's tokens that the cache holds if they go on to need as many of the draft's as so far."""
        return self.length + int((self.inner.n_ctx - self._held) / self._rate)

    @property
    def n_batch(self) -> int:
        """See Model.n_batch; a pass that takes more of the draft's tokens is cut."""
        return self.inner.n_batch

    @property
    def reach(self) -> int | None:
        """See Model.reach; 0 where that is bounded, as one of the target's tokens may be many of the draft's."""
        return None if self.inner.reach is None else 0

    @property
    def _held(self) -> int:
        """Tokens that the inner cache holds."""
        return self._ends[-1] if self._ends else 0

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward; unshared tokens have the logit -inf.  Interrupted empties a cache that cannot go back."""
        check_pass(tokens, rows, self.n_batch, self.vocab.size)
        start = self._held
        spelled = [self._map.spell(token) for token in tokens]
        if not start and spelled[0][:1] != self._opening:
            spelled[0] = self._opening + spelled[0]
        ends = list(accumulate(map(len, spelled), initial=start))[1:]
        self._rate = ends[-1] / (self.length + len(tokens))
        if ends[-1] > self.inner.n_ctx:
            raise DecodeFailed(
                f"the draft's context of {self.inner.n_ctx:,} tokens is full ({start:,} + {ends[-1] - start:,}): "
                "take a larger --ctx if the draft was trained for one, else another draft"
            )
        self._stopped.clear()
        try:
            out = self._feed(list(chain(*spelled)), [end - start - 1 for end in ends[len(ends) - rows :]])
        except BaseException:
            self._take_back()
            raise
        self._ends += ends
        return out

    def _feed(self, tokens: Sequence[int], wanted: Sequence[int]) -> FloatArray:
        """Feed the draft's tokens in as many passes as they need; mapped rows after those at the places `wanted`."""
        out = self._rows(len(wanted))
        for start in range(0, len(tokens), self.n_batch):
            if self._stopped.is_set():
                raise Interrupted("stopped between two passes of the draft")
            part = tokens[start : start + self.n_batch]
            inside = [(row, at - start) for row, at in enumerate(wanted) if start <= at < start + len(part)]
            first = inside[0][1] if inside else len(part)
            logits = self.inner.forward(part, len(part) - first)
            for row, at in inside:
                self._map.row(logits[at - first], out[row])
        out.flags.writeable = False
        return out

    def _rows(self, count: int) -> FloatArray:
        """The buffer of all rows; what is not shared stays at -inf in it."""
        if len(self._out) < count:
            self._out = np.full((count, self.vocab.size), -np.inf, np.float32)
        return self._out[:count]

    def _take_back(self) -> None:
        """After a failure: back to the tokens held before it, or to none."""
        try:
            if self.inner.length >= self._held:
                self.inner.rewind(self._held)
                return
        except CannotRewind:
            pass
        self.rewind(0)

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        check_rewind(self.length, length)
        self.inner.rewind(self._ends[length - 1] if length else 0)
        del self._ends[length:]

    def drop(self, start: int, end: int) -> None:
        """See Model.drop; the opening token stays."""
        check_drop(self.length, start, end)
        if end == self.length:
            self.rewind(start)
        elif start < end:
            first = self._ends[start - 1] if start else len(self._opening)
            gone = self._ends[end - 1] - first
            self.inner.drop(first, first + gone)
            self._ends[start:] = [at - gone for at in self._ends[end:]]

    def interrupt(self) -> None:
        """See Model.interrupt."""
        self._stopped.set()
        self.inner.interrupt()

    def saved_size(self) -> int:
        """See TellsSize; 0 where the inner model cannot say, and without the ends, which are small."""
        return self.inner.saved_size() if isinstance(self.inner, TellsSize) else 0

    def save(self, path: Path) -> None:
        """See Model.save."""
        self.inner.save(path)
        mapped_file.append(path, self._map, self._ends)

    def load(self, path: Path) -> None:
        """See Model.load."""
        self.rewind(0)
        with mapped_file.apart(path, self._map) as (inner, ends):
            self.inner.load(inner)
        self._ends = ends
        if ends:
            self._rate = ends[-1] / len(ends)

    def close(self) -> None:
        """See Model.close."""
        self.inner.close()
