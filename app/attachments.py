"""Text files that a message carries: read once, told from a drop, and made a part of the message's text.

One invariant: `split(joined(text, files), names)` gives back the text and the files, since the fence around a file is
longer than any run of its sign inside.
"""

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from app import paths
from app.cells import one_line
from app.errors import AttachmentRefused
from engine.detokenize import sanitize

MAX_BYTES = 512 * 1024
"""The largest file that is attached; more than any context of today's small models holds."""
KEPT = "paceline draft with files: "
"""What is more than a text begins with where it is kept."""
MAX_DROP = 8192
"""The longest text that can be a drop of files."""
KIND = re.compile(r"[A-Za-z0-9+#_-]{1,16}")
"""A suffix that may stand behind a fence."""


@dataclass(frozen=True)
class Attachment:
    """A text file as it was when it was attached."""

    name: str
    """One line that can be shown as it is."""
    text: str
    """Its lines, with line feeds alone between them and none at the end."""
    size: int
    """Bytes on the disk."""

    @property
    def block(self) -> str:
        """The file as a message carries it: its name, and its text in a fence of its own."""
        longest = max((len(run) for run in re.findall("`+", self.text)), default=0)
        fence = "`" * max(3, longest + 1)
        kind = Path(self.name).suffix[1:]
        return f"{self.name}:\n{fence}{kind if KIND.fullmatch(kind) else ''}\n{self.text}\n{fence}"


@dataclass(frozen=True)
class Draft:
    """What is about to be sent: what was typed, and the files that go with it."""

    text: str
    files: tuple[Attachment, ...] = ()

    @property
    def message(self) -> str:
        """The whole text of the message."""
        return joined(self.text.strip("\n") if self.text.strip() else "", self.files)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its files."""
        return tuple(file.name for file in self.files)


@dataclass(frozen=True)
class Unsent:
    """What is typed in a conversation and not sent."""

    draft: Draft
    anew: int | None = None
    """The message that it is to be another version of."""
    aside: Draft = Draft("")
    """What was typed before that."""


def as_kept(unsent: Unsent) -> str:
    """It as one text that `of_kept` reads: the text itself where there is nothing else."""
    draft = unsent.draft
    if unsent.anew is None and not draft.files:
        return draft.text
    table: dict[str, object] = {"text": draft.text, "files": [asdict(file) for file in draft.files]}
    if unsent.anew is not None:
        table |= {"anew": unsent.anew, "aside": as_kept(Unsent(unsent.aside))}
    return KEPT + json.dumps(table)


def of_kept(text: str) -> Unsent:
    """What was kept as this text."""
    if not text.startswith(KEPT):
        return Unsent(Draft(text))
    try:
        said = json.loads(text.removeprefix(KEPT))
        draft = Draft(str(said["text"]), tuple(Attachment(**file) for file in said["files"]))
        anew = said.get("anew")
        return Unsent(draft, None if anew is None else int(anew), of_kept(str(said.get("aside", ""))).draft)
    except (ValueError, TypeError, KeyError, RecursionError):  # somebody typed that
        return Unsent(Draft(text))


def joined(text: str, files: Sequence[Attachment]) -> str:
    """A message: its files first, then what was typed, a blank line between any two."""
    return "\n\n".join([*(file.block for file in files), *([text] if text else [])])


def split(message: str, names: Sequence[str]) -> tuple[str, tuple[Attachment, ...]]:
    """What was typed and the files of a message that carries files of these names; no files where it does not."""
    rest, files = message, list[Attachment]()
    for name in names:
        head = re.match(re.escape(name) + r":\n(`{3,})[^`\n]*\n", rest)
        end = rest.find(f"\n{head[1]}", head.end()) if head else -1
        if head is None or end < 0:
            return message, ()
        text = rest[head.end() : end]
        files.append(Attachment(name, text, len(text.encode("utf-8", "replace"))))
        rest = rest[end + 1 + len(head[1]) :].removeprefix("\n\n")
    return rest, tuple(files)


def read(path: Path) -> Attachment:
    """A file as text; AttachmentRefused says in one line why it cannot be."""
    name = shown(path.name)
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise AttachmentRefused(f"{name} is a folder: name a file in it")
        if not stat.S_ISREG(about.st_mode):
            raise AttachmentRefused(f"{name} is no file that can be read as text")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise AttachmentRefused(f"there is no file {shown(str(path))}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such name"
        raise AttachmentRefused(f"{name} cannot be read ({reason}): check its rights") from error
    return _text(name, data, max(about.st_size, len(data)))


def _text(name: str, data: bytes, size: int) -> Attachment:
    if len(data) > MAX_BYTES:
        raise AttachmentRefused(f"{name} is too large ({size / 1024:,.0f} KiB): {MAX_BYTES // 1024} KiB is the most")
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise AttachmentRefused(f"{name} is no text: only text files can be attached")
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = plain_lines(data.decode(encoding)).rstrip("\n")
    except UnicodeDecodeError as error:
        raise AttachmentRefused(f"{name} is no text in UTF-8: convert it first") from error
    if not text.strip():
        raise AttachmentRefused(f"{name} is empty: there is nothing to attach")
    return Attachment(name, text, size)


def plain_lines(text: str) -> str:
    """Text with line feeds alone as line ends, and control characters made visible."""
    return sanitize(text.replace("\r\n", "\n").replace("\r", "\n"))


def shown(name: str) -> str:
    """A name of a file as one line that can be shown, whatever it is made of."""
    return one_line(paths.shown(name))


def dropped(text: str) -> tuple[Path, ...]:
    """The files of a drop onto the terminal, which pastes their paths; none where the text is anything else.

    A path comes bare, in quotes, with blanks escaped, or as a file:// address; several have blanks or line ends
    between them.  All must be whole paths of files that are there.
    """
    text = text.strip()
    if not text or len(text) > MAX_DROP:
        return ()
    for pieces in _readings(text):
        found = [path for piece in pieces if (path := _file(piece)) is not None]
        if found and len(found) == len(pieces):
            return tuple(found)
    return ()


def _readings(text: str) -> Iterator[list[str]]:
    """The ways in which a text can be a list of paths."""
    yield [text]
    yield text.splitlines()
    for posix in (True, False):
        with suppress(ValueError):
            yield [piece if posix else piece.strip("\"'") for piece in shlex.split(text, posix=posix)]


def _file(piece: str) -> Path | None:
    """The file that a piece of a drop names, if it does."""
    with suppress(OSError, ValueError, RuntimeError):
        if piece.startswith("file:"):
            piece = unquote(urlsplit(piece).path)
            if os.name == "nt":
                piece = piece.lstrip("/")
        path = Path(piece).expanduser()
        if path.is_absolute() and path.is_file():
            return path
    return None
