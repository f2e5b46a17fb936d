"""The shape of a model, as far as its need of memory goes: from a GGUF header, or from the catalogue before a download.

The one invariant: facts of a header and facts of the catalogue are the same type and mean the same.
"""

from typing import Final, TypeGuard

import msgspec

from models.errors import NotGGUF
from models.gguf import MAX_KEPT, Header, Skipped
from models.text import plain

_MOST: Final = 1 << 32
"""Numbers from here on are no fact of a model: the format keeps these in 32 bits."""
_MOST_LAYERS: Final = MAX_KEPT
"""Numbers by layer are not kept beyond this."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides how much memory a model needs."""

    arch: str
    n_vocab: int
    n_layer: int
    n_embd: int
    n_head: int
    """Query heads of the layer that has most."""
    kv_width: int
    """Numbers that the key-value cache holds for one token, all layers together."""
    n_ctx_train: int
    """Tokens of context that the model was trained for."""


def facts(header: Header) -> Facts:
    """The facts that a header tells; NotGGUF, which names the file, where it describes no language model."""
    arch = header.metadata.get("general.architecture")
    if not isinstance(arch, str):
        shown = plain(str(header.path))
        raise NotGGUF(f"{shown} names no architecture, so it is no language model: take the model's main file")
    n_layer, n_embd = _number(header, f"{arch}.block_count"), _number(header, f"{arch}.embedding_length")
    if n_layer > _MOST_LAYERS:
        raise _useless(header, f"{arch}.block_count")
    heads = _by_layer(header, f"{arch}.attention.head_count", n_layer, 1)
    kv_heads = _by_layer(header, f"{arch}.attention.head_count_kv", n_layer, max(heads))
    head = n_embd // max(1, *heads)
    key = _number(header, f"{arch}.attention.key_length", head)
    value = _number(header, f"{arch}.attention.value_length", head)
    return Facts(
        arch=arch,
        n_vocab=_vocabulary(header, arch),
        n_layer=n_layer,
        n_embd=n_embd,
        n_head=max(heads),
        kv_width=sum(kv_heads) * (key + value),
        n_ctx_train=_number(header, f"{arch}.context_length"),
    )


def _number(header: Header, key: str, default: int | None = None) -> int:
    """A number of the header, 0 only where there is a default for it."""
    value = header.metadata.get(key, default)
    if not _counts(value) or (value == 0 and default is None):
        raise _useless(header, key)
    return value


def _by_layer(header: Header, key: str, n_layer: int, default: int) -> list[int]:
    """A number for each layer; at least one layer."""
    value = header.metadata.get(key, default)
    if not isinstance(value, tuple):
        return [_number(header, key, default)] * n_layer
    numbers = [n for n in value if _counts(n)]
    if len(numbers) < max(len(value), n_layer):
        raise _useless(header, key)
    return numbers


def _counts(value: object) -> TypeGuard[int]:
    """Whether this is a whole number of something; a truth value is none."""
    return type(value) is int and 0 <= value < _MOST


def _useless(header: Header, key: str) -> NotGGUF:
    where, what = plain(str(header.path)), plain(key, 80)
    return NotGGUF(f"{where} says nothing of use about {what}: fetch another form of the model")


def _vocabulary(header: Header, arch: str) -> int:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    return tokens.count if isinstance(tokens, Skipped) else _number(header, f"{arch}.vocab_size", 0)
