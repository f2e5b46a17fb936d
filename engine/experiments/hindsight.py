"""The fastest schedule that a perfect planner could have made of the same lookup drafts.

From a finished answer it is known which drafts were right, so how many to draft at each place is a shortest path: from
place i a pass over k + 1 tokens, k of them right, leads to place i + k + 1.  The invariant: every schedule that an
engine with lookup alone could have kept to is one of these paths, so none is faster.
"""

from collections.abc import Iterable, Sequence

from engine.config import MAX_DRAFT
from engine.costs import Surface
from engine.drafters.lookup import LookupDrafter


def hindsight(prompt: int, right: Sequence[int], cost: Surface) -> float | None:
    """How many times as fast as single passes; None of an empty answer.

    `right` says for each place of the answer how many of the tokens on offer there were its next ones, `prompt` how
    many tokens stood before it.
    """
    if not right:
        return None
    places = len(right)
    best = [0.0] * (places + 1)
    for place in reversed(range(places)):
        most = min(right[place], places - place - 1)
        best[place] = min(cost(k + 1, prompt + place) + best[place + k + 1] for k in range(most + 1))
    return sum(cost(1, prompt + place) for place in range(places)) / best[0]


def right_offers(
    lookup: LookupDrafter, prompt: Sequence[int], answer: Sequence[int], most: int = MAX_DRAFT
) -> list[int]:
    """How many tokens of each offer along an answer were right, up to `most`."""
    lookup.begin(prompt, 0)
    ids, found = list(prompt), []
    for place, token in enumerate(answer):
        offer = lookup.offer(ids, most) if most else None
        found.append(_agreeing(offer.tokens, answer[place:]) if offer else 0)
        ids.append(token)
    return found


def _agreeing(offered: Iterable[int], said: Iterable[int]) -> int:
    count = 0
    for one, other in zip(offered, said, strict=False):
        if one != other:
            break
        count += 1
    return count
