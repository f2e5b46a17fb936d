"""A comparison of speculation off and on as lines for people."""

import statistics
from collections.abc import Mapping, Sequence

from engine.detokenize import sanitize
from engine.experiments.bench_plan import OFF
from engine.experiments.compare import Comparison, Speeds, Texts
from engine.experiments.turns import Ratio


def lines(told: Comparison, plans: Mapping[str, str]) -> list[str]:
    """Two speeds, their ratio, what the texts are, and why it drafted as it did."""
    found = [_speed(mode, speeds) for mode, speeds in told.modes.items()]
    found += [_ratio(mode, ratio) for mode, ratio in told.ratios.items()]
    found += _texts(told.text) if len(told.modes) > 1 else []
    return [*found, *(f"{mode}: {sanitize(plan)}" for mode, plan in plans.items() if plan and mode != OFF)]


def _speed(mode: str, speeds: Speeds) -> str:
    tps, first = _median(speeds.tps), _median(speeds.ttft_s)
    speed = "-" if tps is None else f"{tps:.1f}"
    after = "" if first is None else f", the first token after {first:.2f} s"
    return f"{mode:10}{speed:>6} tok/s{after}"


def _ratio(mode: str, ratio: Ratio) -> str:
    if ratio.ratio is None:
        return f"{mode} cannot be compared: the answer is too short"
    sure = "" if ratio.low is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"{mode} is {ratio.ratio:.2f} times as fast as off{sure}"


def _texts(texts: Texts) -> list[str]:
    if (place := texts.first_difference) is None:
        return ["the texts are the same"]
    off, on = (sanitize(text).replace("\n", "␊") for text in (place.off, place.on))
    return [f"the texts differ from token {place.token} on", f"  off: {off}", f"  on:  {on}"]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
