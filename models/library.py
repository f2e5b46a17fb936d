"""The models on this machine: files fetched into one private folder, and files added where they lie.

The one invariant: a fetched model is its id plus `.gguf` directly in the folder, and that name exists only since its
bytes were complete and right.  What cannot be read off the folder is in the index beside it.
"""

import contextlib
import os
import shutil
from pathlib import Path

import msgspec

from models import catalogue as catalogues
from models import checkpoint, gguf
from models.catalogue import Catalogue, Pair
from models.errors import ModelsError, NotInstalled, NotWritable, Truncated, UnknownModel, WrongHash
from models.facts import facts
from models.files import guarded, sha256
from models.index import Index, Record, Records, record
from models.locks import hold
from models.progress import Asked, Report, never, silent
from models.text import plain


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A model on this machine: a file, or the folder of a checkpoint."""

    id: str
    path: Path
    bytes: int
    sha256: str | None = None
    """None where the file has not been hashed since it last changed."""
    added_in_place: bool = False
    """Whether the file belongs to the user and is only pointed at."""


class Library:
    """One folder of models."""

    def __init__(self, root: Path, catalogue: Catalogue | None = None) -> None:
        self.root = root.absolute()
        self.catalogue = catalogues.load() if catalogue is None else catalogue
        self._index = Index(self.root)

    def file(self, id: str) -> Path:
        """Where the fetched file of a model belongs; UnknownModel for an id that could leave the folder."""
        if not catalogues.valid_id(id):
            raise UnknownModel(f"{plain(id)!r} cannot be the id of a model: see paceline models list")
        return self.root / f"{id}.gguf"

    def parts(self, id: str) -> Path:
        """Where the parts of a model are kept until it is complete; NotWritable where a link leads elsewhere."""
        folder = self.root / ".parts" / self.file(id).stem
        if not folder.resolve().is_relative_to(self.root.resolve()):
            raise NotWritable(f"{folder} leads out of the folder of models: remove that link")
        return folder

    def lock(self, id: str) -> Path:
        """What a process holds while it fetches or removes a model."""
        folder = self.parts(id)
        return folder.with_name(f"{folder.name}.lock")

    def path(self, id: str) -> Path | None:
        """The file of a model, or None where there is none or its length is wrong."""
        found = self._find(id, self._index.read())
        return found.path if found else None

    def resolve(self, ref: str) -> Installed:
        """The file that a catalogue id, an added id or a path means, its header checked; a path may be a checkpoint's.

        Raises NotInstalled, UnknownModel, or BadFile.
        """
        records = self._index.read()
        if ref in self.catalogue.models or ref in records:
            found = self._present(ref, records)
            gguf.check(found.path)
            return found
        if ref in self.catalogue.pairs:
            models = ", ".join(self.catalogue.pairs[ref].models)
            raise UnknownModel(f"{ref} is a pair: choose it with --pair {ref}, or name one of its models ({models})")
        return self._at_path(ref, records)

    def installed(self) -> list[Installed]:
        """Every model whose file is there: those of the catalogue in its order, then the others by id."""
        records = self._index.read()
        others = sorted(records.keys() - self.catalogue.models.keys())
        found = [self._find(id, records) for id in [*self.catalogue.models, *others]]
        return [model for model in found if model is not None]

    def installed_pairs(self) -> list[Pair]:
        """The pairs all of whose models are there."""
        there = {model.id for model in self.installed()}
        return [pair for pair in self.catalogue.pairs.values() if there.issuperset(pair.models)]

    def lost(self) -> dict[str, Path]:
        """Models that were added in place and whose file is gone or changed, with the path it had."""
        records = self._index.read()
        lost = {id: known.path for id, known in records.items() if self._find(id, records) is None}
        return {id: Path(path) for id, path in lost.items() if path is not None}

    def add(self, path: Path, report: Report = silent, cancelled: Asked = never) -> Installed:
        """Register a GGUF where it lies; one that equals a model of the catalogue gets that model's id.

        Raises NotInstalled (no such file) or BadFile.
        """
        path = _existing(path)
        facts(gguf.check(path))
        id, digest = self._recognize(path, report, cancelled)
        fetched = id is not None and self._is_file_of(id, path)
        path = self.file(id) if id is not None and fetched else path
        known = record(path, digest, in_place=not fetched)
        if id is None:
            id = self._id_for(path, self._index.read())
        self._keep(id, known)
        return _installed(id, path, known)

    def remove(self, id: str) -> None:
        """Delete a fetched model and its parts; an added one is only forgotten.  Raises NotInstalled or Busy."""
        file, parts = self.file(id), self.parts(id)
        known = self._index.read().get(id)
        owned = id in self.catalogue.models or known is None or known.path is None
        fetched = (owned and file.is_file()) or parts.is_dir()
        if not fetched and known is None:
            raise self._absent(id, {})
        with hold(self.lock(id)) if fetched else contextlib.nullcontext():
            with guarded(file):
                if owned:
                    file.unlink(missing_ok=True)
                if parts.is_dir():
                    shutil.rmtree(parts)
            self._index.update(lambda records: _forget(records, id))

    def verify(self, id: str, report: Report = silent, cancelled: Asked = never) -> Installed:
        """Hash a model's file again and compare it; the hash is kept.  Raises WrongHash, NotInstalled or BadFile."""
        records = self._index.read()
        found = self._present(id, records)
        gguf.check(found.path)
        known = record(found.path, sha256(found.path, f"checking {id}", report, cancelled), found.added_in_place)
        entry, old = self.catalogue.models.get(id), records.get(id)
        wanted = entry.sha256 if entry else old.sha256 if old else None
        if wanted not in (None, known.sha256):
            again = "add its file again" if found.added_in_place else f"paceline models pull {id}"
            raise WrongHash(f"the bytes of {id} are not the right ones any more: paceline models rm {id}, then {again}")
        with contextlib.suppress(NotWritable):
            self._keep(id, known)
        return _installed(id, found.path, known)

    def finished(self, id: str, digest: str) -> Installed:
        """Keep that a model has just been fetched and has this hash."""
        known = record(self.file(id), digest, in_place=False)
        self._keep(id, known)
        return _installed(id, self.file(id), known)

    def _is_file_of(self, id: str, path: Path) -> bool:
        """Whether a path leads to the fetched file of a model, perhaps over links."""
        with guarded(path):
            return self.file(id).exists() and path.samefile(self.file(id))

    def _keep(self, id: str, known: Record) -> None:
        self._index.update(lambda records: records.update({id: known}))

    def _find(self, id: str, records: Records) -> Installed | None:
        known, entry = records.get(id), self.catalogue.models.get(id)
        places = [self.file(id)] if entry else []
        places += [Path(known.path)] if known and known.path is not None else []
        for path in places:
            with guarded(path):
                if path.is_file() and (entry is None or path.stat().st_size == entry.bytes):
                    return _installed(id, path, known)
        return None

    def _present(self, id: str, records: Records) -> Installed:
        found = self._find(id, records)
        if found is None:
            raise self._absent(id, records)
        return found

    def _absent(self, id: str, records: Records) -> ModelsError:
        """The error that says why a model is not there."""
        entry, known = self.catalogue.models.get(id), records.get(id)
        if known and known.path is not None:
            where = plain(known.path)
            return NotInstalled(
                f"the file of {id} is gone or changed ({where}): put it back, or paceline models rm {id}"
            )
        if entry and self.file(id).is_file():
            length = self.file(id).stat().st_size
            return Truncated(
                f"{id} is damaged ({length:,} of {entry.bytes:,} bytes): paceline models pull {id} fetches it again"
            )
        if entry:
            return NotInstalled(f"{id} is not installed: paceline models pull {self._pull_name(id)}")
        return UnknownModel(f"there is no model {plain(id, 80)!r}: {self.catalogue.near(id)}")

    def _pull_name(self, id: str) -> str:
        return next((pair.id for pair in self.catalogue.pairs.values() if id in pair.models), id)

    def _at_path(self, ref: str, records: Records) -> Installed:
        if "/" not in ref and "\\" not in ref and not ref.lower().endswith(".gguf") and not os.path.exists(ref):
            raise self._absent(ref, records)
        path = _existing(Path(ref), folders=True)
        if path.is_dir():
            bytes = checkpoint.check(path)
            return Installed(id=catalogues.id_for(path.name), path=path, bytes=bytes, added_in_place=True)
        gguf.check(path)
        same = (id for id, known in records.items() if known.path == str(path))
        id = next(same, None)
        return _installed(id or catalogues.id_for(path.stem), path, records.get(id or ""), in_place=True)

    def _recognize(self, path: Path, report: Report, cancelled: Asked) -> tuple[str | None, str | None]:
        """The id of the catalogue's model that a file equals, and the file's hash if it was taken."""
        with guarded(path):
            length = path.stat().st_size
        same = [entry for entry in self.catalogue.models.values() if entry.bytes == length]
        digest = sha256(path, f"checking {plain(path.name)}", report, cancelled) if same else None
        return next((entry.id for entry in same if entry.sha256 == digest), None), digest

    def _id_for(self, path: Path, records: Records) -> str:
        """The id that a file has already, or a free one made from its name."""
        for id, known in records.items():
            if known.path == str(path):
                return id
        taken = {*records, *self.catalogue.models, *self.catalogue.pairs}
        name = catalogues.id_for(path.stem)
        numbered = (name if n == 1 else f"{name}-{n}" for n in range(1, len(taken) + 2))
        return next(id for id in numbered if id not in taken)


def _forget(records: Records, id: str) -> None:
    records.pop(id, None)


def _existing(path: Path, folders: bool = False) -> Path:
    """An absolute path to a file (or folder) that is there; links in it are kept."""
    shown = plain(str(path))
    try:
        path = path.expanduser().absolute()
        str(path).encode()
        if path.is_file() or (folders and path.is_dir()):
            return path
    except (ValueError, RuntimeError, OSError) as error:
        raise NotWritable(f"{shown} is no path that can be used: check its name") from error
    if path.is_dir():
        raise NotInstalled(f"{shown} is a folder, not a file: a checkpoint is not added, name it with --target")
    raise NotInstalled(f"{shown} is not there: give the path of a .gguf file, or an id of paceline models list")


def _installed(id: str, path: Path, known: Record | None, in_place: bool | None = None) -> Installed:
    with guarded(path):
        length = path.stat().st_size
        digest = known.hash_of(path) if known else None
    placed = (known is not None and known.path == str(path)) if in_place is None else in_place
    return Installed(id=id, path=path, bytes=length, sha256=digest, added_in_place=placed)
