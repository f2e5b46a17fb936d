"""The places of a text that agree with the end of a conversation, carried along as it grows.

A place that agreed and goes on with the token that came agrees one token further; others come in from the index.  So
nothing is searched twice.  One invariant: a match is exact, up to LONGEST.
"""

from collections.abc import Sequence

from engine.drafters.places import SEPARATOR, Index

LONGEST = 64
"""Matches are not measured beyond this length."""
FRESH = 8
"""How many of the latest places come into view at a token."""
KEPT = 8
"""How many are carried along: those that agree longest, of equals the latest."""


Place = tuple[int, int]
"""The tokens before a place that agree, and the number of the token that goes on from it; the better is the greater."""


class Trail:
    """The places of one text; `ids` may be that text itself."""

    def __init__(self, text: Sequence[int], index: Index) -> None:
        self._text, self._index = text, index
        self._places: list[Place] = []
        self._length = 0

    def find(self, ids: Sequence[int]) -> list[Place]:
        """The places that agree with the end of `ids`, which begin with those of the last `keep`; the best first."""
        fresh = self._index.latest(ids, FRESH)
        if not fresh:  # then nothing is carried along, since that would be among them
            return []
        text, found = self._text, self._carried(ids)
        for at in fresh:
            if at not in found:
                found[at] = self._match(ids, at)
        places = [(match, at) for at, match in found.items() if text[at] != SEPARATOR]
        places.sort(reverse=True)
        return places[:KEPT]

    def keep(self, ids: Sequence[int], places: list[Place]) -> None:
        """Carry along from here what was found for `ids`."""
        self._places, self._length = places, len(ids)

    def forget(self) -> None:
        """The ids are others than they were."""
        self._places, self._length = [], 0

    def _carried(self, ids: Sequence[int]) -> dict[int, int]:
        text, came = self._text, len(ids) - self._length
        if not self._places:
            return {}
        if came == 1:
            token = ids[-1]
            return {at + 1: min(match + 1, LONGEST) for match, at in self._places if text[at] == token}
        new = ids[self._length :]
        return {at + came: min(match + came, LONGEST) for match, at in self._places if text[at : at + came] == new}

    def _match(self, ids: Sequence[int], at: int) -> int:
        text, end = self._text, len(ids)
        match, most = self._index.order, min(at, end, LONGEST)
        while match < most and text[at - 1 - match] == ids[end - 1 - match]:
            match += 1
        return match
