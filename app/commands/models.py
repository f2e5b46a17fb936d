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
from app.cli import COMMANDS
from app.commands.meter import Meter
from app.listing import ModelRow, PairRow, model_rows, pair_rows
from app.paths import models_dir
from app.removal import remove
from models import Library, ModelsError, pull
from models.errors import NotInstalled
from models.sources.pip import PIP
from models.text import plain, size

app = App(name="models", help=COMMANDS["models"][1], version_flags=[])


app.command("app.commands.check:check", name="check", help="Say whether one model can draft for another.")


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
    for name, stays in remove(Library(models_dir()), id):
        print(f"{name} is forgotten; its file stays" if stays else f"{name} is deleted")


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


def _to_verify(library: Library, id: str | None) -> list[str]:
    if id in library.catalogue.pairs:
        return list(library.catalogue.pairs[id].models)
    if id is not None:
        return [id]
    there = [model.id for model in library.installed()]
    if not there:
        raise NotInstalled("no model is installed: paceline models pull coder")
    return there
