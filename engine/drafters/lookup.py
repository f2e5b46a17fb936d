"""Lookup drafting: what followed the last words the last time they stood in this conversation.

The index maps each pair of neighbouring tokens to the places right after it; it only grows with the committed ids and
is made anew when they change behind it.  (Prompt lookup decoding; Saxena 2023.)
"""

from collections.abc import Sequence

from engine.drafters import Mark, Offer, Submits, always
from engine.stats import Source
from engine.verify import Proposal

PLACES = 32
"""How many of the latest places are compared for the longest match."""
LONGEST = 32
"""Matches are not measured beyond this length."""


class LookupDrafter:
    """Copies from the longest match among the latest places; ties go to the latest."""

    source: Source = "lookup"

    def __init__(self, eog: frozenset[int]) -> None:
        self._eog = eog
        self._ids: list[int] = []
        self._places: dict[tuple[int, int], list[int]] = {}
        self._found: list[int] = []

    def begin(self, ids: Sequence[int], shared: int) -> None:
        """A new prompt that shares `shared` ids with the last one."""
        if shared < len(self._ids):
            self._ids, self._places = [], {}
        self._grow(ids)

    def offer(self, ids: Sequence[int], limit: int, ahead: Sequence[int] = ()) -> Offer | None:
        """The continuation of the longest match."""
        if ahead:
            return None
        self._grow(ids)
        place, match = self._longest()
        if not match or limit < 1:
            return None
        found = self._ids[place : place + limit]
        # a match that reaches the end of the text repeats itself
        self._found = self._until_end((found * (limit // len(found) + 1))[:limit])
        if not self._found:
            return None
        marks = [Mark(match + i) for i in range(len(self._found))]
        return Offer(self.source, len(self._found), self._found, marks)

    def propose(self, length: int, ahead: Sequence[Proposal] = (), submits: Submits = always) -> list[Proposal]:  # noqa: ARG002
        """The first `length` tokens found, as certain (one-hot) drafts."""
        return [Proposal(token, None) for token in self._found[:length]]

    def _grow(self, ids: Sequence[int]) -> None:
        start = len(self._ids)
        self._ids.extend(ids[start:])
        for at in range(max(2, start), len(self._ids)):
            # the pair that ends at the very end is entered when a token follows it
            self._places.setdefault((self._ids[at - 2], self._ids[at - 1]), []).append(at)

    def _longest(self) -> tuple[int, int]:
        best = (0, 0)
        if len(self._ids) < 2:
            return best
        for place in reversed(self._places.get((self._ids[-2], self._ids[-1]), [])[-PLACES:]):
            match = self._match(place)
            if match > best[1]:
                best = (place, match)
                if match == LONGEST:
                    break
        return best

    def _match(self, place: int) -> int:
        ids, end, length = self._ids, len(self._ids), 2
        while length < min(place, LONGEST) and ids[place - 1 - length] == ids[end - 1 - length]:
            length += 1
        return length

    def _until_end(self, found: list[int]) -> list[int]:
        for i, token in enumerate(found):
            if token in self._eog:
                return found[: i + 1]
        return found
