"""Normal exactness: does the verdict name every place where drafting changed a greedy text, and how often is it clear?

On forty prompts: each answer with drafts against the one without; the first difference has to be among the near ties
of the verdict.  A line a difference, a line a mode.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/verdicts.py [tokens mode...]
"""

import sys
from collections import Counter

from common import ask, engine, header, model_path, spec
from prompts import FORTY

from engine.config import Sampling
from engine.context import common_prefix

GREEDY = Sampling(temperature=0)


def main(tokens: int, modes: list[str]) -> None:
    """All prompts in all modes."""
    header("verdicts in normal exactness")
    loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=2048)
    print(f"the most that wide passes were seen to change: {loaded.pair.change}")
    kinds = {mode: Counter[str]() for mode in modes}
    differ, named, ties = (dict.fromkeys(modes, 0) for _ in range(3))
    for kind, prompt in FORTY:
        off = ask(loaded, prompt, GREEDY, spec("off"), tokens)
        for mode in modes:
            on = ask(loaded, prompt, GREEDY, spec(mode), tokens)
            kinds[mode][on.verdict.kind] += 1
            ties[mode] += len(on.verdict.near_ties)
            if on.ids != off.ids:
                at = common_prefix(on.ids, off.ids)
                differ[mode] += 1
                named[mode] += at in on.verdict.near_ties
                print(f"  --spec {mode} differs at {at}, near ties {on.verdict.near_ties}: {kind}: {prompt[:40]!r}")
    for mode in modes:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds[mode].items()))
        print(
            f"--spec {mode}, {tokens} tokens, {len(FORTY)} prompts: {counts}; {ties[mode]} near ties in all; "
            f"{differ[mode]} texts differ, {named[mode]} of them first at a near tie",
            flush=True,
        )
    loaded.close()


if __name__ == "__main__":
    given = sys.argv[1:] or ["200", "auto", "3"]
    main(int(given[0]), given[1:])
