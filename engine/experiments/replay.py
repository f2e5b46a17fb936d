"""A model whose rows are computed once each: thousands of answers from the passes of a few.

One invariant: the row after a list of ids is the one that the real model gave the first time it was asked for it, so a
replayed model is a pure function of the ids in its cache, whatever passes these are cut into.  What an engine makes of
such rows can be compared with the rows themselves, and rounding is no excuse.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.bounds import check_pass, check_rewind, check_room
from engine.context import Context
from engine.errors import CannotRewind, LoadFailed, ModelError
from engine.model import FloatArray, Model, Vocabulary

Ids = tuple[int, ...]


class Rows:
    """The rows of one real model, by the ids that they follow."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.passes = 0
        """Passes that the real model made, reading apart."""
        self._context = Context(model)
        self._known: dict[Ids, FloatArray] = {}

    def after(self, ids: Sequence[int]) -> FloatArray:
        """The row after `ids`; float32 [columns], read-only."""
        return self.take(ids[:-1], ids[-1:], 1)[0]

    def take(self, cached: Sequence[int], tokens: Sequence[int], rows: int) -> list[FloatArray]:
        """The last `rows` rows of a pass over `tokens` behind `cached`; a pass is made where one of them is new."""
        ids = (*cached, *tokens)
        keys = [ids[:end] for end in range(len(ids) - rows + 1, len(ids) + 1)]
        if not all(key in self._known for key in keys):
            for key, row in zip(keys, self._compute(cached, tokens, rows), strict=True):
                self._known.setdefault(key, _kept(row))
        return [self._known[key] for key in keys]

    def forget(self, kept: Collection[Ids] = ()) -> None:
        """Let go of all rows but those behind `kept`; what is asked for again is computed again."""
        self._known = {ids: row for ids, row in self._known.items() if ids in kept}

    def _compute(self, cached: Sequence[int], tokens: Sequence[int], rows: int) -> FloatArray:
        """The pass itself, of the very tokens: the real cache is brought to `cached` first."""
        context = self._context
        context.begin([*cached, tokens[0]])
        for _ in context.read(context.target):
            pass
        self.passes += 1
        return context.advance(context.target, tokens[1:], rows)


def _kept(row: FloatArray) -> FloatArray:
    copy = row.copy()
    copy.flags.writeable = False
    return copy


class Replayed:
    """A Model over remembered rows; `noise` float32 [columns] is added to each, which makes another model of it."""

    def __init__(self, rows: Rows, noise: npt.NDArray[np.float32] | None = None) -> None:
        self._source, self._noise = rows, noise
        self._cells: list[int] = []
        self._out = np.empty((0, 0), np.float32)

    @property
    def vocab(self) -> Vocabulary:
        """The real model's."""
        return self._source.model.vocab

    @property
    def n_ctx(self) -> int:
        """The real model's."""
        return self._source.model.n_ctx

    @property
    def n_batch(self) -> int:
        """The real model's."""
        return self._source.model.n_batch

    @property
    def reach(self) -> int | None:
        """None: any, since a real cache that cannot go back is read again."""
        return None

    @property
    def length(self) -> int:
        """Tokens in this cache; the real one may hold others."""
        return len(self._cells)

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward; reading alone (no rows) costs nothing."""
        check_pass(tokens, rows, self.n_batch, self.vocab.size)
        check_room(self.length, len(tokens), self.n_ctx)
        found = self._source.take(self._cells, tokens, rows) if rows else []
        self._cells.extend(tokens)
        return self._filled(found)

    def row_after(self, ids: Sequence[int]) -> FloatArray:
        """This model's row after any ids, whatever is in its cache."""
        row: FloatArray = self._filled([self._source.after(ids)])[0].copy()
        return row

    def _filled(self, found: Sequence[FloatArray]) -> FloatArray:
        if not found:
            return np.empty((0, self.vocab.size), np.float32)
        if self._out.shape[0] < len(found):
            self._out = np.empty((len(found), found[0].size), np.float32)
        out: FloatArray = self._out[: len(found)]
        for place, row in enumerate(found):
            if self._noise is None:
                out[place] = row
            else:
                np.add(row, self._noise, out=out[place])
        return out

    def rewind(self, length: int) -> None:
        """See Model.rewind; always possible."""
        check_rewind(self.length, length)
        del self._cells[length:]

    def drop(self, start: int, end: int) -> None:
        """Never: what would follow is no row that the real model computed."""
        raise CannotRewind(f"a replayed model cannot forget the tokens from {start} to {end} alone")

    def interrupt(self) -> None:
        """See Model.interrupt."""
        self._source.model.interrupt()

    def save(self, path: Path) -> None:
        """Never: there is no cache to keep."""
        raise ModelError(f"a replayed model has nothing to save to {path.name}")

    def load(self, path: Path) -> None:
        """Never; see `save`."""
        self._cells.clear()
        raise LoadFailed(f"a replayed model cannot take over {path.name}")

    def close(self) -> None:
        """The real model stays open; whoever opened it closes it."""
        self._cells.clear()


def noise(seed: int, columns: int, scale: float) -> npt.NDArray[np.float32]:
    """Fixed normal noise of this standard deviation in logits, float32 [columns]."""
    return (np.random.default_rng(seed).standard_normal(columns) * scale).astype(np.float32)
