"""Tokens a second in the window against `paceline ask`, on the same prompts and seed, whole programs taking turns.

Both are told by the engine's own clock: `ask --json` prints its figure, the window keeps it with the answer.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/window_speed.py [turns] [tokens]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common import header, model_path, spread
from terminal import ROOT, START, Terminal

from engine.experiments.turns import in_turns, ratios

PROMPTS = (
    "Explain in detail how a sailing boat can sail against the wind.",
    "Write a Python class Stack with push, pop, peek and len, and tests for each. Code only.",
)


def options(tokens: int) -> list[str]:
    """The same for both."""
    pair = ["--target", str(model_path("TARGET")), "--draft", str(model_path("DRAFT"))]
    return [*pair, "--temperature", "0", "--seed", "1", "--max-tokens", str(tokens)]


def asked(home: str, prompt: str, tokens: int) -> float:
    """Of `ask`."""
    command = [sys.executable, "-P", "-c", START.format(root=str(ROOT)), "ask", prompt, "--json", *options(tokens)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PACELINE_HOME": home}
    )
    return float(json.loads(done.stdout)["timings"]["decode_tps"])


def shown(home: str, prompt: str, tokens: int) -> float:
    """Of the window, from the answer that it kept."""
    with Terminal(home, options(tokens), (120, 40)) as terminal:
        terminal.ready()
        terminal.type(prompt + "\r")
        return float(terminal.answered(prompt).timings.decode_tps or 0)


def fresh(measured: Path, way: Callable[[str, str, int], float], prompt: str, tokens: int) -> float:
    """In a home that knows the machine, and no earlier answer that drafts could be copied from."""
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(measured / "cache", Path(home) / "cache")
        return way(home, prompt, tokens)


def main(turns: int = 4, tokens: int = 256) -> None:
    """A line a prompt, then the ratio over all."""
    header("decoding in the window against ask")
    pairs: list[float] = []
    with tempfile.TemporaryDirectory() as measured:
        asked(measured, PROMPTS[0], tokens)
        for prompt in PROMPTS:
            sides = [partial(fresh, Path(measured), way, prompt, tokens) for way in (asked, shown)]
            ask, window = in_turns(sides, turns)
            pairs += ratios(window, ask)
            told = f"ask {spread(ask, 1)}  window {spread(window, 1)}  ratio {spread(ratios(window, ask))}"
            print(f"{prompt[:40]:42}{told}", flush=True)
    print(f"window / ask: {spread(pairs)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
