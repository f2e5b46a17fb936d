"""One prompt with speculation off and on, in turns, from the same seed: two speeds, their ratio, and the texts."""

from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from engine.config import Frozen, Request, Speculation
from engine.engine import Engine
from engine.errors import ModelError
from engine.experiments.bench import READS, Played, play
from engine.experiments.bench_plan import OFF, name
from engine.experiments.bench_records import Working
from engine.experiments.parting import Parting, parting
from engine.experiments.turns import Ratio, order, ratio_of

TURNS = 3


class Compared(Frozen, frozen=True, kw_only=True):
    """One answer in one mode."""

    mode: str
    turn: int
    tps: float | None
    ttft_s: float | None
    text: str
    ids: list[int]
    plan: str


class Speeds(Frozen, frozen=True, kw_only=True):
    """Of one mode, in order of the turns; None where it is not defined."""

    tps: list[float | None] = []
    ttft_s: list[float | None] = []


class Texts(Frozen, frozen=True, kw_only=True):
    """Whether all answers are the same, and the first difference; None where there are none in both modes."""

    verdict: Literal["identical", "differs"] | None
    first_difference: Parting | None = None


class Comparison(Frozen, frozen=True, kw_only=True):
    """What `compare --json` prints."""

    modes: dict[str, Speeds]
    ratios: dict[str, Ratio]
    """To off."""
    text: Texts


def compare(engine: Engine, request: Request, turns: int = TURNS) -> Iterator[Working | Compared]:
    """`request` with speculation off, and as it is; its seed has to be given, that both draw alike.

    ModelError where the pair cannot draft.  As in a benchmark, each run finds the prompt in both caches and knows no
    other run.
    """
    if not engine.pair.can_draft:
        raise ModelError("nothing is drafted with this model, so there is nothing to compare: take another pair")
    sides = [replace(request, speculation=Speculation(mode="off", rule=request.speculation.rule)), request]
    total = turns * len(sides)
    yield Working(what="reading the prompt", share=0.0)
    known = engine.learned
    play(engine, replace(request, speculation=READS, max_tokens=2))
    for turn in range(turns):
        for done, side in enumerate(order(len(sides), turn), turn * len(sides)):
            yield Working(what="answering", share=done / total)
            engine.learned = known
            yield _compared(sides[side].speculation, turn, play(engine, sides[side]))


def _compared(speculation: Speculation, turn: int, played: Played) -> Compared:
    answer = played.answer
    return Compared(
        mode=name(speculation),
        turn=turn,
        tps=answer.timings.decode_tps or None,
        ttft_s=answer.timings.ttft_s,
        text=answer.text,
        ids=answer.ids,
        plan=answer.speculation.plan,
    )


def comparison(engine: Engine, runs: list[Compared]) -> Comparison:
    """All runs so far, put together."""
    modes = sorted({run.mode for run in runs}, key=lambda mode: mode != OFF)
    by_mode = {mode: sorted((run for run in runs if run.mode == mode), key=lambda run: run.turn) for mode in modes}
    speeds = {
        mode: Speeds(tps=[run.tps for run in mine], ttft_s=[run.ttft_s for run in mine])
        for mode, mine in by_mode.items()
    }
    off = {run.turn: run.tps for run in by_mode.get(OFF, [])}
    ratios = {
        mode: ratio_of([[run.tps / other for run in mine if run.tps and (other := off.get(run.turn))]])
        for mode, mine in by_mode.items()
        if mode != OFF
    }
    return Comparison(modes=speeds, ratios=ratios, text=_texts(engine, by_mode))


def _texts(engine: Engine, by_mode: dict[str, list[Compared]]) -> Texts:
    """Every answer with drafts against the first without."""
    plain = by_mode.get(OFF, [])
    for run in (run for mine in by_mode.values() for run in mine):
        if plain and (run.ids, run.text) != (plain[0].ids, plain[0].text):
            found = parting(engine.pair.target.vocab.piece, plain[0].ids, run.ids)
            return Texts(verdict="differs", first_difference=found)
    return Texts(verdict="identical" if plain and len(by_mode) > 1 else None)
