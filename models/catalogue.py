"""The models and pairs that can be fetched, read from the packaged catalogue.toml.

The one invariant: models and pairs share one set of ids, each of them fit to be a file name on every system.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from models.errors import UnknownModel
from models.facts import Facts
from models.text import plain

_ID: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9])?")
_RESERVED: Final = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wheel."""

    name: str
    bytes: int
    sha256: str


class Wheels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="wheels"):
    """A file that lies in pieces in the wheels of a package index."""

    version: str
    members: str
    """Pattern of the names inside the archives; the pieces are joined in the order of parts, then of numbers."""
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        """What there is to download."""
        return sum(part.bytes for part in self.parts)


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model that can be fetched."""

    id: str
    title: str
    bytes: int
    """Length of the finished file."""
    sha256: str
    """Hash of the finished file."""
    licence: str
    source: Wheels
    facts: Facts


class Pair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target and what drafts for it."""

    id: str
    title: str
    target: str
    draft: str | None = None
    """None drafts by lookup alone."""
    note: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The ids of its models, target first."""
        return (self.target,) if self.draft is None else (self.target, self.draft)


class Catalogue:
    """Models and pairs by id, in the order of every list."""

    def __init__(self, models: Mapping[str, Entry], pairs: Mapping[str, Pair]) -> None:
        self.models = dict(models)
        self.pairs = dict(pairs)
        for name in [*models, *pairs]:
            if not valid_id(name) or (name in models and name in pairs):
                raise ValueError(f"{name!r} cannot be an id in the catalogue")
        for pair in pairs.values():
            if not set(pair.models) <= models.keys():
                raise ValueError(f"the pair {pair.id!r} names a model that is not in the catalogue")

    def entries(self, id: str) -> list[Entry]:
        """The models behind an id of a model or a pair, target first; UnknownModel names what is near."""
        if id in self.pairs:
            return [self.models[name] for name in self.pairs[id].models]
        if id in self.models:
            return [self.models[id]]
        raise UnknownModel(f"there is no model or pair {plain(id, 80)!r}: {self.near(id)}")

    def near(self, id: str) -> str:
        """What to try instead of an unknown id."""
        import difflib

        close = difflib.get_close_matches(id[:100].lower(), [*self.pairs, *self.models], n=3, cutoff=0.4)
        return f"perhaps {' or '.join(close)}?" if close else "see paceline models list"


def load() -> Catalogue:
    """The packaged catalogue."""
    return parse(Path(__file__).with_name("catalogue.toml").read_bytes())


def parse(text: bytes) -> Catalogue:
    """A catalogue from TOML; ValueError where it is wrong."""
    tables = msgspec.toml.decode(text, type=dict[str, dict[str, dict[str, object]]])
    models = {name: msgspec.convert({**table, "id": name}, Entry) for name, table in tables["models"].items()}
    pairs = {name: msgspec.convert({**table, "id": name}, Pair) for name, table in tables["pairs"].items()}
    return Catalogue(models, pairs)


def valid_id(id: str) -> bool:
    """Whether an id can be a file name on every system and cannot leave its folder."""
    return bool(_ID.fullmatch(id)) and id.split(".", maxsplit=1)[0] not in _RESERVED


def id_for(name: str) -> str:
    """An id made from any file name (without its ending)."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower())[:100].strip("._-") or "model"
    return plain if valid_id(plain) else f"model-{plain}"[:100].strip("._-")
