"""Paths that complete an `@` in the prompt: pure text on one side, one listing of a folder on the other.

The text that stands for a path has its blanks and backslashes escaped, so that a path is always one word.
"""

import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.attachments import shown

SCANNED = 5000
"""Names of a folder that are looked at."""
OFFERED = 50
"""Paths that are offered at once."""
WORD = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\.)*)$")


@dataclass(frozen=True)
class Candidate:
    """A file or folder that the word may mean."""

    path: Path
    folder: bool
    word: str
    """The word behind the @ that names it; a folder's ends with a slash."""

    @property
    def shown(self) -> str:
        """Its name as one line."""
        return shown(self.path.name) + ("/" if self.folder else "")


def word_before(line: str) -> str | None:
    """What stands behind the @ of the last word of a line; None where its last word has none."""
    found = WORD.search(line)
    return found[1] if found else None


def candidates(word: str, base: Path) -> list[Candidate]:
    """What a word may mean, folders first; names that begin like it stand before those that contain it."""
    plain = re.sub(r"\\(.)", r"\1", word)
    parent, slash, part = plain.rpartition("/")
    try:
        with os.scandir((base / (parent + slash)).expanduser()) as entries:
            names = [(entry.name, entry.is_dir(), Path(entry.path)) for entry in islice(entries, SCANNED)]
    except (OSError, ValueError, RuntimeError):
        return []
    wanted = part.casefold()
    found = [
        (not name.casefold().startswith(wanted), not folder, name.casefold(), name, path)
        for name, folder, path in names
        if wanted in name.casefold() and name.startswith(".") <= part.startswith(".") and _is_text(name)
    ]
    return [
        Candidate(path, not file, _escaped(parent + slash + name) + ("" if file else "/"))
        for _, file, _, name, path in sorted(found)[:OFFERED]
    ]


def _escaped(path: str) -> str:
    return re.sub(r"([\s\\])", r"\\\1", path)


def _is_text(name: str) -> bool:
    """Whether the system's name of a file is text at all."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
