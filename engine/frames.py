"""Frames between the engine's process and the app: a length of four bytes, then msgpack of one tagged record.

What is packed on one side is equal to what is unpacked on the other; a frame that is cut or no frame is an error of
its own, never a half-read record.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from engine import errors
from engine.config import EngineConfig, Frozen, Request, Speculation
from engine.events import Event, Failed, HostEvent

LIMIT = 64 * 2**20
"""Bytes that one frame may hold."""
HEADER = struct.Struct(">I")


class Command(Frozen, frozen=True, kw_only=True, tag=True):
    """Anything that the app asks of the host."""


class Load(Command, frozen=True, kw_only=True):
    """Load a pair in place of the one there is; answered by Loading, then Loaded or Failed."""

    config: EngineConfig


class Ask(Command, frozen=True, kw_only=True):
    """Answer a conversation; answered by answer events up to Finished, or Failed."""

    request: Request


class Keep(Command, frozen=True, kw_only=True):
    """Write the caches to a folder; answered by Kept, or Failed."""

    folder: Path
    most: int | None = None
    """Bytes that they may take; None: any."""


class Resume(Command, frozen=True, kw_only=True):
    """Take up what was kept in a folder; answered by Resumed, or Failed."""

    folder: Path


class Prepare(Command, frozen=True, kw_only=True):
    """Read ahead what will be asked, as long as there is nothing else to do; answered by Noted at once.

    One that comes while a job waits or runs is dropped: it was said of a conversation that the job changes.
    """

    request: Request


class Count(Command, frozen=True, kw_only=True):
    """Count the tokens of texts; answered by Counted, beside all else, in the order of these commands."""

    texts: list[str]


class Stop(Command, frozen=True, kw_only=True):
    """End the load or the answer that is running; answered by Noted at once."""


class SetSpeculation(Command, frozen=True, kw_only=True):
    """Draft otherwise from the next round on; answered by Noted at once."""

    speculation: Speculation


class Quit(Command, frozen=True, kw_only=True):
    """Stop and exit."""


class Noted(Event, frozen=True, kw_only=True):
    """A Stop, SetSpeculation or Prepare has been taken in."""


class Counted(Event, frozen=True, kw_only=True):
    """How many tokens each text has."""

    counts: list[int]
    failed: str = ""
    """Why they cannot be counted."""


Job = Load | Ask | Keep | Resume | Prepare
"""What is done one after another."""
AnyCommand = Job | Stop | SetSpeculation | Count | Quit
Remark = Noted | Counted
"""What the host says beside its jobs; each kind in the order of its commands."""
Reply = HostEvent | Remark
Record = Command | Event
R = TypeVar("R")


class BadFrame(Exception):
    """What came over the pipe is no frame of ours."""


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return os.fsencode(value)
    raise NotImplementedError(f"no frame holds a {type(value).__name__}")


def _rich(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, bytes):
        return Path(os.fsdecode(value))
    raise NotImplementedError(f"no frame holds a {kind.__name__}")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
commands: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand, dec_hook=_rich)
replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply, dec_hook=_rich)


def pack(record: Record) -> bytes:
    """One frame; ConfigError where it would be larger than LIMIT, a text is no Unicode, or a number has 65 bits."""
    try:
        body = _encoder.encode(record)
    except UnicodeEncodeError as error:
        raise errors.ConfigError(f"a text is not valid Unicode: remove {error.object[error.start]!a}") from error
    except OverflowError as error:
        raise errors.ConfigError("a number in the settings is too large: take a smaller one") from error
    if len(body) > LIMIT:
        raise errors.ConfigError(f"a message of {len(body):,} bytes is over the limit of {LIMIT:,}: shorten it")
    return HEADER.pack(len(body)) + body


def length(header: bytes) -> int:
    """Bytes that follow this header; BadFrame where it cannot be one."""
    size: int = HEADER.unpack(header)[0]
    if size > LIMIT:
        raise BadFrame(f"a frame of {size:,} bytes is over the limit of {LIMIT:,}")
    return size


def unpack(body: bytes, decoder: msgspec.msgpack.Decoder[R]) -> R:
    """The record in the body of a frame; BadFrame where there is none."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, errors.ConfigError) as error:
        raise BadFrame(f"a frame cannot be read: {error}") from error


def read(stream: BinaryIO, decoder: msgspec.msgpack.Decoder[R]) -> Iterator[R]:
    """Records until the stream ends; BadFrame where it ends inside a frame."""
    while header := stream.read(HEADER.size):
        if len(header) < HEADER.size:
            raise BadFrame("the stream ends inside a header")
        size = length(header)
        body = stream.read(size)
        if len(body) < size:
            raise BadFrame(f"the stream ends {size - len(body):,} bytes short of a frame")
        yield unpack(body, decoder)


def failed(error: errors.EngineError) -> Failed:
    """An error as a reply: its class, its text on one line, its numbers."""
    numbers = {name: value for name, value in vars(error).items() if isinstance(value, int)}
    return Failed(kind=type(error).__name__, message=" ".join(str(error).split()), numbers=numbers)


def error_of(reply: Failed) -> errors.EngineError:
    """The error that a reply tells of; a kind that is not in the tree is an EngineError."""
    named = getattr(errors, reply.kind, None)
    kind = named if isinstance(named, type) and issubclass(named, errors.EngineError) else errors.EngineError
    error: errors.EngineError = kind.__new__(kind, reply.message)
    vars(error).update(reply.numbers)
    return error


__all__ = [
    "LIMIT",
    "AnyCommand",
    "Ask",
    "BadFrame",
    "Command",
    "Count",
    "Counted",
    "Job",
    "Keep",
    "Load",
    "Noted",
    "Prepare",
    "Quit",
    "Remark",
    "Reply",
    "Resume",
    "SetSpeculation",
    "Stop",
    "commands",
    "error_of",
    "failed",
    "length",
    "pack",
    "read",
    "replies",
    "unpack",
]
