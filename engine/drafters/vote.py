"""What goes on from several places: while they agree it is plain, where they part they vote.

Places whose match is not above two thirds of the longest have no vote.  Those who lose one are out, so as soon as one
place is left the rest is copied from it.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import takewhile

from engine.config import MAX_DRAFT
from engine.drafters import Mark
from engine.drafters.trail import LONGEST, Place


def elect(
    places: Sequence[Place], tail: Callable[[int], list[int]], library: bool = False, near: bool = False
) -> tuple[list[int], list[Mark]]:
    """The likeliest continuation and the support of each token; the best place comes first, `tail` goes on from one.

    `library` and `near` are for all marks.
    """
    tokens: list[int] = []
    marks: list[Mark] = []
    voters = [(match, tail(at)) for match, at in places if 3 * match > 2 * places[0][0]]
    while voters:
        match, first = voters[0]
        alike = len(first) if len(voters) == 1 else _alike([way for _, way in voters])
        tokens += first[:alike]
        marks += _marks(len(voters), library, near)[match : match + alike]
        going = [(match, way) for match, way in voters if len(way) > alike]  # an answer ends, and its vote with it
        if going and len(going) == len(voters):
            votes = [way[alike] for _, way in voters]
            token = max(votes, key=votes.count)  # of equals the first, which is the best place's
            going = [(match, way) for match, way in voters if way[alike] == token]
            tokens.append(token)
            marks.append(Mark(going[0][0] + alike, len(going), len(voters) - len(going), library, near))
            alike += 1
        voters = [(match + alike, way[alike:]) for match, way in going]
    return tokens, marks


def _alike(ways: list[list[int]]) -> int:
    """For how many tokens all go on alike."""
    many = len(ways)
    if ways.count(ways[0]) == many:
        return len(ways[0])
    return sum(1 for _ in takewhile(lambda column: column.count(column[0]) == many, zip(*ways, strict=False)))


@cache
def _marks(agree: int, library: bool, near: bool) -> list[Mark]:
    """The marks of uncontested tokens, by match."""
    return [Mark(match, agree, 0, library, near) for match in range(LONGEST + MAX_DRAFT + 1)]
