"""The user's own earlier answers, for lookup to copy from: bounded, the least recently used out first.

What was kept when it was opened stands still, sorted; what came since grows beside it.  One invariant: no run of
tokens crosses from one answer to another.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from engine.drafters.library_file import Answers, LibraryFile, name_of
from engine.drafters.places import SEPARATOR, GrowingPlaces, Index, SortedPlaces, key_of
from engine.model import Vocabulary

ORDER = 3
"""So many tokens agree at least with a place in the library."""
MOST_TOKENS = 1 << 18
"""Tokens that are kept."""
LEAST_TOKENS = 16
"""Shorter answers are not worth a place."""
FRESH_TOKENS = 1 << 15
"""So many new tokens are sorted in among the old."""
ALIKE = 0.9
"""An answer is one that was there before if it shares so many of its runs."""
SEEN = 8
"""How many of the latest places of a run are looked at to find such an answer."""


class Part:
    """Answers one after another, and where each run of theirs stands."""

    def __init__(self, text: list[int], index: Index, names: list[bytes], starts: list[int]) -> None:
        self.text, self.index = text, index
        self.used: set[bytes] = set()
        """Answers that were copied from."""
        self._names, self._starts = names, starts

    def use(self, at: int) -> None:
        """Something is copied from this place."""
        self.used.add(self.name_at(at))

    def name_at(self, at: int) -> bytes:
        """The answer that a place is in."""
        return self._names[bisect_right(self._starts, at) - 1]

    def drop(self, name: bytes) -> None:
        """Take an answer out, if it is here: nothing goes on in its place."""
        if name in self._names:
            number = self._names.index(name)
            self._names[number] = b""  # should the same be said again, it is another one
            start = self._starts[number]
            end = self.text.index(SEPARATOR, start)
            self.text[start:end] = [SEPARATOR] * (end - start)

    def tail(self, at: int, limit: int) -> list[int]:
        """What goes on from a place, to the end of its answer."""
        found = self.text[at : at + limit]
        return found[: found.index(SEPARATOR)] if SEPARATOR in found else found


def _sorted(answers: Answers) -> Part:
    """A part that stays as it is."""
    lengths = [len(tokens) + 1 for tokens in answers.values()]
    text = np.full(sum(lengths), SEPARATOR, np.int64)
    starts = [0, *np.cumsum(lengths).tolist()][: len(lengths)]
    for start, tokens in zip(starts, answers.values(), strict=True):
        text[start : start + len(tokens)] = tokens
    return Part(text.tolist(), SortedPlaces(text, ORDER), list(answers), starts)


class _GrowingPart(Part):
    """A part to which answers are added."""

    def __init__(self) -> None:
        text: list[int] = []
        self._places = GrowingPlaces(text, ORDER)
        super().__init__(text, self._places, [], [])

    def add(self, name: bytes, tokens: Sequence[int]) -> None:
        self._names.append(name)
        self._starts.append(len(self.text))
        self.text.extend((*tokens, SEPARATOR))
        self._places.grow()


class Library:
    """The answers of one tokenizer; a file that cannot be read or written costs speed, never an error."""

    def __init__(self, file: LibraryFile, most: int = MOST_TOKENS) -> None:
        self._file, self._most = file, most
        self._open()

    @classmethod
    def of(cls, folder: Path | None, vocab: Vocabulary) -> "Library | None":
        """The library for a vocabulary in a folder of the user's; None without a folder."""
        return cls(LibraryFile.of(folder, vocab)) if folder else None

    @property
    def parts(self) -> tuple[Part, Part]:
        """Where to look; others after each `add`."""
        return self._old, self._new

    def add(self, ids: Sequence[int]) -> None:
        """Take in an answer; one that is nearly the same as an earlier one takes its place, or leaves it there."""
        used = {name for part in self.parts for name in part.used}
        dropped: list[bytes] = []
        added: Answers = {}
        if len(ids) >= LEAST_TOKENS:
            alike = self._alike(ids)
            if alike is None or _replaces(ids, self._answers[alike].tolist()):
                added[name_of(ids)] = np.asarray(ids, np.uint32)
                dropped += [alike] if alike else []
            else:
                used.add(alike)
        self._file.append(used - set(dropped), dropped, added)
        self._take_in(dropped, added)

    def _take_in(self, dropped: Iterable[bytes], added: Answers) -> None:
        for part in self.parts:
            part.used.clear()
            for name in dropped:
                part.drop(name)
        for name in dropped:
            del self._answers[name]
        self._answers |= added
        for name, tokens in added.items():
            self._new.add(name, tokens.tolist())
        if len(self._new.text) >= FRESH_TOKENS:
            self._open()

    def _open(self) -> None:
        self._answers = self._file.read(self._most)
        self._old, self._new = _sorted(self._answers), _GrowingPart()

    def _alike(self, ids: Sequence[int]) -> bytes | None:
        """The answer that has nearly all that is said here."""
        runs, shared = _runs(ids), Counter[bytes]()
        for end in runs.values():
            run = ids[end - ORDER : end]
            names = {part.name_at(at) for part in self.parts for at in part.index.latest(run, SEEN)}
            shared.update(names & self._answers.keys())
        name, most = max(shared.items(), key=lambda item: item[1], default=(b"", 0))
        return name if most >= ALIKE * len(runs) else None


def _replaces(ids: Sequence[int], other: Sequence[int]) -> bool:
    """Whether nearly all of another answer is said here, and something else as well."""
    mine, theirs = _runs(ids).keys(), _runs(other).keys()
    shared = len(mine & theirs)
    return shared < len(mine) and shared >= ALIKE * len(theirs)


def _runs(ids: Sequence[int]) -> dict[int, int]:
    """Each run of tokens, and where it ends."""
    return {key_of(ids, end, ORDER): end for end in range(ORDER, len(ids) + 1)}
