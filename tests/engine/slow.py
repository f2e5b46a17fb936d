"""Definitions too slow to use, for tests to compare with."""

from collections.abc import Sequence


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the stop that is complete first begins: the slow definition."""
    for end in range(1, len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return min(starts)
    return None
