"""Small drawings out of block characters: columns, bars, stacked bars, a gauge; pure, each exactly as wide as asked."""

from collections.abc import Sequence
from itertools import pairwise

from textual.content import Content

STEPS = " ▁▂▃▄▅▆▇█"


def columns(values: Sequence[float | None], width: int, rows: int = 1, top: float | None = None) -> list[str]:
    """A column for each value, from the left; more than fit are averaged.

    The highest of them, or `top`, reaches the top; 0 is seen, None is a gap.
    """
    fitted = _fitted(values, width)
    highest = top or max((value for value in fitted if value), default=0.0)
    heights = [_eighths(value, highest, rows) for value in fitted]
    lines = ["".join(STEPS[min(8, max(0, high - 8 * row))] for high in heights) for row in reversed(range(rows))]
    return [line.ljust(width) for line in lines]


def _fitted(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    edges = [at * len(values) // width for at in range(width + 1)]
    return [_mean(values[left:right]) for left, right in pairwise(edges)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _eighths(value: float | None, highest: float, rows: int) -> int:
    if value is None or highest <= 0:
        return 0
    return max(1, min(8 * rows, round(8 * rows * value / highest)))


def bar(share: float | None, width: int, style: str, more: float = 0.0) -> Content:
    """A bar that is full at 1; empty where the share is unknown.  What may come on top of it is a broken line."""
    full, end = (round(width * min(1.0, max(0.0, part))) for part in (share or 0.0, (share or 0.0) + more))
    broken = [("╍" * (end - full), style)] if end > full else []
    return Content.assemble(("━" * full, style), *broken, ("─" * (width - end), "$border-blurred"))


def cells(shares: Sequence[float], width: int) -> list[int]:
    """How many of `width` cells each share gets: all are given, one at least for what is not 0 where there is room."""
    total = sum(shares)
    if total <= 0 or width <= 0:
        return [0] * len(shares)
    exact = [width * share / total for share in shares]
    given = [max(int(part), 1) if share > 0 else 0 for part, share in zip(exact, shares, strict=True)]
    while sum(given) < width:
        given[max(range(len(given)), key=lambda at: exact[at] - given[at])] += 1
    while sum(given) > width:
        given[max(range(len(given)), key=lambda at: (given[at] > 1, given[at] - exact[at]))] -= 1
    return given


def stacked(shares: Sequence[float], fillings: Sequence[tuple[str, str]], width: int) -> Content:
    """One bar of several parts, each of a character and a style of its own."""
    parts = zip(cells(shares, width), fillings, strict=True)
    return Content.assemble(*((character * count, style) for count, (character, style) in parts))


def gauge(needed: float | None, observed: float | None, width: int) -> Content:
    """A line from 0 to 1, full up to what is observed, with a mark at what is needed."""
    good = observed is not None and needed is not None and observed >= needed
    full = bar(observed, width, "$success" if good else "$warning")
    if needed is None or not 0 <= needed <= 1:
        return full
    mark = min(width - 1, int(needed * width))
    return Content.assemble(full[:mark], ("┃", "bold $foreground"), full[mark + 1 :])
