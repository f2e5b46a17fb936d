"""Two vocabularies side by side: which tokens mean the same, and how to spell a token of one with tokens of the other.

One invariant: tokens are matched by their bytes, never by their ids; a spelling joins to the very bytes of its token,
wherever the draft has tokens for them.  A draft's row restricted to what is shared is, renormalized, a distribution
over the target's tokens like any other, so every rule that is exact stays exact.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.calibration_text import TEXT
from engine.model import FloatArray, IntArray, Vocabulary

Meaning = tuple[str, bytes]
"""What a token is ("text", "control" or "end") and its bytes; of control tokens, their name."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much two vocabularies share."""

    text: float
    """Share of the target's tokens in a sample text that the draft can propose: what bounds its acceptance."""
    target: float
    """Share of the target's tokens."""
    draft: float
    """Share of the draft's tokens."""

    def __str__(self) -> str:
        return (
            f"{self.text:.0%} of the tokens that the target makes of a sample text are shared "
            f"({self.target:.0%} of all of its own, {self.draft:.0%} of the draft's)"
        )


class TokenMap:
    """The way from a draft's tokens to the target's, and back."""

    def __init__(self, target: Vocabulary, draft: Vocabulary) -> None:
        self.target, self.draft = target, draft
        self._target_meanings, draft_meanings = _meanings(target), _meanings(draft)
        self._target_ids = _by_meaning(target, self._target_meanings)
        self._draft_ids = _by_meaning(draft, draft_meanings)
        self._longest = max((len(data) for _, data in self._draft_ids), default=0)
        self._unknown = (draft.tokenize("?") or [0])[-1:]
        self._spellings: dict[int, tuple[int, ...]] = {}
        self._places: IntArray = np.array([self._place(meaning) for meaning in draft_meanings], np.int64)
        shared = np.flatnonzero(self._places >= 0)
        _, first = np.unique(self._places[shared], return_index=True)
        self._first, self._more = shared[first], np.delete(shared, first)

    def row(self, logits: FloatArray, out: FloatArray) -> None:
        """Write a row of the draft's (float32 [draft columns]) where the target has those tokens.

        `out` is float32 [target.size].  Draft tokens that mean one target token are summed as probabilities; what is
        not shared is left as it is.
        """
        out[self._places[self._first]] = logits[self._first]
        with np.errstate(invalid="ignore"):
            np.logaddexp.at(out, self._places[self._more], logits[self._more])

    def spell(self, token: int) -> tuple[int, ...]:
        """The draft's tokens that stand for a token of the target; a question mark where it has none for its bytes."""
        if (known := self._spellings.get(token)) is None:
            known = self._spellings[token] = tuple(self._spell(token) or self._unknown)
        return known

    @cached_property
    def overlap(self) -> Overlap:
        """Measured on the vocabularies themselves and on a text; a target that cannot write it is taken as a whole."""
        places = set(self._places[self._first].tolist())
        sample = self.target.tokenize(TEXT) or range(self.target.size)
        return Overlap(
            text=_share(sum(token in places for token in sample), len(sample)),
            target=_share(len(places), self.target.size),
            draft=_share(len(self._first) + len(self._more), self.draft.size),
        )

    def _place(self, meaning: Meaning | None) -> int:
        """The target's token for a meaning, -1 where it has none; every end has the target's end to go to."""
        if meaning is None:
            return -1
        return self._target_ids.get(meaning, _end(self.target) if meaning[0] == "end" else -1)

    def _spell(self, token: int) -> Sequence[int]:
        meaning = self._target_meanings[token]
        if meaning is not None and (same := self._draft_ids.get(meaning)) is not None:
            return [same]
        if token in self.target.eog and self.draft.eog:
            return [_end(self.draft)]
        if token == self.target.bos and self.draft.bos is not None:
            return [self.draft.bos]
        return self._write(b"" if meaning is None else meaning[1])

    def _write(self, data: bytes) -> Sequence[int]:
        """Plain text with the draft's own tokenizer; where that does not give the bytes, the longest tokens first."""
        try:
            ids = self.draft.tokenize(data.decode())
        except UnicodeDecodeError:
            return list(self._longest_first(data))
        return ids if b"".join(map(self.draft.piece, ids)) == data else list(self._longest_first(data))

    def _longest_first(self, data: bytes) -> Iterator[int]:
        at = 0
        while at < len(data):
            parts = (data[at : at + size] for size in range(min(self._longest, len(data) - at), 0, -1))
            known = next((part for part in parts if ("text", part) in self._draft_ids), None)
            if known is not None:
                yield self._draft_ids["text", known]
            at += len(known or b"?")


def _meanings(vocab: Vocabulary) -> list[Meaning | None]:
    """What each token means; None for one without bytes and without a name."""
    names = {token: name.encode("utf-8", "replace") for name, token in vocab.control.items()}
    found: list[Meaning | None] = []
    for token in range(vocab.size):
        data = names.get(token) or vocab.piece(token)
        kind = "end" if token in vocab.eog else "control" if token in names else "text"
        found.append((kind, data) if data else None)
    return found


def _by_meaning(vocab: Vocabulary, meanings: Sequence[Meaning | None]) -> Mapping[Meaning, int]:
    """The token of each meaning: of several with the same bytes, the one that the tokenizer makes of them.

    Where it makes none of them, the last: byte tokens stand before words.
    """
    known = [(meaning, token) for token, meaning in enumerate(meanings) if meaning is not None]
    table = dict(known)
    for meaning, count in Counter(meaning for meaning, _ in known).items():
        if count > 1:
            made = vocab.tokenize(meaning[1].decode("utf-8", "replace"))
            if len(made) == 1 and meanings[made[0]] == meaning:
                table[meaning] = made[0]
    return table


def _end(vocab: Vocabulary) -> int:
    """The token that ends an answer, the one of templates where there are several; -1 where there is none."""
    return vocab.eos if vocab.eos is not None and vocab.eos in vocab.eog else min(vocab.eog, default=-1)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
