"""Small GGUF files, written by hand so that every byte of them can be chosen."""

import struct
from collections.abc import Sequence


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def number(key: str, value: int) -> bytes:
    return entry(key, 4, struct.pack("<I", value))


def strings(key: str, values: list[str]) -> bytes:
    return entry(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values)))


def tensor(name: str, dims: list[int], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf(
    entries: Sequence[bytes],
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """A whole file; `counts` (tensors, entries) may lie."""
    n_tensors, n_entries = counts or (len(tensors), len(entries))
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_entries) + b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def described(arch: str = "llama") -> list[bytes]:
    """Entries that tell the shape of a model."""
    return [
        entry("general.architecture", 8, text(arch)),
        number(f"{arch}.block_count", 2),
        number(f"{arch}.embedding_length", 8),
        number(f"{arch}.context_length", 512),
        number(f"{arch}.attention.head_count", 2),
        strings("tokenizer.ggml.tokens", [f"token {n}" for n in range(32)]),
    ]


def tiny(arch: str = "llama") -> bytes:
    """A complete file with two tensors of 64 and 32 floats."""
    tensors = [tensor("a", [8, 8], 0, 0), tensor("b", [32], 0, 256)]
    return gguf(described(arch), tensors, bytes(range(256)) + bytes(128))
