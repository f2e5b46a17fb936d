"""A half answer and what goes on from it, as one.

One invariant: with greedy or coupled sampling (a seed) under the same settings, the text that comes out is what the
answer would have been, had it never been broken off; by the rejection rule it is one that might have been.
"""

from collections.abc import Sequence

from msgspec import structs

from engine.events import TokenTrace
from engine.stats import Answer, Verdict

_FROM_BEST = ("identical", "clear", "unmeasured", "near_ties", "not_greedy")
"""Kinds of verdicts."""


def whole_answer(before: Answer | None, before_text: str, more: Answer) -> Answer:
    """The record of both: their text and ids, how it begins, and the worse verdict; the rest is that of `more`.

    `before`: the record of the half that read `before_text`; None: there is none, or its ids are not known either.
    Then none are given, and what was greedy is unmeasured.
    """
    known = before if before and (before.ids or not before_text) else None
    ids = [*known.ids, *more.ids] if known else []
    return structs.replace(
        more,
        text=whole_text(before_text, more),
        ids=ids,
        verdict=_worse(known, more),
        replaces=0,
        opening=before.opening if before else more.opening,
    )


def _worse(before: Answer | None, more: Answer) -> Verdict:
    """The worse verdict of two, for the ids of both."""
    if before is None:
        return Verdict(kind="not_greedy" if more.verdict.kind == "not_greedy" else "unmeasured")
    both = before.verdict, more.verdict
    return Verdict(
        kind=max((one.kind for one in both), key=_FROM_BEST.index),
        threshold=max((one.threshold for one in both if one.threshold is not None), default=None),
        near_ties=sorted({*before.verdict.near_ties, *(at + len(before.ids) for at in more.verdict.near_ties)}),
    )


def whole_text(before: str, more: Answer) -> str:
    """The text of a half answer, and of the one that goes on from it."""
    return before[: len(before) - more.replaces] + more.text


def whole_trace(before: Sequence[TokenTrace], more: Answer, trace: Sequence[TokenTrace]) -> tuple[TokenTrace, ...]:
    """The traces of both, whose texts make `whole_text`; `trace` is that of `more`."""
    kept = list(before)
    lost = more.replaces
    for at in reversed(range(len(kept))):
        text = kept[at].text
        kept[at] = structs.replace(kept[at], text=text[: max(0, len(text) - lost)])
        lost = max(0, lost - len(text))
        if not lost:
            break
    return (*kept, *trace)
