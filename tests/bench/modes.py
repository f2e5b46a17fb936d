"""Decoding speed of auto and of fixed 3 (draft model) against off, by kind of text, in turns on one loaded pair.

A first look; the planner's own benchmark is to come.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/modes.py [turns]
"""

import sys

from common import ask, engine, header, in_turns, model_path, ratios, spec, spread
from prompts import PROMPTS

TOKENS = 160


def main(turns: int) -> None:
    """A line a kind."""
    header(f"greedy, {TOKENS} tokens, ratio to off")
    loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=2048)
    for kind, prompts in PROMPTS.items():
        prompt = prompts[0]
        plans: dict[str, str] = {}

        def run(mode: str, prompt: str = prompt, plans: dict[str, str] = plans) -> float:
            answer = ask(loaded, prompt, speculation=spec(mode), max_tokens=TOKENS)
            plans[mode] = answer.speculation.plan
            return answer.timings.decode_tps or 0.0

        run("off")
        off, auto, fixed = in_turns([lambda: run("off"), lambda: run("auto"), lambda: run("3")], turns)
        print(
            f"{kind}: off {spread(off, 1)} tok/s; auto {spread(ratios(auto, off), 2)}; "
            f"fixed 3 {spread(ratios(fixed, off), 2)}; auto: {plans['auto']}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
