"""The file of a library: records that are only appended, rewritten whole when most of it is waste.

A record adds, uses or drops an answer, and the order of the records is the order of use.  One invariant: whatever is
in the file, what is read are answers that once were added.  An answer's name is a hash of its tokens, which tells a
whole record from a damaged one; reading goes on behind the damage.  Every append opens the file anew and is one write,
so another process that rewrites it meanwhile can at most lose that one.
"""

import contextlib
import hashlib
import os
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.model import Vocabulary

Tokens = npt.NDArray[np.uint32]
Answers = dict[bytes, Tokens]
"""Tokens by name, the least recently used first."""
MARK = b"\x8ePl\n"
ADD, USE, DROP = b"+", b"=", b"-"
_HEAD = struct.Struct("<4sc8sI")
_WASTE = 1 << 16
"""Bytes of waste that are not worth writing a file for."""
_TOKENS = np.dtype("<u4")


def name_of(tokens: Sequence[int] | Tokens) -> bytes:
    """The name of an answer: 8 bytes."""
    return _name(_packed(tokens))


def _packed(tokens: Sequence[int] | Tokens) -> bytes:
    return np.asarray(tokens, _TOKENS).tobytes()


def _name(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


class LibraryFile:
    """One file, which need not be there; ids of `size` and more are not tokens."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    @classmethod
    def of(cls, folder: Path, vocab: Vocabulary) -> "LibraryFile":
        """The file for a vocabulary."""
        name = hashlib.sha256(vocab.fingerprint.encode()).hexdigest()[:20]
        return cls(folder / name / "answers", vocab.size)

    def read(self, most: int) -> Answers:
        """The last used answers, up to `most` tokens in all; the file is rewritten if that halves it."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return {}
        answers = self._parse(data)
        total = sum(map(len, answers.values()))
        for name in list(answers):
            if total <= most:
                break
            total -= len(answers.pop(name))
        if len(data) > 2 * (total * _TOKENS.itemsize + len(answers) * _HEAD.size) + _WASTE:
            self._rewrite(answers)
        return answers

    def append(self, used: Iterable[bytes], dropped: Iterable[bytes], added: Answers) -> None:
        """Note what happened, at once."""
        data = b"".join(
            (
                *(_record(USE, name) for name in sorted(used)),
                *(_record(DROP, name) for name in dropped),
                *(_record(ADD, name, tokens) for name, tokens in added.items()),
            )
        )
        if not data:
            return
        with contextlib.suppress(OSError):
            _make_private(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            with os.fdopen(os.open(self._path, flags, 0o600), "wb", buffering=0) as file:
                file.write(data)

    def _parse(self, data: bytes) -> Answers:
        answers: Answers = {}
        for kind, name, tokens in _records(data):
            known = answers.pop(name, None)
            if kind == ADD and tokens.max() < self._size:
                answers[name] = tokens
            elif kind == USE and known is not None:
                answers[name] = known
        return answers

    def _rewrite(self, answers: Answers) -> None:
        with contextlib.suppress(OSError):
            number, name = tempfile.mkstemp(dir=self._path.parent, prefix="answers-", suffix=".part")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(b"".join(_record(ADD, name, tokens) for name, tokens in answers.items()))
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self._path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise


def _record(kind: bytes, name: bytes, tokens: Sequence[int] | Tokens = ()) -> bytes:
    return _HEAD.pack(MARK, kind, name, len(tokens)) + _packed(tokens)


def _records(data: bytes) -> Iterator[tuple[bytes, bytes, Tokens]]:
    """Each whole record: its kind, its name, its tokens."""
    at = data.find(MARK)
    while 0 <= at <= len(data) - _HEAD.size:
        _, kind, name, count = _HEAD.unpack_from(data, at)
        body = data[at + _HEAD.size : at + _HEAD.size + count * _TOKENS.itemsize]
        whole = (kind == ADD and count and _name(body) == name) or (kind in (USE, DROP) and not count)
        if whole:
            yield kind, name, np.frombuffer(body, _TOKENS)
        at = data.find(MARK, at + (_HEAD.size + len(body) if whole else 1))


def _make_private(folder: Path) -> None:
    """Make a folder and those above it where they are missing, mode 0700."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
