"""Which tokens a draft is left with: those that texts use, and of the rest those that any text uses most."""

from collections import Counter
from collections.abc import Iterable

from engine.model import Vocabulary


def kept_tokens(vocab: Vocabulary, texts: Iterable[str], count: int) -> list[int]:
    """`count` ids, ascending: every control token and every byte, then what the texts use most, then the lowest ids.

    A vocabulary is made by joining what stands together most often first, so low ids are common tokens.  All ids where
    there are no more than `count`.
    """
    keep = {*vocab.control.values(), *vocab.eog}
    keep |= {token for token in (vocab.bos, vocab.eos) if token is not None}
    keep |= {token for token in range(vocab.size) if len(vocab.piece(token)) == 1}
    used = Counter(token for text in texts for token in vocab.tokenize(text))
    for token in [token for token, _ in used.most_common()] + list(range(vocab.size)):
        if len(keep) >= count:
            break
        keep.add(token)
    return sorted(keep)


def text_of(vocab: Vocabulary, ids: Iterable[int]) -> str:
    """The text that ids spell; control tokens and ids out of range are left out."""
    return b"".join(vocab.piece(token) for token in ids if 0 <= token < vocab.size).decode("utf-8", "replace")
