"""`paceline models`: what can be fetched and what is there, and the commands that change it.

The one invariant: progress goes to stderr, results to stdout; what went wrong leaves as a ModelsError.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from app import tuned
from app.choice import MOST_CONTEXT
from app.cli import COMMANDS
from app.commands.meter import Meter
from app.paths import models_dir, shown
from models import Catalogue, Entry, Installed, Library, ModelsError, Pair, need, pull
from models.errors import NotInstalled
from models.fit import of_entry
from models.sources.pip import PIP
from models.sources.wheels import kept
from models.text import plain, size

app = App(name="models", help=COMMANDS["models"][1], version_flags=[])


app.command("app.commands.check:check", name="check", help="Say whether one model can draft for another.")


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model in `list --json`."""

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
    """One pair in `list --json`."""

    id: str
    title: str
    target: str
    draft: str | None
    bytes: int
    memory_bytes: int
    installed: bool


@app.command(name="list")
def list_models(*, json: bool = False) -> None:
    """Show the models and pairs that can be fetched, and what is installed.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    """
    library = Library(models_dir())
    models, pairs, made = model_rows(library), pair_rows(library), tuned.records()
    if json:
        print(msgspec.json.encode({"models": models, "pairs": pairs, "tuned": made}).decode())
        return
    print("pairs")
    _table([(p.id, size(p.bytes), "installed" if p.installed else "not installed", _about(p)) for p in pairs])
    print("\nmodels")
    _table([(m.id, size(m.bytes), m.licence or "", _state(m), plain(m.title)) for m in models])
    if made:
        print("\ntuned drafts")
        _table([(one.id, size(one.bytes), one.form) for one in made])
    if not any(row.installed for row in pairs):
        print("\nfetch a pair: paceline models pull coder")


@app.command(name="pull")
def pull_models(id: str, /) -> None:
    """Fetch a model, or both models of a pair; an interrupted pull goes on where it stopped.

    Parameters
    ----------
    id
        A model or a pair of `paceline models list`.
    """
    pull_into(Library(models_dir()), id)


@app.command(name="add")
def add_model(path: Path, /) -> None:
    """Register a GGUF file where it lies; it is neither moved nor copied.

    Parameters
    ----------
    path
        The file.
    """
    with Meter(sys.stderr) as meter:
        added = Library(models_dir()).add(path, meter.report)
    print(f"{added.id} is {plain(str(added.path))} ({size(added.bytes)})")


@app.command(name="rm")
def remove_models(id: str, /) -> None:
    """Delete a fetched model, both of a pair, or a tuned draft; a file that was added is only forgotten.

    What was tuned from a model goes with it.

    Parameters
    ----------
    id
        A model, a pair or a tuned draft of `paceline models list`.
    """
    library = Library(models_dir())
    there = [] if tuned.named(id) else _to_remove(library, id)
    for name, in_place in there:
        library.remove(name)
        print(f"{name} is forgotten; its file stays" if in_place else f"{name} is deleted")
    gone = {id, *(name for name, _ in there)}
    for one in tuned.records():
        if not gone.isdisjoint((one.id, one.draft, one.target)):
            tuned.remove(one.id)
            print(f"{one.id} is deleted")


@app.command(name="verify")
def verify_models(id: Annotated[str | None, Parameter(show_default=False)] = None, /) -> None:
    """Hash installed files again and compare them with what was published.

    Parameters
    ----------
    id
        A model or a pair; without it all that is installed.
    """
    library = Library(models_dir())
    failed: list[ModelsError] = []
    for name in _to_verify(library, id):
        try:
            with Meter(sys.stderr) as meter:
                checked = library.verify(name, meter.report)
            print(f"{name} is right: sha256 {checked.sha256}")
        except ModelsError as error:
            failed.append(error)
    if len(failed) > 1:
        raise ModelsError("; ".join(map(str, failed))) from failed[0]
    if failed:
        raise failed[0]


def pull_into(library: Library, id: str, pip: Sequence[str] = PIP) -> None:
    """Pull with a progress line on stderr and the result on stdout."""
    try:
        with Meter(sys.stderr) as meter:
            there = pull(id, library, meter.report, pip=pip)
    except KeyboardInterrupt:
        print("paceline: interrupted: finished parts are kept, run it again to go on from there", file=sys.stderr)
        raise
    total = size(sum(model.bytes for model in there))
    print(f"{id} is ready ({total}): {', '.join(model.id for model in there)}")


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


def _about(pair: PairRow) -> str:
    return f"{pair.title} (memory {size(pair.memory_bytes)})"


def _state(model: ModelRow) -> str:
    return f"{model.state}, {size(model.fetched_bytes)}" if model.state == "partly fetched" else model.state


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows in columns; the last one is as wide as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  " + "  ".join([*cells, row[-1]]).rstrip())


def _to_remove(library: Library, id: str) -> list[tuple[str, bool]]:
    """The models to remove and whether each only points at a file of the user's."""
    added = {model.id for model in library.installed() if model.added_in_place} | library.lost().keys()
    if id not in library.catalogue.pairs:
        return [(id, id in added)]
    rows = {row.id: row.state for row in model_rows(library)}
    there = [name for name in library.catalogue.pairs[id].models if rows[name] != "not installed"]
    if not there:
        raise NotInstalled(f"{id} is not installed: there is nothing to remove (see paceline models list)")
    return [(name, name in added) for name in there]


def _to_verify(library: Library, id: str | None) -> list[str]:
    if id in library.catalogue.pairs:
        return list(library.catalogue.pairs[id].models)
    if id is not None:
        return [id]
    there = [model.id for model in library.installed()]
    if not there:
        raise NotInstalled("no model is installed: paceline models pull coder")
    return there
