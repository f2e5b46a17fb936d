"""Lookup drafting: what followed the last words when they stood here before, or in an earlier answer.

One invariant: between two calls the index holds committed ids and nothing else, so what is on offer depends on them
alone, and on where offers were asked for before.  (Prompt lookup decoding; Saxena 2023.)
"""

from collections.abc import Sequence

from engine.config import MAX_DRAFT
from engine.drafters import Mark, Offer, Submits, always
from engine.drafters.library import Library, Part
from engine.drafters.places import GrowingPlaces
from engine.drafters.trail import FRESH, LONGEST, Place, Trail
from engine.drafters.vote import elect
from engine.stats import Source
from engine.verify import Proposal

NEAR = 12
"""Tokens by which copying may have been thrown off by an edit, so that it goes on near where it would be."""
THROWN_OFF = 24
"""Tokens after which it is no longer looked for there."""
WORTH = 3
"""Tokens of a match that this is worth."""
BEGUN = 4
"""The match from which on copying is going on."""


class LookupDrafter:
    """Copies what follows the longest match; where several match about as far, what most of them go on with.

    A match of one token counts where there is no longer one; one in the library where it is longer than any here.
    After an edit copying goes on near where it was, so a short match there is worth more than elsewhere.
    """

    source: Source = "lookup"

    def __init__(self, eog: frozenset[int], library: Library | None = None) -> None:
        self._eog, self._library = eog, library
        self._ids: list[int] = []
        self._singles, self._pairs = GrowingPlaces(self._ids, 1), GrowingPlaces(self._ids, 2)
        self._here = Trail(self._ids, self._pairs)
        self._parts: list[tuple[Part, Trail]] = []
        self._found: list[int] = []
        self._going: tuple[int, int] | None = None
        """The place that copying was about to go on from, and how many ids there were then."""
        self._copied: tuple[Part, int] | None = None
        """Where in the library the last offer is copied from."""
        self.begin((), 0)

    def begin(self, ids: Sequence[int], shared: int) -> None:
        """A new prompt that shares `shared` ids with the last one."""
        self._shrink(shared)
        self._here.forget()
        self._going = None
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
        expected = self._expected()
        here = here or self._ones(expected)
        near = False
        if expected is not None and here:
            here.sort(key=lambda place: (place[0] + WORTH * _is_near(place[1], expected), place), reverse=True)
            near = _is_near(here[0][1], expected)
        best = here[0][0] if here else 0
        if keep and (near or best >= BEGUN):
            self._going = here[0][1], len(ids)
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
        return elect(here, lambda at: self._tail(at, limit), near=near)

    def _expected(self) -> int | None:
        """Where copying would be by now, had nothing been edited; None where none is going on."""
        if self._going is None:
            return None
        place, length = self._going
        since = len(self._ids) - length
        return place + since if since <= THROWN_OFF else None

    def _ones(self, expected: int | None) -> list[Place]:
        """Places that agree by one token: the nearest to what is expected, and the latest."""
        latest = self._singles.latest(self._ids, FRESH)
        if expected is not None and self._ids:
            last, end = self._ids[-1], len(self._ids) - 1
            near = [at for at in range(max(1, expected - NEAR), min(expected + NEAR, end)) if self._ids[at - 1] == last]
            if near:
                latest = [min(near, key=lambda at: abs(at - expected)), *latest]
        return [(1, at) for at in latest]

    def _tail(self, at: int, limit: int) -> list[int]:
        """What goes on from a place here; where that reaches the end of the text it repeats itself."""
        found = self._ids[at : at + limit]
        return found if len(found) == limit else (found * (limit // len(found) + 1))[:limit]


def _is_near(place: int, expected: int) -> bool:
    return abs(place - expected) <= NEAR
