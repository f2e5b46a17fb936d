"""A benchmark as lines for people: a table that grows kind by kind, and what else the runs tell."""

from collections.abc import Sequence

from app.commands.prove_lines import Progress
from engine.detokenize import sanitize
from engine.experiments.bench_plan import AUTO
from engine.experiments.bench_records import Line, Rivals

HEAD = (
    f"{'kind of text':20}{'mode':9}{'tok/s':>6}{'ratio':>6}{'95 %':>13}{'kept':>6}{'round':>6}{'best':>6}{'theory':>7}"
)
"""Ratio to off and its bounds; drafts kept; tokens a round; what hindsight and theory say could be had."""
_BAR = 24


class Bar(Progress):
    """How far it is, as a bar."""

    def text(self, what: str, share: float) -> str:
        """The line in a terminal."""
        done = round(share * _BAR)
        return f"[{'#' * done}{'.' * (_BAR - done)}] {share:4.0%} {what}"


def table(lines: Sequence[Line]) -> list[str]:
    """The rows of one kind, and why auto did what it did."""
    rows = []
    for line in lines:
        rows.append(row(line))
        if line.mode == AUTO and line.plan:
            rows.append(f"{'':20}{sanitize(line.plan)}")
    return rows


def row(line: Line) -> str:
    """One mode."""
    how = f"T {line.temperature:g}" if line.temperature else "greedy"
    return (
        f"{line.kind:13}{how:7}{line.mode:9}{_cell(line.tps, 6, '.1f')}{_cell(line.ratio, 6, '.2f')}"
        f"{bounds(line.low, line.high):>13}{_cell(line.acceptance_rate, 6, '.0%')}"
        f"{_cell(line.mean_tokens_per_round, 6, '.2f')}{_cell(line.hindsight, 6, '.2f')}"
        f"{_cell(line.predicted, 7, '.2f')}"
    )


def rivals(found: Sequence[Rivals]) -> list[str]:
    """Auto against the best fixed length, where more than one was run."""
    lines = ["", "auto to the best fixed length, which was chosen in the other half of the turns:"] if found else []
    for one in found:
        how = f"T {one.temperature:g}" if one.temperature else "greedy"
        best = " and ".join(dict.fromkeys(one.best))
        lines.append(f"{one.kind:13}{how:7}{_cell(one.ratio, 6, '.2f')}{bounds(one.low, one.high):>13}  {best}")
    return lines


def bounds(low: float | None, high: float | None) -> str:
    """Two figures in brackets; nothing where there are none."""
    return "" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


def _cell(value: float | None, width: int, form: str) -> str:
    return f"{'-' if value is None else format(value, form):>{width}}"
