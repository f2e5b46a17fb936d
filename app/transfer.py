"""Conversations as files of the user's: out as Markdown or JSON by the name's ending, in again from that JSON.

The one invariant: a file that is there already is replaced only when the same name is given twice, and always whole.
"""

import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import TransferError
from app.paths import shown

if TYPE_CHECKING:
    from app.store.store import Store

LONGEST = 60
"""Characters of a title that go into the name of a file."""
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


def file_name(title: str, ending: str = ".md") -> str:
    """A name for the file of a conversation: letters, marks and digits of its title, fit for every system."""
    kept = "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in title)
    name = "-".join(kept.split())[:LONGEST].strip("-")
    return f"{name if name and not _RESERVED.fullmatch(name) else 'conversation'}{ending}"


def given(path: str) -> Path:
    """What the user wrote as a path; TransferError where it can be none."""
    try:
        file = Path(path.strip()).expanduser().absolute()
        file.exists()
    except (RuntimeError, ValueError, OSError) as error:
        raise TransferError(f"{path.strip()} is no path that can be used: give another") from error
    if "\0" in path:  # which newer Pythons only call absent
        raise TransferError("a path holds no zero bytes: give another")
    return file


class Export:
    """Writes one conversation; where the file is there already, the first call with a name only says so."""

    def __init__(self, store: "Store", id: int) -> None:
        self._store, self._id = store, id
        self._refused: Path | None = None

    def __call__(self, path: str) -> Path:
        """Write it, as JSON where the name ends in .json; raises TransferError, StoreError or a ModelsError."""
        from models.files import replacing

        file = given(path)
        self._check(file)
        text = self._text(file.suffix.lower() == ".json")
        with replacing(file) as written:
            written.write(text.encode("utf-8", "replace"))
        return file

    def _check(self, file: Path) -> None:
        if file.is_dir():
            raise TransferError(f"{shown(file)} is a folder: add the name of a file to it")
        if not file.parent.is_dir():
            raise TransferError(f"there is no folder {shown(file.parent)}: give one that is there")
        if file.exists() and file != self._refused:
            self._refused = file
            raise TransferError(f"{shown(file.name)} is there already: Enter again replaces it")

    def _text(self, as_json: bool) -> str:
        from app.store import exchange

        return exchange.to_json(self._store, self._id) if as_json else exchange.to_markdown(self._store.get(self._id))


def take_in(store: "Store", path: str) -> int:
    """Read an exported JSON file as a new conversation; its number.  Raises TransferError or StoreError."""
    from app.store import exchange

    file = given(path)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TransferError(f"{shown(file.name)} is no text: give a .json file that was exported here") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TransferError(f"{shown(file)} cannot be read ({reason}): give a .json file") from error
    return exchange.from_json(store, text)
