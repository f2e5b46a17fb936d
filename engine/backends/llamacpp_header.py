"""The header of a GGUF file as it stands, to write another one from it: every value keeps its bytes.

For files that llama.cpp has loaded before; what comes from elsewhere is looked at by the library of models first.
"""

import math
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass

U32, STRING, ARRAY = 4, 8, 9
"""Kinds of values: a number, a text, a list."""
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, U32: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of the kinds that are numbers."""
_ITEMS = struct.calcsize("<IQ")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its name, its kind, and its value as it stands in the file."""

    key: bytes
    kind: int
    value: bytes

    def items(self) -> tuple[int, int]:
        """Of a list: the kind of its items and how many they are."""
        kind, count = struct.unpack_from("<IQ", self.value)
        return kind, count

    def split(self) -> list[bytes]:
        """Of a list: its items, texts without their lengths."""
        kind, count = self.items()
        if kind != STRING:
            size = SIZES[kind]
            return [self.value[at : at + size] for at in range(_ITEMS, _ITEMS + size * count, size)]
        reader = Reader(self.value, _ITEMS)
        return [reader.text() for _ in range(count)]

    def with_items(self, items: Sequence[bytes]) -> "Entry":
        """The same list with other items."""
        kind, _ = self.items()
        parts = [struct.pack("<IQ", kind, len(items)), *(text(item) if kind == STRING else item for item in items)]
        return Entry(self.key, self.kind, b"".join(parts))


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor."""

    name: bytes
    shape: tuple[int, ...]
    """The first runs along a row; steps along the last are farthest apart."""
    kind: int
    offset: int
    """From where the tensors begin."""

    def bytes(self, row: int) -> int:
        """Its length, where a row takes so many bytes."""
        return row * math.prod(self.shape[1:])


@dataclass(frozen=True, slots=True)
class Header:
    """A whole header."""

    entries: list[Entry]
    tensors: list[Tensor]
    alignment: int
    start: int
    """Where the tensors begin in the file."""


class Reader:
    """Goes through bytes from front to back."""

    def __init__(self, data: "mmap.mmap | bytes", at: int = 0) -> None:
        self._data, self.at = data, at

    def numbers(self, form: str) -> tuple[int, ...]:
        """Numbers by struct's letters."""
        found = struct.unpack_from(f"<{form}", self._data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def text(self) -> bytes:
        """A text behind its length."""
        (length,) = self.numbers("Q")
        self.at += length
        return self._data[self.at - length : self.at]

    def entry(self) -> Entry:
        """An entry of the header."""
        key, (kind,) = self.text(), self.numbers("I")
        start = self.at
        self._skip(kind)
        return Entry(key, kind, self._data[start : self.at])

    def tensor(self) -> Tensor:
        """What a header says of a tensor."""
        name, (dims,) = self.text(), self.numbers("I")
        shape = self.numbers(f"{dims}Q")
        kind, offset = self.numbers("IQ")
        return Tensor(name, shape, kind, offset)

    def _skip(self, kind: int) -> None:
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            items, count = self.numbers("IQ")
            if items == STRING:
                for _ in range(count):
                    self.text()
            else:
                self.at += SIZES[items] * count
        else:
            self.at += SIZES[kind]


def read(data: mmap.mmap) -> Header:
    """The header of a file of version 2 or 3; struct.error or KeyError where it is none."""
    reader = Reader(data, 8)
    tensors, entries = reader.numbers("QQ")
    known = [reader.entry() for _ in range(entries)]
    found = [reader.tensor() for _ in range(tensors)]
    alignment = next((struct.unpack("<I", one.value)[0] for one in known if one.key == b"general.alignment"), 32)
    return Header(known, found, alignment, aligned(reader.at, alignment))


def written(header: Header) -> bytes:
    """A header as bytes of a file of version 3, up to where its tensors begin."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(header.tensors), len(header.entries))]
    parts += [part for one in header.entries for part in (text(one.key), struct.pack("<I", one.kind), one.value)]
    for tensor in header.tensors:
        dims = len(tensor.shape)
        parts.append(text(tensor.name))
        parts.append(struct.pack(f"<I{dims}QIQ", dims, *tensor.shape, tensor.kind, tensor.offset))
    whole = b"".join(parts)
    return whole.ljust(aligned(len(whole), header.alignment), b"\0")


def text(data: bytes) -> bytes:
    """A text as it stands in a file, behind its length."""
    return struct.pack("<Q", len(data)) + data


def aligned(offset: int, alignment: int) -> int:
    """The first place at or behind `offset` at which a tensor may begin."""
    return -(-offset // alignment) * alignment
