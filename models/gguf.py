"""Reads the header of a GGUF file (versions 2 and 3) and trusts none of it.

Only the header is read, in blocks, never the weights.  The one invariant: no count and no length from the file is
used before it is known to fit what is left of the file, so a hostile header costs bounded time and memory.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from models.errors import NotGGUF, NotWritable, Oversized, Truncated
from models.text import plain

MAGIC: Final = b"GGUF"
MAX_STRING: Final = 16 << 20
MAX_KEY: Final = 1 << 16
MAX_ENTRIES: Final = 1 << 16
MAX_TENSORS: Final = 1 << 18
MAX_DIMS: Final = 8
MAX_HEADER: Final = 1 << 26
MAX_KEPT: Final = 4096
"""Arrays of numbers up to this length are kept; longer ones are counted."""

_BLOCK: Final = 1 << 20
_SCALARS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING: Final = 8
_ARRAY: Final = 9
TENSOR_TYPES: Final = {  # id: (weights in a block, bytes of a block)
    **{0: (1, 4), 1: (1, 2), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2)},
    **{2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40), 20: (32, 18), 39: (32, 17)},
    **{10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292)},
    **{16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 21: (256, 110), 22: (256, 82), 23: (256, 136)},
    **{29: (256, 56), 34: (256, 54), 35: (256, 66), 40: (64, 36), 41: (128, 18)},
}
_IMPOSTORS: Final = {
    b"lmgg": "an old GGML file: fetch the model again as GGUF",
    b"fmgg": "an old GGMF file: fetch the model again as GGUF",
    b"tjgg": "an old GGJT file: fetch the model again as GGUF",
    b"algg": "a GGML adapter, not a model: fetch the model itself as GGUF",
    b"vers": "a Git LFS pointer, not the file it stands for: fetch the file itself (git lfs pull)",
    b"PK\x03\x04": "a zip archive: unpack it first",
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """An array that was counted, not kept."""

    count: int


Scalar: TypeAlias = int | float | bool | str
Value: TypeAlias = Scalar | tuple[int | float | bool, ...] | Skipped


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says."""

    path: Path
    """The file it was read from, for messages."""
    size: int
    """Length of that file in bytes when it was read."""
    version: int
    metadata: Mapping[str, Value]
    tensors: int
    """How many tensors the file holds."""
    weights: int
    """Bytes of all tensors, without the gaps between them."""
    data_offset: int
    """Where the tensors begin, in bytes."""
    expected_bytes: int
    """Least length of the whole file."""
    alignment: int
    exact: bool
    """Whether the sizes of all tensor types are known; otherwise the file may be longer than expected."""


class _Cut(Exception):
    """The header goes on past the end of the file."""


class _Cursor:
    """Reads forward through a file, a block at a time."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._buffer, self._at, self._start = b"", 0, 0

    @property
    def position(self) -> int:
        return self._start + self._at

    def need(self, count: int) -> int:
        """Have the next `count` bytes in the buffer; where in it they begin."""
        if self._at + count > len(self._buffer):
            if self.position + count > self._size:
                raise _Cut
            if self.position + count > MAX_HEADER:
                raise NotGGUF(f"its header is longer than {MAX_HEADER:,} bytes")
            self._start, self._buffer = self.position, self._buffer[self._at :]
            self._at = 0
            self._buffer += self._file.read(max(_BLOCK, count - len(self._buffer)))
            if count > len(self._buffer):
                raise _Cut
        return self._at

    def numbers(self, letter: str, count: int = 1) -> tuple[int | float | bool, ...]:
        form = f"<{count}{letter}"
        at = self.need(struct.calcsize(form))
        self._at += struct.calcsize(form)
        return struct.unpack_from(form, self._buffer, at)

    def integer(self, letter: str) -> int:
        return int(self.numbers(letter)[0])

    def count(self, limit: int, what: str) -> int:
        value = self.integer("Q")
        if value > limit:
            raise NotGGUF(f"its header claims {value:,} {what}")
        return value

    def text(self, limit: int) -> str:
        length = self.count(limit, "bytes in one text")
        at = self.need(length)
        self._at += length
        return self._buffer[at : at + length].decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        """Pass over `count` texts: the long lists of a vocabulary, so without a call for each."""
        lengths = struct.Struct("<Q").unpack_from
        buffer, at, end = self._buffer, self._at, len(self._buffer)
        for _ in range(count):
            after = at + 8 + (lengths(buffer, at)[0] if at + 8 <= end else end)
            if after <= end:
                at = after
                continue
            self._at = at
            self.text(MAX_STRING)
            buffer, at, end = self._buffer, self._at, len(self._buffer)
        self._at = at

    def left(self) -> int:
        return self._size - self.position


def read(path: Path) -> Header:
    """The header of a file; NotGGUF, Truncated or NotWritable (unreadable) say what is wrong with it."""
    shown = plain(str(path))
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _header(file, path, size)
    except _Cut:
        raise Truncated(f"{shown} is incomplete: its {size:,} bytes end inside the header; fetch it again") from None
    except NotGGUF as error:
        raise NotGGUF(f"{shown} is not a model that can be read: {error}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotWritable(f"{shown} cannot be read ({reason}): check the path and its rights") from error


def check(path: Path) -> Header:
    """Read the header and compare it with the file's length; raises as `read` does, and Oversized."""
    header = read(path)
    size, expected, shown = header.size, header.expected_bytes, plain(str(path))
    if size < expected:
        raise Truncated(f"{shown} is incomplete: {size:,} of {expected:,} bytes; fetch it again")
    longest = _aligned(expected, header.alignment)
    if header.exact and header.tensors and size > longest:
        raise Oversized(f"{shown} is too long: {size:,} bytes where its header says {longest:,}; fetch it again")
    return header


def _header(file: BinaryIO, path: Path, size: int) -> Header:
    _refuse_impostors(file.read(512), size)
    file.seek(len(MAGIC))
    cursor = _Cursor(file, size)
    cursor._start = len(MAGIC)
    version = _version(cursor.integer("I"))
    tensors = cursor.count(min(MAX_TENSORS, size), "tensors")
    entries = cursor.count(min(MAX_ENTRIES, size), "entries")
    metadata: dict[str, Value] = {}
    for _ in range(entries):
        key = cursor.text(MAX_KEY)
        metadata[key] = _value(cursor, cursor.integer("I"))
    weights, end, exact = _tensors(cursor, tensors)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 1 << 20:
        raise NotGGUF(f"its header claims an alignment of {plain(str(alignment), 60)}")
    data = _aligned(cursor.position, alignment) if tensors else cursor.position
    return Header(path, size, version, metadata, tensors, weights, data, data + end, alignment, exact)


def _refuse_impostors(start: bytes, size: int) -> None:
    if size == 0:
        raise NotGGUF("it is empty; fetch it again")
    if MAGIC.startswith(start):
        raise _Cut
    if start.startswith(MAGIC):
        return
    for magic, what in _IMPOSTORS.items():
        if start.startswith(magic):
            raise NotGGUF(f"it is {what}")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        raise NotGGUF("it is a web page: fetch the file itself, perhaps after signing in")
    raise NotGGUF("it is no GGUF file: take one whose name ends in .gguf")


def _version(version: int) -> int:
    if version < 2:
        raise NotGGUF(f"it is a GGUF of version {version}, too old: fetch a newer form of the model")
    if version & 0xFFFF == 0:
        raise NotGGUF("it is a GGUF for big-endian machines: fetch the little-endian form")
    if version > 3:
        raise NotGGUF(f"it is a GGUF of version {version}, too new for this program: update it")
    return version


def _value(cursor: _Cursor, kind: int) -> Value:
    if kind in _SCALARS:
        return cursor.numbers(_SCALARS[kind])[0]
    if kind == _STRING:
        return cursor.text(MAX_STRING)
    if kind == _ARRAY:
        return _array(cursor, cursor.integer("I"), cursor.integer("Q"))
    raise NotGGUF(f"its header holds a value of the unknown type {kind}")


def _array(cursor: _Cursor, kind: int, count: int) -> Value:
    size = 8 if kind == _STRING else struct.calcsize("<" + _SCALARS[kind]) if kind in _SCALARS else 0
    if not size:
        raise NotGGUF(f"its header holds an array of the type {kind}")
    if count * size > cursor.left():
        raise _Cut
    if kind == _STRING:
        cursor.skip_texts(count)
        return Skipped(count)
    if count <= MAX_KEPT:
        return cursor.numbers(_SCALARS[kind], count)
    for passed in range(0, count, _BLOCK):
        cursor.numbers("B", min(_BLOCK, count - passed) * size)
    return Skipped(count)


def _tensors(cursor: _Cursor, count: int) -> tuple[int, int, bool]:
    """Bytes of all tensors, where the last one ends, and whether every type's size is known."""
    weights, end, exact = 0, 0, True
    for _ in range(count):
        name = cursor.text(MAX_KEY)
        dims = cursor.integer("I")
        if dims > MAX_DIMS:
            raise NotGGUF(f"its tensor {plain(name, 60)} claims {dims:,} dimensions")
        elements = math.prod(int(n) for n in cursor.numbers("Q", dims))
        block, size = TENSOR_TYPES.get(cursor.integer("I"), (0, 0))
        offset = cursor.integer("Q")
        taken = -(-elements // block) * size if block else 0
        weights, end, exact = weights + taken, max(end, offset + taken), exact and bool(block)
    return weights, end, exact


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
