"""A benchmark as a picture: how many times as fast as off, measured and predicted, by kind of text; SVG.

A bar is what was measured, the line over it its bounds, the mark across it what theory says.  A panel a temperature.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from xml.sax.saxutils import escape

from engine.experiments.bench_plan import OFF
from engine.experiments.bench_records import Line

LEFT, RIGHT, TOP, HEIGHT, FOOT = 48, 16, 64, 190, 52
"""Around and in a panel."""
GROUP, BAR = 32, 20
"""Between two kinds, and a bar's width."""
COLOURS = ("#9db4cc", "#6f8fb0", "#c3b58f", "#a58fc3")
AUTO_COLOUR, THEORY, INK, GRID = "#1f6f5c", "#c2410c", "#333333", "#dddddd"
STEP = 0.5
T = TypeVar("T")


def svg(lines: Sequence[Line]) -> str:
    """The picture of all lines that have a ratio."""
    shown = [line for line in lines if line.mode != OFF and line.ratio]
    kinds, modes = _each(line.kind for line in shown), _each(line.mode for line in shown)
    temperatures = _each(line.temperature for line in shown)
    pitch = GROUP + BAR * max(1, len(modes))
    width = LEFT + max(1, len(kinds)) * pitch + RIGHT + GROUP
    height = TOP + len(temperatures) * (HEIGHT + FOOT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, 420)}" height="{height}" font-family="sans-serif" '
        f'font-size="11" fill="{INK}">',
        f'<rect width="100%" height="100%" fill="white"/>{_text(LEFT, 22, "Speed relative to no drafts", size=15)}',
        *_legend(modes),
    ]
    for number, temperature in enumerate(temperatures):
        mine = [line for line in shown if line.temperature == temperature]
        title = f"T = {temperature:g}" if temperature else "greedy"
        base = TOP + number * (HEIGHT + FOOT) + HEIGHT
        parts += _panel(title, mine, base, width, {kind: LEFT + GROUP + at * pitch for at, kind in enumerate(kinds)})
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, lines: Sequence[Line], base: float, width: float, places: dict[str, float]) -> Iterator[str]:
    """One temperature; `base` is where its bars stand, `places` where the first bar of each kind does."""
    top = max(max(line.ratio or 0, line.high or 0, line.predicted or 0) for line in lines)
    steps = max(3, int(top / STEP) + 1)
    scale = (HEIGHT - 24) / (steps * STEP)
    for step in range(steps + 1):
        y = base - step * STEP * scale
        colour = INK if step * STEP == 1 else GRID
        yield f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>'
        yield _text(LEFT - 6, y + 4, f"{step * STEP:g}", anchor="end")
    yield _text(LEFT, base - HEIGHT + 14, title, size=12)
    modes = _each(line.mode for line in lines)
    for line in lines:
        x = places[line.kind] + BAR * modes.index(line.mode)
        yield from _bar(line, x, base, scale, _colour(line.mode, modes))
    for kind, x in places.items():
        yield _text(x + BAR * len(modes) / 2, base + 16, kind, anchor="middle")


def _bar(line: Line, x: float, base: float, scale: float, colour: str) -> Iterator[str]:
    height = (line.ratio or 0) * scale
    yield f'<rect x="{x}" y="{base - height:.1f}" width="{BAR - 3}" height="{height:.1f}" fill="{colour}"/>'
    middle = x + (BAR - 3) / 2
    if line.low is not None and line.high is not None:
        low, high = base - line.low * scale, base - line.high * scale
        yield f'<line x1="{middle}" x2="{middle}" y1="{low:.1f}" y2="{high:.1f}" stroke="{INK}"/>'
    if line.predicted is not None:
        y = base - line.predicted * scale
        yield f'<line x1="{x - 1}" x2="{x + BAR - 2}" y1="{y:.1f}" y2="{y:.1f}" stroke="{THEORY}" stroke-width="2.5"/>'


def _legend(modes: Sequence[str]) -> Iterator[str]:
    x = LEFT
    for name, colour in [*((mode, _colour(mode, modes)) for mode in modes), ("theory", THEORY)]:
        height = 3 if name == "theory" else 10
        yield f'<rect x="{x}" y="{46 - height}" width="12" height="{height}" fill="{colour}"/>'
        yield _text(x + 16, 46, name)
        x += 32 + 7 * len(name)


def _colour(mode: str, modes: Sequence[str]) -> str:
    return AUTO_COLOUR if mode == "auto" else COLOURS[modes.index(mode) % len(COLOURS)]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _each(values: Iterable[T]) -> list[T]:
    """Each once, in order."""
    return list(dict.fromkeys(values))
