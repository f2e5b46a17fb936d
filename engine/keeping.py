"""A conversation's caches in a folder beside it, to be taken up again by another process.

The one invariant: a cache is taken up with the very ids that it was kept with, and only by a pair that would have
computed the same.  A record says all that; it names the files of the caches and takes its place after them, so that
at any moment a folder holds what one `keep` wrote, or nothing that counts.  Processes may write to one folder at once:
the last record counts, and nobody removes what another one may still be writing.
"""

import hashlib
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from engine.calibration_store import Key, write_whole
from engine.config import Exactness, Frozen
from engine.contention import Threaded
from engine.context import Cache, Context, Marks
from engine.errors import ModelError
from engine.events import Kept, KeptOutcome, Resumed
from engine.model import TellsSize
from engine.pair import Pair

RECORD = "kept.json"
AGAIN = "the conversation is read again"
NOTHING = f"nothing was kept of it: {AGAIN}"
OLD_S = 3600.0
"""Seconds after which no process still writes a file that no record names."""
_HEAD = 1 << 12
"""Bytes at the start of a cache's file by which it is known again; the checksum of all others is among them."""

_OURS = re.compile(r"\.?(kept\.json|(target|draft)-[0-9a-f]+\.cache)(-.*\.part)?")
"""Names of files that are written here, and of those that are not whole yet."""

Role = Literal["target", "draft"]
ROLES: tuple[Role, Role] = ("target", "draft")
"""In the order of `Context.caches`."""


class Stamp(Frozen, frozen=True, kw_only=True):
    """What decides, bit for bit, what a target computes."""

    exact: Exactness
    key: Key | None
    """None for models without files."""
    any_threads: bool = False
    """Whether it is the same on any number of threads; what else is in the key decides that, so both sides agree."""


class _File(Frozen, frozen=True, kw_only=True):
    """One cache, of `length` tokens."""

    length: int
    size: int
    head: str


class _Record(Frozen, frozen=True, kw_only=True):
    stamp: Stamp
    mark: str
    """A part of its files' names, which no other record has."""
    ids: list[int]
    marks: Marks
    target: _File | None = None
    """None: it held nothing."""
    draft: _File | None = None

    def file(self, role: Role) -> _File | None:
        """What is kept of one model."""
        return self.target if role == "target" else self.draft


def stamp_of(pair: Pair) -> Stamp:
    """The stamp of a pair."""
    target = pair.target
    any_threads = isinstance(target, Threaded) and target.same_on_any_threads
    return Stamp(exact=pair.exact, key=pair.key, any_threads=any_threads)


def keep(context: Context, stamp: Stamp, folder: Path, most: int | None = None) -> Kept:
    """Write what the caches hold in place of what the folder had; where that fails it has what it had, and why is said.

    Where the models hold nothing, what is there already, or what takes more than `most` bytes, nothing is written.
    """
    held = {role: cache for role, cache in zip(ROLES, context.caches, strict=False) if cache.length}
    if not held:
        why = "there is nothing to keep: the models have read nothing yet"
        return Kept(bytes=_size(folder), outcome="nothing to keep", reason=why)
    outcome: KeptOutcome
    try:
        if _is_there(context, stamp, held, folder):
            return Kept(bytes=_size(folder))
        if why := _too_large(sum(map(_told, held.values())), most):
            return Kept(bytes=_size(folder), outcome="too large", reason=why)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        mark = secrets.token_hex(8)
        try:
            why = _write(context, stamp, held, folder, mark, most)
            outcome = "too large" if why else "kept"
        finally:
            _sweep(folder, mark)
    except (OSError, MemoryError, ModelError) as error:
        outcome, why = "failed", f"the caches cannot be kept ({_reason(error)}): {AGAIN} next time"
    return Kept(bytes=_size(folder), outcome=outcome, reason=why)


def _told(cache: Cache) -> int:
    """Bytes that a model says its cache takes; 0 where it cannot say."""
    return cache.model.saved_size() if isinstance(cache.model, TellsSize) else 0


def _too_large(size: int, most: int | None) -> str:
    """Why caches of `size` bytes are not kept; empty where they may be."""
    if most is None or size <= most:
        return ""
    return f"the caches take {size:,} bytes and may take {most:,}: {AGAIN} next time"


def _is_there(context: Context, stamp: Stamp, held: dict[Role, Cache], folder: Path) -> bool:
    """Whether the folder has just that."""
    known = _read(folder)
    if isinstance(known, str) or (known.stamp, known.ids) != (stamp, context.ids):
        return False
    lengths = {
        role: file.length for role in ROLES if (file := known.file(role)) and _path(folder, role, known).exists()
    }
    return lengths == {role: cache.length for role, cache in held.items()} and known.marks == context.marks


def _write(context: Context, stamp: Stamp, held: dict[Role, Cache], folder: Path, mark: str, most: int | None) -> str:
    """Write the files, and the record that makes them count; why not, where they have turned out too large."""
    record = _Record(stamp=stamp, mark=mark, ids=context.ids, marks=context.marks)
    files: dict[str, _File] = {}
    for role, cache in held.items():
        path = _path(folder, role, record)
        cache.model.save(path)
        path.chmod(0o600)  # whoever made the folder, and however the backend wrote
        files[role] = _File(length=cache.length, size=path.stat().st_size, head=_head(path))
        if why := _too_large(sum(file.size for file in files.values()), most):
            return why
    body = msgspec.json.encode(msgspec.structs.replace(record, **files))
    before = _read(folder)
    write_whole(folder / RECORD, _sum(body) + b"\n" + body)
    if not isinstance(before, str):
        _sweep(folder, before.mark)
    return ""


def resume(context: Context, stamp: Stamp, folder: Path) -> Resumed:
    """Take up what `keep` wrote, in place of what the context held; what cannot be is read again, and why is said.

    Where nothing of it can be, or there is no such folder, the context holds nothing: what it held is of another
    conversation, and must not be kept as this one's.
    """
    context.hold()
    draft = 0 if context.draft else None
    record = _read(folder)
    if isinstance(record, str):
        return Resumed(target=0, draft=draft, reason=record, found=record != NOTHING)
    if why := _other(record.stamp, stamp):
        return Resumed(target=0, draft=draft, reason=f"{why}: {AGAIN}")
    context.hold(record.ids, record.marks)
    why_not = [
        _take_up(cache, record.file(role), _path(folder, role, record))
        for role, cache in zip(ROLES, context.caches, strict=False)
    ]
    if not any(cache.length for cache in context.caches):
        context.hold()
    draft = context.draft.length if context.draft else None
    return Resumed(target=context.target.length, draft=draft, reason=next(filter(None, why_not), ""))


def _take_up(cache: Cache, file: _File | None, path: Path) -> str:
    """Have a model load what was kept of it; why that cannot be."""
    if file is None:
        return ""
    try:
        if path.stat().st_size != file.size or _head(path) != file.head:
            return f"the saved cache {path.name} is not the one that was kept: {AGAIN}"
        cache.load(path)
    except ModelError as error:
        return _reason(error)
    except (OSError, MemoryError) as error:
        return f"the saved cache {path.name} cannot be read ({_reason(error)}): {AGAIN}"
    return ""


def _read(folder: Path) -> _Record | str:
    """The record of a folder; a sentence where there is none."""
    try:
        said, _, body = (folder / RECORD).read_bytes().partition(b"\n")
        if said == _sum(body):
            return msgspec.json.decode(body, type=_Record)
    except FileNotFoundError:
        return NOTHING
    except (OSError, ValueError, RecursionError):
        pass
    return f"the saved caches are damaged: {AGAIN}"


def _other(kept: Stamp, here: Stamp) -> str:
    """In what two stamps differ; empty where they do not, or in nothing that counts.

    What was made in strict exactness is as good as any; strict exactness takes nothing else.
    """
    if here.exact == "strict" != kept.exact:
        return "the saved caches were made in normal exactness, and strict exactness takes only its own"
    if kept.key is None or here.key is None:
        return "" if kept.key is here.key else "the saved caches were made by other models"
    for field in Key.__struct_fields__:
        then, now = getattr(kept.key, field), getattr(here.key, field)
        if then != now and not (field == "threads" and here.any_threads):
            return _differs(field, then, now)
    return ""


_NAMES = {"file": "model file", "library": "version of the engine", "cpu": "processor"}
"""Of what a key's fields are, where values say nothing to a user."""


def _differs(field: str, then: object, now: object) -> str:
    if field in _NAMES:
        return f"the saved caches were made by another {_NAMES[field]}"
    name = {"kv": "cache type"}.get(field, field.replace("_", " "))
    return f"the saved caches were made with {name} {then}, here it is {now}"


def _path(folder: Path, role: Role, record: _Record) -> Path:
    return folder / f"{role}-{record.mark}.cache"


def _reason(error: Exception) -> str:
    """One line of proper text, whatever folders are named in it."""
    text = (error.strerror if isinstance(error, OSError) else "") or str(error) or "there is no memory left"
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.sha256(file.read(_HEAD)).hexdigest()


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _sweep(folder: Path, mark: str) -> None:
    """Remove files of ours that the record does not name: those with this mark, and those that are given up."""
    record = _read(folder)
    named = set() if isinstance(record, str) else {RECORD, *(_path(folder, role, record).name for role in ROLES)}
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in named:
            with suppress(OSError):  # gone already; on Windows while someone reads it
                if mark in path.name or time.time() - path.stat().st_mtime > OLD_S:
                    path.unlink()


def _size(folder: Path) -> int:
    """Bytes that a folder takes."""
    with suppress(OSError):
        return sum(path.stat().st_size for path in folder.iterdir())
    return 0
