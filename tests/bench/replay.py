"""Planners compared in seconds: recorded answers played again on cost tables, by kind of text.

`record FILE` has the coder pair's target answer the prompts of `paceline bench` and keeps the ids; with a file, every
answer is played with speculation off, at fixed lengths and in auto, on the tables below or on the one that `bench`
measured.  Answers share one experience, in order, as they would in a chat; each half is judged by what was learned on
the way there.  Run: PACELINE_TEST_TARGET=... python tests/bench/replay.py record FILE | FILE [table]
"""

import statistics
import sys
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path

import msgspec
from common import engine, model_path

from engine.acceptance import PRIORS
from engine.config import Message, Request, Sampling, Speculation
from engine.costs import Costs
from engine.drafters.lookup import LookupDrafter
from engine.events import Finished
from engine.experience import Experience
from engine.experiments.bench_prompts import KINDS
from engine.experiments.hindsight import hindsight, right_offers
from engine.experiments.rehearsal import Recording, rehearse

TABLES = {
    "q4_k_m": {1: 28, 2: 47, 3: 60, 4: 72, 5: 91, 6: 106, 7: 123, 8: 128, 16: 146, 20: 194, 24: 222, 32: 254, 48: 373,
               64: 461, 65: 490},
    "q4_0": {1: 24, 2: 45, 3: 60, 4: 45, 5: 62, 6: 77, 7: 93, 8: 77, 12: 105, 16: 106, 32: 200, 64: 390, 65: 410},
    "flat": {1: 10, 8: 10.5, 16: 11, 64: 16, 65: 16},
}  # fmt: skip
"""Milliseconds by width: the 1.5B on two cores, as shipped and as Q4_0, and a simulated GPU."""
FIXED = (3, 7, 15, 31, 63)
LEAST = 256
"""Tokens of an answer that is recorded, or more where its kind has more."""


def table(name: str) -> Costs:
    """Between widths on the line."""
    ms = TABLES[name]
    known = sorted(ms)

    def cost(width: int, _context: int) -> float:
        place = bisect_left(known, width)
        if known[place] == width:
            return ms[width]
        low, high = known[place - 1], known[place]
        return ms[low] + (ms[high] - ms[low]) * (width - low) / (high - low)

    return Costs(cost)


def record(file: Path) -> None:
    """Answers of the target to all prompts, greedy and sampled."""
    loaded = engine(model_path("TARGET"), n_ctx=8192)
    found = []
    prompts = [(name, prompt, kind.tokens) for name, kind in KINDS.items() for prompt in kind.prompts]
    for temperature in (0.0, 0.8):
        for name, prompt, tokens in prompts:
            request = Request(
                messages=(Message(role="user", content=prompt),),
                sampling=Sampling(temperature=temperature, seed=1),
                max_tokens=max(LEAST, tokens),
            )
            *_, last = loaded.answer(request)
            assert isinstance(last, Finished)
            ids = loaded.context.ids[: last.answer.cache.prompt_tokens]
            found.append(Recording(kind=f"{name} {temperature}", prompt=tuple(ids), answer=tuple(last.answer.ids)))
            print(found[-1].kind, len(ids), len(last.answer.ids), last.answer.timings.decode_tps, flush=True)
            file.write_bytes(msgspec.json.encode(found))


def compare(file: Path, name: str) -> None:
    """A line a kind: ratios to off."""
    costs = table(name)
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    experience = Experience(costs, PRIORS)
    for recording in msgspec.json.decode(file.read_bytes(), type=list[Recording]):
        off = rehearse(recording, Speculation(mode="off"), costs).pace
        right = right_offers(LookupDrafter(frozenset()), recording.prompt, recording.answer)
        line = {"auto": rehearse(recording, Speculation(), costs, experience).pace / off}
        line |= {str(k): rehearse(recording, Speculation(mode="fixed", length=k), costs).pace / off for k in FIXED}
        line["perfect"] = hindsight(len(recording.prompt), right, costs.target) or 1.0
        found[recording.kind].append(line)
    print(name)
    for kind, lines in found.items():
        means = {key: statistics.harmonic_mean([line[key] for line in lines]) for key in lines[0]}
        print(f"{kind:24}" + "".join(f"  {key} {value:.2f}" for key, value in means.items()))


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]))
    else:
        for name in sys.argv[2:] or TABLES:
            compare(Path(sys.argv[1]), name)
