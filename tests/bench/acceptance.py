"""Acceptance per test of the draft model on code, at a fixed length of 3, by rule and temperature.

Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/acceptance.py
"""

import statistics

from common import ask, engine, header, model_path
from prompts import PROMPTS

from engine.config import Rule, Sampling, Speculation

CODE = [*PROMPTS["coding"], *PROMPTS["editing"]]


def main() -> None:
    """Print a line for each setting: tests, acceptance per test and its spread over prompts."""
    header("acceptance per test on code, fixed 3, coder pair")
    loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=2048)
    settings: list[tuple[str, Sampling, Rule]] = [
        ("T=0", Sampling(temperature=0), "rejection"),
        ("T=1.0 rejection", Sampling(temperature=1, top_k=40, top_p=0.95, min_p=0, seed=11), "rejection"),
        ("T=1.0 coupled", Sampling(temperature=1, top_k=40, top_p=0.95, min_p=0, seed=11), "coupled"),
    ]
    for name, sampling, rule in settings:
        kept, tests, single = 0, 0.0, []
        for prompt in CODE:
            done = ask(loaded, prompt, sampling, Speculation(mode="fixed", length=3, rule=rule), 200).speculation
            kept += done.accepted
            tests += done.accepted / (done.acceptance_per_test or 1)
            single.append(done.acceptance_per_test or 0.0)
        low, high = min(single), max(single)
        print(
            f"{name}: {kept / tests:.3f} over {tests:.0f} tests; by prompt {statistics.median(single):.2f} "
            f"[{low:.2f}, {high:.2f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
