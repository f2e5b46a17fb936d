"""From runs to lines: who is divided by whom, and what is said where something is missing."""

import pytest

from engine.experiments.bench_figures import against_fixed, lines
from engine.experiments.bench_records import Line, Run


def run(mode: str, turn: int, tps: float | None, prompt: int = 0, kind: str = "chat", **more: object) -> Run:
    given = {"emitted": 60, "rounds": 60, "drafted": 0, "accepted": 0, "hindsight": 1.5, "predicted": 1.0, "plan": mode}
    return Run(kind=kind, prompt=prompt, temperature=0.0, mode=mode, turn=turn, tps=tps, **{**given, **more})  # type: ignore[arg-type]


def by_mode(runs: list[Run]) -> dict[str, Line]:
    return {line.mode: line for line in lines(runs)}


def test_runs_are_divided_by_the_same_prompt_of_the_same_turn() -> None:
    runs = [
        *(run("off", turn, tps) for turn, tps in enumerate((10.0, 20.0, 40.0))),
        *(run("auto", turn, tps) for turn, tps in enumerate((20.0, 40.0, 80.0))),
        *(run("off", turn, 5.0, prompt=1) for turn in (0, 1)),
        *(run("auto", turn, 40.0, prompt=1) for turn in (0, 1)),
    ]
    found = by_mode(runs)
    assert found["auto"].ratio == pytest.approx(4)  # the mean of 2 and 8
    assert (found["auto"].low, found["auto"].high) == pytest.approx((4, 4))
    assert (found["off"].ratio, found["off"].low, found["off"].high) == (1, 1, 1)
    assert found["off"].tps == pytest.approx(10)
    assert found["auto"].plan == "auto"


def test_figures_of_all_runs_are_put_together() -> None:
    runs = [
        run("off", 0, 10.0),
        run("auto", 0, 12.0, drafted=10, accepted=9, emitted=30, rounds=10, hindsight=2.0, predicted=4.0, plan="b"),
        run("auto", 1, 12.0, drafted=90, accepted=1, emitted=30, rounds=20, hindsight=0.5, predicted=1.0, plan="a"),
        run("auto", 2, 12.0, drafted=0, accepted=0, emitted=0, rounds=0, hindsight=None, predicted=None, plan="a"),
    ]
    line = by_mode(runs)["auto"]
    assert (line.acceptance_rate, line.mean_tokens_per_round, line.plan) == (0.1, 2.0, "a")
    assert (line.hindsight, line.predicted) == pytest.approx((1, 2))
    assert (line.ratio, line.low, line.high) == (pytest.approx(1.2), None, None)


def test_what_was_interrupted_says_what_it_can() -> None:
    found = by_mode([run("fixed 3", 0, 9.0), run("auto", 0, None), run("auto", 1, 9.0), run("off", 1, None)])
    assert [line.ratio for line in found.values()] == [None] * 3
    assert found["off"].tps is None
    assert found["off"].acceptance_rate is None
    assert lines([]) == []


def test_lines_come_kind_by_kind_and_the_modes_as_they_ran() -> None:
    runs = [run(mode, 0, 1.0, kind=kind) for kind in ("maths", "chat") for mode in ("off", "fixed 3", "auto")]
    shown = [(line.kind, line.mode) for line in lines([*runs, run("auto", 1, 1.0, kind="maths")])]
    assert shown == [(kind, mode) for kind in ("maths", "chat") for mode in ("off", "fixed 3", "auto")]


def test_the_best_length_is_chosen_in_the_other_half() -> None:
    """Length 3 is best in turns of even number, 7 in the odd ones; each is then judged where it is not."""
    speeds = {
        "off": (10, 10, 10, 10),
        "fixed 3": (20, 5, 20, 5),
        "fixed 7": (15, 8, 15, 8),
        "auto": (30, 10, 30, 10),
    }
    runs = [run(mode, turn, float(tps)) for mode, row in speeds.items() for turn, tps in enumerate(row)]
    (found,) = against_fixed(runs)
    assert found.best == ["fixed 3", "fixed 7"]
    assert found.ratio == pytest.approx((2 * 2) ** 0.5)  # 30 to the 15 of length 7, 10 to the 5 of length 3
    assert (found.low, found.high) == pytest.approx((2, 2))


def test_one_length_or_one_turn_is_no_choice() -> None:
    one = [run(mode, turn, 1.0) for mode in ("off", "fixed 3", "auto") for turn in (0, 1)]
    assert against_fixed(one) == []
    assert against_fixed([run(mode, 0, 1.0) for mode in ("off", "fixed 3", "fixed 7", "auto")]) == []
