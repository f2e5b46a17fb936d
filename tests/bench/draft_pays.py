"""A draft model alone, with lookup put aside, against what theory says for the acceptance and the costs measured.

Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/draft_pays.py [turns] [kind]
(for instance the target of q4_0_target.py and the draft that `paceline tune` made for it)
"""

import sys
from collections import defaultdict

from common import engine, header, model_path, spread

from engine.config import Message, Request, Sampling, Speculation
from engine.drafters.lookup import LookupDrafter
from engine.engine import Engine
from engine.experiments.bench import play
from engine.experiments.bench_prompts import KINDS
from engine.experiments.theory import Drafted, predicted
from engine.experiments.turns import order, ratio_of, ratios

TOKENS = 256
MODES = (
    Speculation(mode="off"),
    *(Speculation(mode="fixed", length=length) for length in (1, 2, 3)),
    Speculation(),
)


class NoLookup(LookupDrafter):
    """Offers nothing."""

    def offer(self, *_: object) -> None:
        """Nothing."""


def run(loaded: Engine, speculation: Speculation, prompt: str) -> tuple[float, float | None, float | None, str]:
    """Tokens a second, the ratio to off that theory has, the acceptance per test, and the plan."""
    played = play(
        loaded,
        Request(
            messages=(Message(role="user", content=prompt),),
            sampling=Sampling(temperature=0),
            speculation=speculation,
            max_tokens=TOKENS,
        ),
    )
    costs, spec = loaded.pair.costs, played.answer.speculation
    draft = costs.drafts["model"].net
    rounds = [Drafted(one.drafted, draft, one.context - one.emitted) for one in played.rounds]
    theory = predicted(rounds, spec.acceptance_per_test, costs.target)
    return played.answer.timings.decode_tps or 0.0, theory, spec.acceptance_per_test, spec.plan


def main(turns: int = 4, kind: str = "coding") -> None:
    """A line a mode: the ratio to off with its interval, what theory says, and the one to the other."""
    header(f"a draft model alone on {kind}")
    loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=4096)
    for _ in loaded.study():  # what the window measures while nobody waits
        pass
    loaded._lookup = NoLookup(loaded.pair.target.vocab.eog)
    found = defaultdict[str, list[list[tuple[float, float | None, float | None, str]]]](list)
    for prompt in KINDS[kind].prompts:
        run(loaded, MODES[1], prompt)  # both models have read it
        for mode in MODES:
            found[str(mode.length or mode.mode)].append([])
        for turn in range(turns):
            for side in order(len(MODES), turn):
                mode = MODES[side]
                found[str(mode.length or mode.mode)][-1].append(run(loaded, mode, prompt))
    costs = loaded.pair.costs
    at = [(width, round(costs.target(width, 300), 1)) for width in (1, 2, 3, 4, 5, 8)]
    print(f"target passes at 300 tokens, ms by width: {at}; a drafted token {costs.drafts['model'].net:.1f}")
    off = found["off"]
    for mode, groups in found.items():
        got = [
            ratios([one[0] for one in mine], [one[0] for one in plain]) for mine, plain in zip(groups, off, strict=True)
        ]
        said = [one[1] or 0.0 for group in groups for one in group]
        kept = [one[2] or 0.0 for group in groups for one in group]
        share = [
            r / one[1]
            for rs, group in zip(got, groups, strict=True)
            for r, one in zip(rs, group, strict=True)
            if one[1]
        ]
        ratio = ratio_of(got)
        print(
            f"{mode:5} {ratio.ratio:.3f} [{ratio.low or 0:.3f}, {ratio.high or 0:.3f}]  theory {spread(said)}  "
            f"measured/theory {spread(share)}  acceptance per test {spread(kept, 2)}  {groups[-1][-1][3]}",
            flush=True,
        )
    loaded.close()


if __name__ == "__main__":
    main(*(int(one) if one.isdecimal() else one for one in sys.argv[1:]))  # type: ignore[arg-type]
