"""A draft with another vocabulary: what the two share, how many drafts are kept, and the same ids on and off.

SmolLM2 drafts for the coder target through a map, beside the target's true draft; strict exactness, greedy, fixed 2.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... PACELINE_TEST_TINY=... python tests/bench/cross_vocab.py [tokens]
"""

import sys
from pathlib import Path

from common import ask, engine, header, model_path, spec
from prompts import ALL

PROMPTS = ALL[::3]
LENGTH = "2"


def check(name: str, draft: Path, tokens: int) -> None:
    """Compare fixed drafting with off on each prompt."""
    loaded = engine(model_path("TARGET"), draft, n_ctx=2048, exact="strict")
    for note in loaded.pair.notes:
        print(f"{name}: {note}")
    same = drafted = kept = 0
    tests = 0.0
    for kind, prompt in PROMPTS:
        off, on = (ask(loaded, prompt, speculation=spec(mode), max_tokens=tokens) for mode in ("off", LENGTH))
        done = on.speculation
        same += (on.ids, on.text) == (off.ids, off.text)
        drafted, kept = drafted + done.drafted, kept + done.accepted
        tests += done.accepted / (done.acceptance_per_test or 1)
        print(
            f"  {kind:<10} {'equal' if on.ids == off.ids else 'DIFFERS'}, {done.acceptance_per_test or 0:.2f}",
            flush=True,
        )
    print(
        f"{name}: equal to off {same}/{len(PROMPTS)} x {tokens} tokens; {kept}/{drafted} drafts kept, "
        f"acceptance per test {kept / tests:.2f}",
        flush=True,
    )
    loaded.close()


def main(tokens: int) -> None:
    """Both drafts."""
    header(f"a draft with another vocabulary, fixed {LENGTH}, strict, greedy")
    check("by a map", model_path("TINY"), tokens)
    check("true draft", model_path("DRAFT"), tokens)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 100)
