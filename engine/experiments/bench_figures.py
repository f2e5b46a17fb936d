"""From runs to figures: pure functions, so that a run that was interrupted is worth what it did.

A run is divided only by the run without drafts to the same prompt, at the same temperature, in the same turn.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from engine.experiments.bench_plan import AUTO, OFF
from engine.experiments.bench_records import Line, Rivals, Run
from engine.experiments.turns import mean, middle, ratio_of

Groups = list[list[float]]
"""Figures by prompt, in order of the turns."""


def lines(runs: Sequence[Run]) -> list[Line]:
    """A line for each kind, temperature and mode, in the order in which they first ran."""
    cells: dict[tuple[str, float, str], list[Run]] = defaultdict(list)
    for run in runs:
        cells[run.kind, run.temperature, run.mode].append(run)
    firsts = {cell: at for at, cell in enumerate(dict.fromkeys(key[:2] for key in cells))}
    ordered = sorted(cells, key=lambda key: firsts[key[:2]])  # which leaves the modes as they came
    return [_line(cells[key], cells[*key[:2], OFF]) for key in ordered]


def against_fixed(runs: Sequence[Run]) -> list[Rivals]:
    """Auto against the best fixed length, for each kind and temperature at which more than one length was run."""
    found = []
    for kind, temperature in dict.fromkeys((run.kind, run.temperature) for run in runs):
        here = [run for run in runs if (run.kind, run.temperature) == (kind, temperature)]
        fixed = list(dict.fromkeys(run.mode for run in here if run.mode not in (OFF, AUTO)))
        if len(fixed) > 1 and (rivals := _rivals(here, fixed)):
            found.append(rivals)
    return found


def _line(runs: Sequence[Run], off: Sequence[Run]) -> Line:
    first, drafted = runs[0], sum(run.drafted for run in runs)
    rounds = sum(run.rounds for run in runs)
    ratio = ratio_of(_ratios(runs, off))
    return Line(
        kind=first.kind,
        temperature=first.temperature,
        mode=first.mode,
        tps=middle(_by_prompt((run.prompt, run.tps) for run in runs if run.tps)),
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        acceptance_rate=sum(run.accepted for run in runs) / drafted if drafted else None,
        mean_tokens_per_round=sum(run.emitted for run in runs) / rounds if rounds else None,
        hindsight=_mean(runs, lambda run: run.hindsight),
        predicted=_mean(runs, lambda run: run.predicted),
        plan=Counter(run.plan for run in runs).most_common(1)[0][0],
    )


def _mean(runs: Sequence[Run], figure: Callable[[Run], float | None]) -> float | None:
    """The geometric mean over all runs."""
    return mean([value for run in runs if (value := figure(run))])


def _ratios(ours: Iterable[Run], theirs: Iterable[Run]) -> Groups:
    """Ours to theirs, by prompt, of the turns in which both have a speed."""
    speeds = {(run.prompt, run.turn): run.tps for run in theirs}
    pairs = ((run.prompt, run.tps, speeds.get((run.prompt, run.turn))) for run in ours)
    return _by_prompt((prompt, tps / other) for prompt, tps, other in pairs if tps and other)


def _by_prompt(figures: Iterable[tuple[int, float]]) -> Groups:
    groups: dict[int, list[float]] = defaultdict(list)
    for prompt, figure in figures:
        groups[prompt].append(figure)
    return list(groups.values())


def _rivals(runs: Sequence[Run], fixed: Sequence[str]) -> Rivals | None:
    """Turns of even number choose for the odd ones, and these for the even ones; None where a half is missing."""
    halves = [[run for run in runs if run.turn % 2 == half] for half in (0, 1)]
    best = [_best(half, fixed) for half in halves]
    if None in best:
        return None
    chosen = [name for name in best if name]
    groups: Groups = []
    for half, rival in zip(halves, reversed(chosen), strict=True):
        groups += _ratios(_in_mode(half, AUTO), _in_mode(half, rival))
    ratio = ratio_of(groups)
    first = runs[0]
    return Rivals(
        kind=first.kind,
        temperature=first.temperature,
        best=chosen,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
    )


def _best(runs: Sequence[Run], fixed: Sequence[str]) -> str | None:
    """The fixed length with the highest ratio to off in these turns."""
    found = {name: middle(_ratios(_in_mode(runs, name), _in_mode(runs, OFF))) for name in fixed}
    return max((name for name in fixed if found[name]), key=lambda name: found[name] or 0.0, default=None)


def _in_mode(runs: Sequence[Run], name: str) -> list[Run]:
    return [run for run in runs if run.mode == name]
