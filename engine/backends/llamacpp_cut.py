"""A GGUF file with fewer tokens: the rows of its embedding and output layer for the others are left out.

Rows are whole blocks of whatever type they have, so they are copied, never computed.  The one invariant: token i of the
new file is the i-th of those kept, in every list of the header and in every row of a tensor.
"""

import ctypes
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from engine.backends.llamacpp_header import ARRAY, SIZES, Entry, Header, Tensor, aligned, read, written
from engine.backends.llamacpp_library import ggml
from engine.errors import ModelError

_TOKENS, _MERGES = b"tokenizer.ggml.tokens", b"tokenizer.ggml.merges"
_BY_TOKEN = (b"token_embd.weight", b"output.weight", b"output.bias")
"""Tensors with a row for each token."""


def cut(source: Path, target: Path, keep: Sequence[int]) -> None:
    """Write `source` with these tokens alone, ascending, to `target`; ModelError leaves no file behind."""
    try:
        with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _write(_Cut(source, data, keep), target)
    except (struct.error, KeyError, IndexError, ValueError) as error:
        raise ModelError(f"the tokens of {source.name} cannot be cut ({error}): leave it as it is") from error
    except OSError as error:
        reason = error.strerror or error
        raise ModelError(f"{target} cannot be written ({reason}): check the folder and its rights") from error


def _write(cut: "_Cut", target: Path) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            cut.write(file)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


class _Cut:
    """One file on its way to fewer tokens."""

    def __init__(self, source: Path, data: mmap.mmap, keep: Sequence[int]) -> None:
        self._data, self._keep = data, keep
        self._old = read(data)
        self._places = {token: place for place, token in enumerate(keep)}
        tokens = next(entry for entry in self._old.entries if entry.key == _TOKENS).split()
        self._count = len(tokens)
        self._texts = {tokens[token] for token in keep}
        if any(self._count in tensor.shape and not self._rows(tensor) for tensor in self._old.tensors):
            raise ModelError(f"{source.name} counts tokens where this program knows no rows of them: leave it as it is")

    def write(self, file: BinaryIO) -> None:
        """All of the new file."""
        tensors = list(self._tensors())
        entries = [kept for entry in self._old.entries if (kept := self._entry(entry)) is not None]
        file.write(written(Header(entries, tensors, self._old.alignment, 0)))
        with memoryview(self._data) as data:
            for old, new in zip(self._old.tensors, tensors, strict=True):
                for start, end in self._stretches(old):
                    with data[start:end] as part:
                        file.write(part)
                file.write(b"\0" * (aligned(_size(new), self._old.alignment) - _size(new)))

    def _tensors(self) -> Iterator[Tensor]:
        """What the new header says of each tensor."""
        at = 0
        for old in self._old.tensors:
            shape = (*old.shape[:-1], len(self._keep)) if self._rows(old) else old.shape
            new = replace(old, shape=shape, offset=at)
            yield new
            at = aligned(at + _size(new), self._old.alignment)

    def _rows(self, tensor: Tensor) -> bool:
        """Whether a tensor has a row for each token."""
        return tensor.name in _BY_TOKEN and tensor.shape[-1] == self._count

    def _stretches(self, tensor: Tensor) -> Iterator[tuple[int, int]]:
        """What of a tensor is copied: from where to where in the file."""
        start = self._old.start + tensor.offset
        if not self._rows(tensor):
            yield start, start + _size(tensor)
            return
        row, first = _size(tensor) // self._count, 0
        for place in range(1, len(self._keep) + 1):
            if place == len(self._keep) or self._keep[place] != self._keep[place - 1] + 1:
                yield start + row * self._keep[first], start + row * (self._keep[place - 1] + 1)
                first = place

    def _entry(self, entry: Entry) -> Entry | None:
        """An entry of the new header; None where it names a token that is gone."""
        if entry.key == _MERGES:
            return entry.with_items([merge for merge in entry.split() if self._joins(merge)])
        if entry.kind == ARRAY and entry.items()[1] == self._count:
            items = entry.split()
            return entry.with_items([items[token] for token in self._keep])
        if entry.key.startswith(b"tokenizer.") and entry.key.endswith(b"_token_id"):
            return self._number(entry, self._places.get(int.from_bytes(entry.value, "little")))
        if entry.key.endswith(b".vocab_size"):
            return self._number(entry, len(self._keep))
        return entry

    def _joins(self, merge: bytes) -> bool:
        """Whether a merge joins two tokens that are kept to one that is."""
        space = merge.find(b" ", 1)
        first, second = merge[:space], merge[space + 1 :]
        return {first, second, first + second} <= self._texts

    def _number(self, entry: Entry, value: int | None) -> Entry | None:
        return None if value is None else replace(entry, value=value.to_bytes(SIZES[entry.kind], "little"))


def _size(tensor: Tensor) -> int:
    """Bytes of a tensor."""
    row_size = ggml("ggml_row_size", ctypes.c_size_t, ctypes.c_int, ctypes.c_int64)
    assert row_size is not None
    return tensor.bytes(int(row_size(tensor.kind, tensor.shape[0])))
