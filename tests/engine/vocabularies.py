"""Toy vocabularies that say the same in different tokens: letters, pairs of letters, bytes; with ends and openings."""

import string
from collections.abc import Sequence

import numpy as np

from engine.backends.toy import ToyLM, ToyVocabulary
from engine.model import FloatArray

LETTERS = [letter.encode() for letter in string.ascii_lowercase[:6]]
PAIRS = [a + b for a in LETTERS for b in LETTERS]
ODD = [b"\xf0", b"\x9f\x98\x80", "é".encode()]


def vocabulary(pieces: list[bytes], controls: list[str], ends: list[str], opens: str | None = None) -> ToyVocabulary:
    """Controls stand after the pieces, in their order."""
    named = {name: len(pieces) + at for at, name in enumerate(controls)}
    vocab = ToyVocabulary([*pieces, *(b"" for _ in controls)], named, [named[name] for name in ends])
    vocab.bos = None if opens is None else named[opens]
    vocab.fingerprint += f" {opens}"
    return vocab


def small() -> ToyVocabulary:
    """Letters alone, and what ends and opens."""
    return vocabulary([*LETTERS], ["<s>", "<end>", "<start>"], ["<end>"], "<s>")


def large() -> ToyVocabulary:
    """Pairs before letters, parts of characters, two ends."""
    return vocabulary([*PAIRS, *LETTERS, *ODD], ["<end>", "<stop>", "<start>", "<other>"], ["<end>", "<stop>"])


def every_byte() -> ToyVocabulary:
    """Nothing but bytes, and one end of another name."""
    return vocabulary([bytes([byte]) for byte in range(256)], ["</s>", "<s>"], ["</s>"], "<s>")


def doubled() -> ToyVocabulary:
    """Byte tokens first, then the words that the tokenizer makes of the same bytes, as SentencePiece has them."""
    vocab = vocabulary([*LETTERS, *PAIRS, *LETTERS[::-1]], ["</s>"], ["</s>"])
    vocab._ids |= {piece: token for token, piece in enumerate(vocab._pieces) if piece}
    return vocab


class Babbler(ToyLM):
    """A ToyLM over any vocabulary, its logits random ones of the seed."""

    def __init__(self, vocab: ToyVocabulary, seed: int = 0, n_ctx: int = 4096, n_batch: int = 64) -> None:
        super().__init__(vocab.size, n_ctx, seed=seed)
        self.vocab, self.n_batch = vocab, n_batch


class Shuffled(Babbler):
    """The model `of` with its token i under the id `order[i]`: the same model in other ids."""

    def __init__(self, of: ToyLM, order: Sequence[int]) -> None:
        pieces = [b""] * of.vocab.size
        for token, place in enumerate(order):
            pieces[place] = of.vocab.piece(token)
        super().__init__(ToyVocabulary(pieces, eog=[order[token] for token in of.vocab.eog]))
        self._of, self._order = of, np.array(order)
        self._back = np.argsort(self._order)

    def row(self, ids: Sequence[int]) -> FloatArray:
        """The row of `of` in this order."""
        return self._of.row(self._back[list(ids)].tolist())[self._back]
