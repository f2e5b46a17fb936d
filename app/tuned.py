"""Drafts that `paceline tune` made: files in a folder beside the models, each with a record of what it was made for.

The one invariant: a tuned draft is used only while its record names the very files and the machine at hand; the record
is written last and goes first, so a file without one is nothing.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

import msgspec

from app.paths import models_dir
from engine.config import EngineConfig
from engine.identity import cpu_model, file_identity
from models.catalogue import id_for
from models.files import guarded, make_private, move, replacing, sweep
from models.locks import hold
from models.space import require

LIBRARY = "llama-cpp-python"


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What a tuned draft holds for; another value of any field makes it void."""

    draft: str
    """The content of the file that it was made from."""
    target: str
    machine: str
    """The processor and the library that was measured on."""
    gpu_layers: int


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one."""

    id: str
    draft: str
    """The id of the model that it was made from."""
    target: str
    """The id of the model that it drafts for."""
    form: str
    """What was made of it, in words."""
    bytes: int
    ms: float
    """Milliseconds of a pass over one token, before and after, as they were measured in turns."""
    ms_before: float
    acceptance: float
    acceptance_before: float
    gain: float
    """Tokens per millisecond that were expected, relative to no drafts."""
    gain_before: float
    basis: Basis

    @property
    def path(self) -> Path:
        """Its file."""
        return folder() / f"{self.id}.gguf"


def folder() -> Path:
    """Where they are kept."""
    return models_dir() / "tuned"


def id_of(target: str, draft: str) -> str:
    """The id of the draft tuned for a target."""
    return id_for(f"{draft}-for-{target}")


def machine() -> str:
    """This processor, and the library that runs models on it."""
    return f"{cpu_model()}; {LIBRARY} {metadata.version(LIBRARY)}"


def basis(config: EngineConfig) -> Basis:
    """What would be tuned for here and now; OSError where a file cannot be read."""
    assert config.draft is not None
    return Basis(
        draft=file_identity(config.draft),
        target=file_identity(config.target),
        machine=machine(),
        gpu_layers=config.gpu_layers,
    )


def records() -> list[Tuned]:
    """All that are there, by id; a record that cannot be read or whose file is not whole counts as none."""
    found = []
    for path in sorted(folder().glob("*.json")):
        with suppress(OSError, msgspec.DecodeError):
            known = msgspec.json.decode(path.read_bytes(), type=Tuned)
            if known.id == path.stem and known.path.stat().st_size == known.bytes:
                found.append(known)
    return found


def find(config: EngineConfig) -> Tuned | None:
    """What was made of this draft for this target on this machine, if anything."""
    known = named(id_of(config.target_name, config.draft_name))
    with suppress(OSError):
        if known and known.basis == basis(config):
            return known
    return None


def state(tuned: Tuned) -> str:
    """Whether a tuned draft is used, in words."""
    if tuned.basis.machine != machine():
        return "not used, as it was made on another machine or library: paceline tune"
    return f"{tuned.ms_before:.1f} to {tuned.ms:.1f} ms a token, {tuned.gain:.2f} times the speed of no drafts expected"


def named(id: str) -> Tuned | None:
    """The one of this id, whatever it was made for."""
    return next((one for one in records() if one.id == id), None)


@contextmanager
def workplace(needed: int) -> Iterator[Path]:
    """A folder for forms in the making, gone afterwards; Busy while another process has one, NoSpace."""
    home = make_private(folder())
    with hold(home / ".lock"):
        sweep(home)
        _sweep_unnamed(home)
        require(home, needed, "tuning")
        place = Path(tempfile.mkdtemp(prefix=f"tmp-{os.getpid()}-", dir=home))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _sweep_unnamed(home: Path) -> None:
    """Delete files whose record is gone or wrong: nothing would ever use them."""
    known = {one.path for one in records()}
    for path in home.glob("*.gguf"):
        if path not in known:
            path.unlink(missing_ok=True)


def keep(file: Path, tuned: Tuned) -> None:
    """Take a finished file over, in place of an older one of the same id."""
    record = tuned.path.with_suffix(".json")
    with guarded(tuned.path):
        record.unlink(missing_ok=True)
        move(file, tuned.path)
    with replacing(record) as written, guarded(record):
        written.write(msgspec.json.format(msgspec.json.encode(tuned)))


def remove(id: str) -> None:
    """Delete one with its record."""
    path = folder() / f"{id}.gguf"
    with guarded(path):
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
