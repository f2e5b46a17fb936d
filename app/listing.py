"""What can be run, as rows: every model and pair of the catalogue, and what else is or was on this machine."""

from pathlib import Path

import msgspec

from app.choice import MOST_CONTEXT
from app.paths import shown
from models import Catalogue, Entry, Installed, Library, Pair, need
from models.fit import of_entry
from models.sources.wheels import kept


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model; a line of `paceline models list --json`."""

    id: str
    title: str
    bytes: int
    licence: str | None
    state: str
    """installed, added, partly fetched, damaged, gone, or not installed"""
    fetched_bytes: int
    path: str | None
    sha256: str | None
    """Of the file as it was last hashed; null where it has changed since or was never hashed."""


class PairRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pair; a line of `paceline models list --json`."""

    id: str
    title: str
    target: str
    draft: str | None
    bytes: int
    memory_bytes: int
    installed: bool


def model_rows(library: Library) -> list[ModelRow]:
    """Every model of the catalogue, then every other that is or was there."""
    there = {model.id: model for model in library.installed()}
    lost = library.lost()
    rows = [_catalogue_row(library, entry, there.get(entry.id)) for entry in library.catalogue.models.values()]
    rows += [_added_row(model) for model in there.values() if model.id not in library.catalogue.models]
    return rows + [_lost_row(id, path) for id, path in lost.items() if id not in library.catalogue.models]


def pair_rows(library: Library) -> list[PairRow]:
    """Every pair of the catalogue."""
    ready = {pair.id for pair in library.installed_pairs()}
    return [_pair_row(library.catalogue, pair, pair.id in ready) for pair in library.catalogue.pairs.values()]


def _catalogue_row(library: Library, entry: Entry, there: Installed | None) -> ModelRow:
    fetched = kept(entry, library)
    absent = "damaged" if library.file(entry.id).is_file() else "partly fetched" if fetched else "not installed"
    return ModelRow(
        id=entry.id,
        title=entry.title,
        bytes=entry.bytes,
        licence=entry.licence,
        state=absent if there is None else _presence(there),
        fetched_bytes=fetched if there is None else there.bytes,
        path=shown(there.path) if there else None,
        sha256=there.sha256 if there else None,
    )


def _added_row(model: Installed) -> ModelRow:
    return ModelRow(
        id=model.id,
        title=shown(model.path),
        bytes=model.bytes,
        licence=None,
        state=_presence(model),
        fetched_bytes=model.bytes,
        path=shown(model.path),
        sha256=model.sha256,
    )


def _lost_row(id: str, path: Path) -> ModelRow:
    return ModelRow(
        id=id, title=shown(path), bytes=0, licence=None, state="gone", fetched_bytes=0, path=None, sha256=None
    )


def _presence(model: Installed) -> str:
    return "added" if model.added_in_place else "installed"


def _pair_row(catalogue: Catalogue, pair: Pair, installed: bool) -> PairRow:
    entries = [catalogue.models[id] for id in pair.models]
    return PairRow(
        id=pair.id,
        title=f"{pair.title}: {pair.note}" if pair.note else pair.title,
        target=pair.target,
        draft=pair.draft,
        bytes=sum(entry.bytes for entry in entries),
        memory_bytes=need([of_entry(entry) for entry in entries], MOST_CONTEXT),
        installed=installed,
    )
