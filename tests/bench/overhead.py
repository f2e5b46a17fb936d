"""All that is not a model's pass, as a share of the time of an answer's rounds: planning, sampling, verification, text.

Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/overhead.py
"""

import time
from collections.abc import Sequence

from common import ask, engine, header, model_path, spec, spread

from engine.config import Rule, Sampling
from engine.model import FloatArray, Model

PROMPT = "Write a Python class for an LRU cache with get and put in constant time. Explain it briefly."
FILTERS = {
    "top-k 40, top-p 0.95": {"top_k": 40, "top_p": 0.95, "min_p": 0.0},
    "none": {"top_k": 0, "top_p": 1.0, "min_p": 0.0},
}
TURNS = 3


class Watched:
    """Adds up the time that a model's passes take."""

    def __init__(self, model: Model) -> None:
        self.seconds = 0.0
        self._forward = model.forward
        model.forward = self.forward  # type: ignore[method-assign]

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """The model's forward, timed."""
        began = time.perf_counter()
        try:
            return self._forward(tokens, rows)
        finally:
            self.seconds += time.perf_counter() - began


def main() -> None:
    """Print a line for each mode, rule and filter: the share over the turns."""
    header("what is not a pass, share of decoding")
    loaded = engine(model_path("TARGET"), model_path("DRAFT"), n_ctx=2048)
    assert loaded.pair.draft is not None
    watched = [Watched(loaded.pair.target), Watched(loaded.pair.draft)]
    for mode in ("off", "3", "auto"):
        for name, filters in FILTERS.items():
            for rule in ("rejection", "coupled"):
                shares = [one(loaded, watched, mode, filters, rule, seed) for seed in range(TURNS)]
                print(f"--spec {mode}, filters: {name}, {rule}: {spread([100 * s for s in shares], 2)} %", flush=True)


def one(loaded, watched, mode: str, filters: dict[str, float], rule: Rule, seed: int) -> float:  # type: ignore[no-untyped-def]
    """The share in one answer of 96 tokens; reading the prompt is left out, since it is in the cache already."""
    sampling = Sampling(temperature=1.0, seed=seed, **filters)  # type: ignore[arg-type]
    speculation = spec(mode)
    speculation = type(speculation)(mode=speculation.mode, length=speculation.length, rule=rule)
    ask(loaded, PROMPT, sampling, speculation, 8)
    before = sum(w.seconds for w in watched)
    began = time.perf_counter()
    ask(loaded, PROMPT, sampling, speculation, 96)
    whole = time.perf_counter() - began
    return 1 - (sum(w.seconds for w in watched) - before) / whole


if __name__ == "__main__":
    main()
