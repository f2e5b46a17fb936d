"""Strict exactness: the same ids with speculation off, fixed and auto; greedy, or sampled by a seed.

Sampled text is compared on every third prompt.  For the target as shipped, and for a Q4_0 form of it that is made
here.  A line a prompt that differs, a line a setting.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/strict_text.py [tokens] [shipped|q4_0]...
"""

import sys
import tempfile
from pathlib import Path

from common import ask, engine, header, model_path, spec
from prompts import ALL

from engine.backends.llamacpp_library import quantize
from engine.config import Sampling

SAMPLINGS = {"greedy": Sampling(temperature=0), "T=0.8 seed 7": Sampling(temperature=0.8, seed=7)}
LENGTHS = {"shipped": ("1", "2", "auto"), "q4_0": ("1", "3", "6", "auto")}


def check(form: str, target: Path, tokens: int) -> None:
    """Compare every mode with off on every prompt."""
    loaded = engine(target, model_path("DRAFT"), n_ctx=2048, exact="strict")
    pair = loaded.pair
    print(
        f"{form}: kv {pair.kv}, flash attention {pair.flash_attention}, widths up to {pair.width_limit}; {pair.notes}"
    )
    for name, sampling in SAMPLINGS.items():
        same = dict.fromkeys(LENGTHS[form], 0)
        drafted = dict.fromkeys(LENGTHS[form], 0)
        again = 0
        prompts = ALL if sampling.greedy else ALL[::3]
        for kind, prompt in prompts:
            off = ask(loaded, prompt, sampling, spec("off"), tokens)
            for mode in LENGTHS[form]:
                on = ask(loaded, prompt, sampling, spec(mode), tokens)
                same[mode] += on.ids == off.ids
                drafted[mode] += on.speculation.drafted
                if on.ids != off.ids:
                    at = next((i for i, (a, b) in enumerate(zip(on.ids, off.ids, strict=False)) if a != b), -1)
                    print(f"  {form} {name} --spec {mode} differs at {at}: {kind}: {prompt[:40]!r}")
            if not sampling.greedy:
                again += ask(loaded, prompt, sampling, spec("off"), tokens).ids == off.ids
        counts = ", ".join(f"{mode} {same[mode]}/{len(prompts)} ({drafted[mode]} drafted)" for mode in LENGTHS[form])
        regenerated = "" if sampling.greedy else f"; regenerated {again}/{len(prompts)}"
        print(f"{form} {name}, {tokens} tokens: equal to off: {counts}{regenerated}", flush=True)
    loaded.close()


def main(tokens: int, forms: list[str]) -> None:
    """Both forms."""
    header("strict exactness as text")
    if "shipped" in forms:
        check("shipped", model_path("TARGET"), tokens)
    if "q4_0" in forms:
        with tempfile.TemporaryDirectory() as folder:
            form = Path(folder) / "target-q4_0.gguf"
            quantize(model_path("TARGET"), form, "q4_0")
            check("q4_0", form, tokens)


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    names = [a for a in sys.argv[1:] if not a.isdigit()]
    main(numbers[0] if numbers else 200, names or list(LENGTHS))
