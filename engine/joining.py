"""A half answer and what goes on from it, as one.

One invariant: what comes out is what the answer would have been, had it never been broken off.
"""

from collections.abc import Sequence

from msgspec import structs

from engine.events import TokenTrace
from engine.stats import Answer


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
