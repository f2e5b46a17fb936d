"""The Model protocol: one causal language model with one rewindable cache, and its vocabulary.

Draft and target are the same type.  The one invariant of the engine, `context.ids[:model.length]` is what the
model's cache holds, rests on what is promised here: `length` never lies, and a pass that raises leaves either the
old length or a model that can be rewound to 0.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
"""[rows, vocab] float32 where logits are meant, float64 where probabilities are."""
IntArray = npt.NDArray[np.int64]


class Vocabulary(Protocol):
    """The tokens of one model."""

    @property
    def size(self) -> int:
        """Real tokens: ids run from 0 to size - 1; rows of logits may be wider (padding)."""
        ...

    @property
    def eog(self) -> frozenset[int]:
        """The ids that end an answer."""
        ...

    @property
    def eos(self) -> int | None:
        """The one of them that chat templates know as eos_token, where there is one."""
        ...

    @property
    def control(self) -> Mapping[str, int]:
        """Text of each control token and its id."""
        ...

    @property
    def strips(self) -> tuple[frozenset[int], frozenset[int]]:
        """The control tokens that swallow the blanks before them, and those that swallow the blanks after them."""
        ...

    @property
    def bos(self) -> int | None:
        """The id that opens every prompt, where the model wants one."""
        ...

    @property
    def chat_template(self) -> str | None:
        """The model's own Jinja template."""
        ...

    @property
    def fingerprint(self) -> str:
        """Equal for two vocabularies whose tokens and roles are all equal."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text; no control token ever arises, no opening token is put before."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes of one token, b"" for control tokens; an id out of range raises IndexError."""
        ...


class Model(Protocol):
    """One causal language model with one cache."""

    @property
    def vocab(self) -> Vocabulary:
        """Its tokens."""
        ...

    @property
    def n_ctx(self) -> int:
        """Most tokens that the cache holds."""
        ...

    @property
    def n_batch(self) -> int:
        """Most tokens that one `forward` takes; reading cuts prompts at its multiples."""
        ...

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        ...

    @property
    def reach(self) -> int | None:
        """How many tokens of a pass `rewind` can take back, found by trying it at load; 0: none.

        A number holds for the last pass alone, of which one token at least stays, and once until the next pass.  None
        is no such bound: any number, from any pass, as far as a window that moved on does not forbid it.
        """
        ...

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """Append `tokens` to the cache; the logits of the last `rows` of them, float32 [rows, vocab].

        1 <= len(tokens) <= n_batch, 0 <= rows <= len(tokens).  The array is valid until the next call.  Raises
        Interrupted (length as before), DecodeFailed (length as before, or unknown until `rewind(0)`), ValueError
        for ids out of range or too many tokens (length as before).
        """
        ...

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens; CannotRewind changes nothing; 0 always works and clears."""
        ...

    def drop(self, start: int, end: int) -> None:
        """Forget the tokens from `start` to `end`; those after them move up and are not read again.

        What moves still carries what it saw of the forgotten tokens, so later rows are near those of a fresh reading,
        never equal.  CannotRewind changes nothing: this cache cannot shift.  ValueError out of range.
        """
        ...

    def interrupt(self) -> None:
        """From any thread: a running forward raises Interrupted soon; without one nothing happens."""
        ...

    def save(self, path: Path) -> None:
        """Write the cache to a file (its length included)."""
        ...

    def load(self, path: Path) -> None:
        """Take over a saved cache; LoadFailed leaves the cache empty."""
        ...

    def close(self) -> None:
        """Free everything; may be called twice."""
        ...


@runtime_checkable
class TellsSize(Protocol):
    """A Model that knows what `save` would write."""

    def saved_size(self) -> int:
        """Its bytes, or nearly so."""
        ...
