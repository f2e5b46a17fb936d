"""Where rows meet records: the one place that knows how an entry, an answer and a trace are written down.

An answer whose record another version wrote and that cannot be read here is as if it had none: its text stays.
"""

import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from app.errors import StoreError
from app.store.records import Node
from app.transcript import Ending, Entry
from engine.events import Origin, Refused, TokenTrace
from engine.stats import Answer

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ENTRY = ("role", "text", "ending", "attachments", "answer", "answer_text", "opening")
"""The columns that an entry fills."""

Row = tuple[
    int, int | None, int, int, int, Literal["user", "assistant"], str, Ending, str, bytes | None, str | None, str
]
"""Id, parent, created, version, versions, and the columns of ENTRY."""

_PIECE = 512
"""Tokens that are written down at once."""

_Traced = tuple[Origin, str, float, float | None, tuple[str, float, float | None] | None]


def stamp(time: datetime) -> int:
    """A time as the file holds it: microseconds."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def moment(stamp: int) -> datetime:
    """The time of a stamp."""
    return _EPOCH + timedelta(microseconds=stamp)


def clean(text: str) -> str:
    """The same text with a sign in place of what UTF-8 cannot hold."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def of_entry(entry: Entry) -> tuple[str | bytes | None, ...]:
    """An entry as the columns of ENTRY; what an answer says is kept once where it is the message's own text."""
    text, answer, own = clean(entry.text), None, None
    if entry.answer is not None:
        said = clean(entry.answer.text)
        own = None if said == text else said
        answer = msgspec.json.encode(msgspec.structs.replace(entry.answer, text=""))
    names = written([clean(name) for name in entry.attachments])
    return (entry.role, text, entry.ending, names, answer, own, entry.opening)


def to_node(row: Row) -> Node:
    """A node of a row."""
    number, parent, created, version, versions, role, text, ending, attachments, answer, own, opening = row
    entry = Entry(
        role,
        text,
        to_answer(answer, text if own is None else own),
        ending,
        id=number,
        version=version,
        versions=versions,
        opening=opening,
        attachments=msgspec.json.decode(attachments, type=tuple[str, ...]),
    )
    return Node(number, parent, entry, moment(created))


def to_answer(record: bytes | None, text: str | None = None) -> Answer | None:
    """The record of an answer, with a text in place of its own; None where there is none that can be read."""
    try:
        answer = msgspec.json.decode(record, type=Answer | None) if record else None
    except msgspec.DecodeError:
        return None
    return answer if answer is None or text is None else msgspec.structs.replace(answer, text=text)


def of_trace(trace: Sequence[TokenTrace]) -> bytes:
    """A trace as bytes; chances keep four digits.  It goes piece by piece, so that a long one takes no more room."""
    packer, packed = zlib.compressobj(), []
    for at in range(0, len(trace), _PIECE):
        rows = msgspec.json.encode([_row(token) for token in trace[at : at + _PIECE]])
        packed.append(packer.compress((b"," if at else b"[") + rows[1:-1]))
    return b"".join((*packed, packer.compress(b"]" if packed else b"[]"), packer.flush()))


def _row(token: TokenTrace) -> _Traced:
    other = token.refused
    return (
        token.origin,
        clean(token.text),
        _short(token.target),
        _short(token.draft),
        (clean(other.text), _short(other.target), _short(other.draft)) if other else None,
    )


def to_trace(tokens: bytes) -> tuple[TokenTrace, ...]:
    """The trace that these bytes hold."""
    try:
        rows = msgspec.json.decode(zlib.decompress(tokens), type=list[_Traced])
    except (zlib.error, msgspec.DecodeError) as error:
        raise StoreError("where the tokens of this answer came from can no longer be read: its text can") from error
    return tuple(
        TokenTrace(
            origin=origin,
            text=text,
            target=target,
            draft=draft,
            refused=Refused(text=other[0], target=other[1], draft=other[2]) if other else None,
        )
        for origin, text, target, draft, other in rows
    )


def written(value: dict[str, object] | list[str]) -> str:
    """JSON; StoreError where it cannot say this."""
    try:
        return clean(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"this cannot be kept: {error}") from error


def options(text: str) -> dict[str, object]:
    """The settings that a column holds."""
    return msgspec.json.decode(text, type=dict[str, object])


def _short(chance: float | None) -> float | None:
    return None if chance is None else float(f"{chance:.4g}")
