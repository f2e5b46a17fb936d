"""Strict exactness: the same ids with speculation off, fixed and auto; greedy, and sampled by a seed.

On forty prompts.  For the target as shipped, and for a Q4_0 form of it that is made here.  A line a prompt that
differs, a line a setting.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/strict_text.py [tokens] [shipped|q4_0]...
[--modes=MODE,MODE]
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import ask, engine, header, model_path, spec
from prompts import FORTY

from engine.backends.llamacpp_library import quantize
from engine.config import Sampling
from engine.context import common_prefix

SAMPLINGS = {"greedy": Sampling(temperature=0), "T=0.8 seed 7": Sampling(temperature=0.8, seed=7)}
LENGTHS = {"shipped": ("1", "2", "auto"), "q4_0": ("1", "3", "6", "auto")}


def check(form: str, target: Path, tokens: int, modes: Sequence[str]) -> None:
    """Compare every mode with off on every prompt."""
    loaded = engine(target, model_path("DRAFT"), n_ctx=2048, exact="strict")
    pair = loaded.pair
    print(
        f"{form}: kv {pair.kv}, flash attention {pair.flash_attention}, widths up to {pair.width_limit}; {pair.notes}"
    )
    for name, sampling in SAMPLINGS.items():
        same = dict.fromkeys(modes, 0)
        drafted = dict.fromkeys(modes, 0)
        for kind, prompt in FORTY:
            off = ask(loaded, prompt, sampling, spec("off"), tokens)
            for mode in modes:
                on = ask(loaded, prompt, sampling, spec(mode), tokens)
                same[mode] += on.ids == off.ids
                drafted[mode] += on.speculation.drafted
                if on.ids != off.ids:
                    at = common_prefix(on.ids, off.ids)
                    print(f"  {form} {name} --spec {mode} differs at {at}: {kind}: {prompt[:40]!r}")
        counts = ", ".join(f"{mode} {same[mode]}/{len(FORTY)} ({drafted[mode]} drafted)" for mode in modes)
        print(f"{form} {name}, {tokens} tokens: equal to off: {counts}", flush=True)
    loaded.close()


def main(tokens: int, forms: list[str], modes: list[str]) -> None:
    """The forms asked for."""
    header("strict exactness as text")
    if "shipped" in forms:
        check("shipped", model_path("TARGET"), tokens, modes or LENGTHS["shipped"])
    if "q4_0" in forms:
        with tempfile.TemporaryDirectory() as folder:
            form = Path(folder) / "target-q4_0.gguf"
            quantize(model_path("TARGET"), form, "q4_0")
            check("q4_0", form, tokens, modes or LENGTHS["q4_0"])


if __name__ == "__main__":
    chosen = [a.partition("=")[2].split(",") for a in sys.argv[1:] if a.startswith("--modes=")]
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    names = [a for a in sys.argv[1:] if a in LENGTHS]
    main(numbers[0] if numbers else 200, names or list(LENGTHS), chosen[0] if chosen else [])
