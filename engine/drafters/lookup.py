"""Lookup drafting: what followed the last words when they stood here before, or in an earlier answer.

One invariant: between two calls the index holds committed ids and nothing else, so what is on offer depends on them
alone.  (Prompt lookup decoding; Saxena 2023.)
"""

from collections.abc import Sequence

from engine.config import MAX_DRAFT
from engine.drafters import Mark, Offer, Submits, always
from engine.drafters.library import Library, Part
from engine.drafters.places import GrowingPlaces
from engine.drafters.trail import FRESH, LONGEST, Trail
from engine.drafters.vote import elect
from engine.stats import Source
from engine.verify import Proposal


class LookupDrafter:
    """Copies what follows the longest match; where several match about as far, what most of them go on with.

    A match of one token counts where there is no longer one; one in the library where it is longer than any here.
    """

    source: Source = "lookup"

    def __init__(self, eog: frozenset[int], library: Library | None = None) -> None:
        self._eog, self._library = eog, library
        self._ids: list[int] = []
        self._singles, self._pairs = GrowingPlaces(self._ids, 1), GrowingPlaces(self._ids, 2)
        self._here = Trail(self._ids, self._pairs)
        self._parts: list[tuple[Part, Trail]] = []
        self._found: list[int] = []
        self._copied: tuple[Part, int] | None = None
        """Where in the library the last offer is copied from."""
        self.begin((), 0)

    def begin(self, ids: Sequence[int], shared: int) -> None:
        """A new prompt that shares `shared` ids with the last one."""
        self._shrink(shared)
        self._here.forget()
        self._parts = [(part, Trail(part.text, part.index)) for part in (self._library.parts if self._library else ())]
        self._append(ids[len(self._ids) :])

    def offer(self, ids: Sequence[int], limit: int, ahead: Sequence[int] = ()) -> Offer | None:
        """The likeliest continuation of the ids and then `ahead`."""
        self._append(ids[len(self._ids) :])
        self._append(ahead)
        try:
            tokens, marks = self._continuation(min(limit, MAX_DRAFT), keep=not ahead)
        finally:
            self._shrink(len(ids))
        if not self._eog.isdisjoint(tokens):
            tokens = tokens[: 1 + next(at for at, token in enumerate(tokens) if token in self._eog)]
        self._found = tokens
        return Offer(self.source, len(tokens), tokens, marks[: len(tokens)]) if tokens else None

    def propose(self, length: int, ahead: Sequence[Proposal] = (), submits: Submits = always) -> list[Proposal]:  # noqa: ARG002
        """The first `length` tokens found, as certain (one-hot) drafts."""
        if length and self._copied:
            part, at = self._copied
            part.use(at)
        return [Proposal(token, None) for token in self._found[:length]]

    def _append(self, tokens: Sequence[int]) -> None:
        if tokens:
            self._ids.extend(tokens)
            self._singles.grow()
            self._pairs.grow()

    def _shrink(self, length: int) -> None:
        if length < len(self._ids):
            self._singles.shrink(length)
            self._pairs.shrink(length)
            del self._ids[length:]

    def _continuation(self, limit: int, keep: bool) -> tuple[list[int], list[Mark]]:
        ids = self._ids
        self._copied = None
        if limit < 1:
            return [], []
        here = self._here.find(ids)
        if keep:
            self._here.keep(ids, here)
        here = here or [(1, at) for at in self._singles.latest(ids, FRESH)]
        best = here[0][0] if here else 0
        for part, trail in self._parts if best < LONGEST else ():
            places = trail.find(ids)
            if keep:
                trail.keep(ids, places)
            if places and places[0][0] > best:
                here, (best, at) = places, places[0]
                self._copied = part, at
        if self._copied:
            part = self._copied[0]
            return elect(here, lambda at: part.tail(at, limit), library=True)
        return elect(here, lambda at: self._tail(at, limit))

    def _tail(self, at: int, limit: int) -> list[int]:
        """What goes on from a place here; where that reaches the end of the text it repeats itself."""
        found = self._ids[at : at + limit]
        return found if len(found) == limit else (found * (limit // len(found) + 1))[:limit]
