"""Planners compared in seconds: recorded answers played again on cost tables, by kind of text.

`record FILE` has the coder pair's target answer the prompts of `paceline bench` and keeps the ids; with a file, every
answer is played with speculation off, at fixed lengths and in auto, on the tables below.  Auto plays them in several
orders, with one answer to each prompt in each, so that no answer is planned by another one to the same prompt; those of
an order share one experience, as they would in a chat.

Run: PACELINE_TEST_TARGET=... python tests/bench/replay.py record FILE | FILE [table]
"""

import random
import statistics
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
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
from engine.experiments.rehearsal import Recording, narrowed, rehearse
from engine.experiments.turns import mean

TABLES = {
    "q4_k_m": {1: 26.7, 2: 51.8, 3: 68.2, 4: 85.6, 5: 101, 6: 115, 7: 131, 8: 138, 16: 161, 20: 205, 24: 232, 32: 290,
               48: 403, 64: 500, 65: 530},
    "q4_0": {1: 24, 2: 45, 3: 60, 4: 45, 5: 62, 6: 77, 7: 93, 8: 77, 12: 105, 16: 106, 32: 200, 64: 390, 65: 410},
    "flat": {1: 10, 8: 10.5, 16: 11, 64: 16, 65: 16},
}  # fmt: skip
"""Milliseconds by width: the 1.5B on two cores, as shipped and as Q4_0, and a simulated GPU."""
FIXED = (3, 7, 15, 31, 63)
ORDERS = 8
SEEDS = (1, 2)
"""Of the sampled answers to each prompt."""


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
    for temperature, seed in ((0.0, SEEDS[0]), *((0.8, seed) for seed in SEEDS)):
        for name, prompt, tokens in prompts:
            request = Request(
                messages=(Message(role="user", content=prompt),),
                sampling=Sampling(temperature=temperature, seed=seed),
                max_tokens=tokens,
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
    recordings = narrowed(*msgspec.json.decode(file.read_bytes(), type=list[Recording]))
    off = [rehearse(one, Speculation(mode="off"), costs).pace for one in recordings]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for at, auto in orders(recordings, costs):
        found[recordings[at].kind]["auto"].append(auto / off[at])
    for recording, plain in zip(recordings, off, strict=True):
        line = found[recording.kind]
        for k in FIXED:
            fixed = Speculation(mode="fixed", length=k)
            line[str(k)].append(rehearse(recording, fixed, costs).pace / plain)
        right = right_offers(LookupDrafter(frozenset()), recording.prompt, recording.answer)
        line["perfect"].append(hindsight(len(recording.prompt), right, costs.target) or 1.0)
    print(f"{name}: all kinds {mean([ratio for line in found.values() for ratio in line['auto']]):.4f}")
    for kind, line in found.items():
        print(f"{kind:24}" + "".join(f"  {key} {statistics.harmonic_mean(line[key]):.2f}" for key in line))


def orders(recordings: list[Recording], costs: Costs) -> Iterator[tuple[int, float]]:
    """Which recording was played in auto, and at what pace, order after order."""
    prompts: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for at, recording in enumerate(recordings):
        prompts[recording.prompt].append(at)
    for order in range(ORDERS):
        draw = random.Random(order)
        chosen = [draw.choice(answers) for answers in prompts.values()]
        draw.shuffle(chosen)
        experience = Experience(costs, PRIORS)
        for at in chosen:
            yield at, rehearse(recordings[at], Speculation(), costs, experience).pace


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]))
    else:
        for name in sys.argv[2:] or TABLES:
            compare(Path(sys.argv[1]), name)
