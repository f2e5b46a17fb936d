"""An answer that is kept while it comes, so that a crash costs no more than the last second of it."""

import time
from collections.abc import Callable
from dataclasses import replace

from app.store.records import Node
from app.store.store import Store
from app.transcript import Entry

EVERY_S = 1.0
"""How far apart two writes of an answer that grows are at least."""


class Growing:
    """One answer below a message; nothing is kept of it until it says something or ends.

    With `begun` it is an answer that is there already and goes on.
    """

    def __init__(
        self,
        store: Store,
        conversation: int,
        parent: int | None,
        begun: Node | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._conversation, self._parent, self._clock = store, conversation, parent, clock
        self._entry = replace(begun.entry, ending="broken off") if begun else Entry("assistant", "", None, "broken off")
        self._number = begun.id if begun else None
        self._said, self._due = False, clock()

    @property
    def number(self) -> int | None:
        """Its number in the store; None while nothing of it is kept."""
        return self._number

    def open(self, opening: str) -> None:
        """It begins in a thought that its prompt opened by this tag; empty: it does not."""
        self._entry = replace(self._entry, opening=opening)

    def add(self, text: str) -> None:
        """More of its text; written at once where the last write is long enough ago."""
        self._entry = replace(self._entry, text=self._entry.text + text)
        self._said = self._said or bool(text)
        if self._said and self._clock() >= self._due:
            self._write(self._entry)

    def end(self, entry: Entry | None = None) -> int | None:
        """The whole answer; without it, it broke off where it is.  Its number; None where it said nothing."""
        if entry is not None or self._said:
            self._write(entry or self._entry)
        return self._number

    def _write(self, entry: Entry) -> None:
        self._due = self._clock() + EVERY_S  # also where it fails, so that it is not tried with every piece
        if self._number is None:
            self._number = self._store.add(self._conversation, self._parent, entry).id
        else:
            self._store.update(self._number, entry)
