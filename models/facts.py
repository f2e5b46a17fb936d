"""The shape of a model, as far as its need of memory goes: from a GGUF header, or from the catalogue before a download.

The one invariant: facts of a header and facts of the catalogue are the same type and mean the same.
"""

import msgspec

from models.errors import NotGGUF
from models.gguf import Header, Skipped


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
    """The facts that a header tells; NotGGUF where it describes no language model."""
    arch = header.metadata.get("general.architecture")
    if not isinstance(arch, str):
        raise NotGGUF("the file names no architecture, so it is no language model: take the model's main file")
    n_layer, n_embd = _number(header, f"{arch}.block_count"), _number(header, f"{arch}.embedding_length")
    heads = _by_layer(header, f"{arch}.attention.head_count", n_layer, 1)
    kv_heads = _by_layer(header, f"{arch}.attention.head_count_kv", n_layer, max(heads, default=1))
    head = n_embd // max(1, *heads)
    key = _number(header, f"{arch}.attention.key_length", head)
    value = _number(header, f"{arch}.attention.value_length", head)
    return Facts(
        arch=arch,
        n_vocab=_vocabulary(header, arch),
        n_layer=n_layer,
        n_embd=n_embd,
        n_head=max(heads, default=1),
        kv_width=sum(kv_heads) * (key + value),
        n_ctx_train=_number(header, f"{arch}.context_length"),
    )


def _number(header: Header, key: str, default: int | None = None) -> int:
    value = header.metadata.get(key, default)
    if not isinstance(value, int) or value < 0:
        raise NotGGUF(f"the file says nothing of use about {key}: fetch another form of the model")
    return value


def _by_layer(header: Header, key: str, n_layer: int, default: int) -> list[int]:
    value = header.metadata.get(key, default)
    if isinstance(value, tuple):
        return [int(n) for n in value]
    return [_number(header, key, default)] * min(n_layer, 1 << 16)


def _vocabulary(header: Header, arch: str) -> int:
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    return tokens.count if isinstance(tokens, Skipped) else _number(header, f"{arch}.vocab_size", 0)
