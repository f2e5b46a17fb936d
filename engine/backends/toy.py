"""Models without weights: pure functions of the ids in the cache, for tests and for the demo.

The next logits depend on the whole cached id list, so one stale or missing entry changes the output.  Three kinds of
cache: `dense` rewinds anywhere, `sliding` only while its window is still held, `recurrent` only over its `snapshots`.
"""

import json
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from engine.bounds import check_drop, check_pass, check_rewind, check_room
from engine.errors import CannotRewind, Interrupted, LoadFailed
from engine.model import FloatArray

Kind = Literal["dense", "sliding", "recurrent"]
SHARP = 40.0
"""The lead, in logits, of a token that a script wants."""


class ToyVocabulary:
    """Tokens given as bytes; control tokens are empty bytes with a name."""

    def __init__(
        self,
        pieces: Sequence[bytes],
        control: Mapping[str, int] | None = None,
        eog: Sequence[int] = (),
        chat_template: str | None = None,
    ) -> None:
        self._pieces = list(pieces)
        self.size = len(self._pieces)
        self.control: Mapping[str, int] = dict(control or {})
        self.eog = frozenset(eog)
        self.eos = min(self.eog, default=None)
        self.bos: int | None = None
        self.strips: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
        self.chat_template = chat_template
        self._ids = {piece: i for i, piece in reversed(list(enumerate(self._pieces))) if piece}
        self._longest = max((len(p) for p in self._ids), default=0)
        self.fingerprint = str(
            zlib.crc32(repr((self._pieces, sorted(self.control.items()), sorted(self.eog))).encode())
        )

    @classmethod
    def letters(cls, size: int, eog: Sequence[int] = ()) -> "ToyVocabulary":
        """`size` tokens of one letter each, for tests that work on ids alone."""
        return cls([chr(0x61 + i).encode() if i < 26 else f"<{i}>".encode() for i in range(size)], eog=eog)

    def tokenize(self, text: str) -> list[int]:
        """The longest known piece first, at each place."""
        data, at, ids = text.encode(), 0, []
        while at < len(data):
            for length in range(min(self._longest, len(data) - at), 0, -1):
                token = self._ids.get(data[at : at + length])
                if token is not None:
                    ids.append(token)
                    at += length
                    break
            else:
                at += 1
        return ids

    def piece(self, token: int) -> bytes:
        """The bytes of one token."""
        if not 0 <= token < self.size:
            raise IndexError(f"no token {token}")
        return self._pieces[token]


class ToyModel:
    """A Model whose rows are `row(ids)`; subclasses say what that is.

    `on_pass` is called inside each forward, after the checks and before the work: a test blocks or fails there.
    `padding` adds columns past the real ids; `snapshots` is the reach of a recurrent cache.
    """

    def __init__(
        self,
        vocab: ToyVocabulary,
        n_ctx: int = 4096,
        n_batch: int = 64,
        kind: Kind = "dense",
        window: int = 16,
    ) -> None:
        self.vocab = vocab
        self.n_ctx = n_ctx
        self.n_batch = n_batch
        self.kind = kind
        self.window = window
        self.padding = 0
        self.snapshots = 0
        self.on_pass: Callable[[Sequence[int]], None] | None = None
        self._cells: list[int] = []
        self._lost = 0
        self._latest = 0
        self._interrupted = threading.Event()
        self._rows = np.zeros((0, 0), np.float32)

    def row(self, ids: Sequence[int]) -> FloatArray:
        """Logits float32 [vocab.size] after `ids`."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return len(self._cells)

    @property
    def reach(self) -> int | None:
        """See Model.reach."""
        return self.snapshots if self.kind == "recurrent" else None

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward."""
        self._begin_pass(tokens, rows, self.length)
        self._cells.extend(tokens)
        self._latest = len(tokens)
        self._lost = max(self._lost, self.length - 2 * self.window)
        return self._filled([self.row(self._seen(end)) for end in range(self.length - rows + 1, self.length + 1)])

    def _filled(self, rows: Sequence[FloatArray]) -> FloatArray:
        """The rows with their padding, until the next call."""
        self._rows.fill(np.nan)  # who keeps them longer must notice
        out = self._rows = np.zeros((len(rows), self.vocab.size + self.padding), np.float32)
        for place, row in enumerate(rows):
            out[place, : self.vocab.size] = row
        return out

    def _begin_pass(self, tokens: Sequence[int], rows: int, held: int) -> None:
        """The checks, and what a test wants to happen, of a pass behind `held` tokens."""
        check_pass(tokens, rows, self.n_batch, self.vocab.size)
        check_room(held, len(tokens), self.n_ctx)
        self._interrupted.clear()
        if self.on_pass:
            self.on_pass(tokens)
        if self._interrupted.is_set():
            raise Interrupted("stopped")

    def _seen(self, end: int) -> Sequence[int]:
        start = max(0, end - self.window) if self.kind == "sliding" else 0
        return self._cells[start:end]

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        check_rewind(self.length, length)
        if 0 < length < self.length and not self._can_rewind(length):
            raise CannotRewind(f"a {self.kind} cache of {self.length} tokens cannot go back to {length}")
        if length < self.length:
            self._latest = 0  # a snapshot serves once
        del self._cells[length:]
        if length == 0:
            self._lost = 0

    def _can_rewind(self, length: int) -> bool:
        if self.kind == "recurrent":
            return self.length - length <= min(self.snapshots, self._latest - 1)
        return self.kind == "dense" or length - self.window >= self._lost or self._lost <= 0

    def drop(self, start: int, end: int) -> None:
        """See Model.drop; the rows after it are those of a fresh reading, as a toy's cells are its ids."""
        check_drop(self.length, start, end)
        if self.kind != "dense":
            raise CannotRewind(f"a {self.kind} cache cannot shift")
        del self._cells[start:end]

    def interrupt(self) -> None:
        """See Model.interrupt."""
        self._interrupted.set()

    def wait(self, seconds: float) -> None:
        """Let time pass inside a forward, as a real pass does; an interrupt ends it."""
        self._interrupted.wait(seconds)

    def save(self, path: Path) -> None:
        """See Model.save."""
        path.write_text(json.dumps({"cells": self._cells, "lost": self._lost}))

    def load(self, path: Path) -> None:
        """See Model.load."""
        self.rewind(0)
        try:
            state = json.loads(path.read_text())
            self._cells, self._lost, self._latest = list(state["cells"]), int(state["lost"]), 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LoadFailed(f"{path.name} is no saved cache: the conversation is read again") from error
        if self.length > self.n_ctx:
            self.rewind(0)
            raise LoadFailed(f"{path.name} is larger than the context: the conversation is read again")

    def close(self) -> None:
        """See Model.close."""
        self._cells.clear()


class ToyLM(ToyModel):
    """Random logits, seeded by all that the cache holds.

    A draft of a target is the same seed with a `blur` above 0: that share of its logits comes from elsewhere.
    """

    scale = 2.0
    """The standard deviation of the logits."""

    def __init__(
        self,
        vocab_size: int = 32,
        n_ctx: int = 4096,
        kind: Kind = "dense",
        *,
        seed: int = 0,
        blur: float = 0.0,
        eog: Sequence[int] = (),
    ) -> None:
        super().__init__(ToyVocabulary.letters(vocab_size, eog), n_ctx, kind=kind)
        self.seed, self.blur = seed, blur

    def row(self, ids: Sequence[int]) -> FloatArray:
        """Normal logits of the seed, blurred."""
        own = self._random(ids, self.seed)
        if self.blur:
            own = (1 - self.blur) * own + self.blur * self._random(ids, ~self.seed)
        return (self.scale * own).astype(np.float32)

    def _random(self, ids: Sequence[int], seed: int) -> FloatArray:
        key = zlib.crc32(np.asarray(ids, np.int64).tobytes(), seed & 0xFFFFFFFF)
        return np.random.Generator(np.random.Philox(key=(seed & 0xFFFFFFFF) << 32 | key)).standard_normal(
            self.vocab.size
        )


class EarlyLM(ToyLM):
    """A ToyLM that can be left early: the fewer of its `layers` have run, the more its row is blurred."""

    layers = 8
    taken = 0
    """Tokens that forwards have taken up."""
    _ahead: tuple[int, ...] = ()
    _after = 0

    def early_row(self, ids: Sequence[int], layers: int) -> FloatArray:
        """Logits float32 [vocab.size] after `ids`, by the first layers."""
        share = layers / self.layers
        other = self.scale * self._random(ids, ~self.seed ^ layers)
        return (share * self.row(ids) + (1 - share) * other).astype(np.float32)

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        """See LeavesEarly.leave."""
        if layers != self._after:
            self._ahead = ()
        held = [*self._cells, *self._ahead, *tokens]
        self._begin_pass(tokens, rows, len(held) - len(tokens))
        self._ahead, self._after = (*self._ahead, *tokens), layers
        return self._filled([self.early_row(held[:end], layers) for end in range(len(held) - rows + 1, len(held) + 1)])

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward."""
        out = super().forward(tokens, rows)
        if self._ahead == tuple(tokens[: len(self._ahead)]):
            self.taken += len(self._ahead)
        self._ahead = ()
        return out

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        super().rewind(length)
        self._ahead = ()

    def drop(self, start: int, end: int) -> None:
        """See Model.drop."""
        super().drop(start, end)
        self._ahead = ()


class ScriptLM(ToyModel):
    """Wants one token after each list of ids: `script(ids)`, so that accept and refuse are set exactly."""

    def __init__(
        self, vocab: ToyVocabulary, script: Callable[[Sequence[int]], int], n_ctx: int = 4096, n_batch: int = 64
    ) -> None:
        super().__init__(vocab, n_ctx, n_batch)
        self.script = script

    def row(self, ids: Sequence[int]) -> FloatArray:
        """All logits 0 but the wanted one."""
        out = np.zeros(self.vocab.size, np.float32)
        out[self.script(ids)] = SHARP
        return out
