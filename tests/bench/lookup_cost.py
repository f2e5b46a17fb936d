"""What lookup costs a committed token, its offer included, and what a library of earlier answers costs when opened.

Run: python tests/bench/lookup_cost.py
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import spread

from engine.drafters.library import MOST_TOKENS, Library
from engine.drafters.library_file import LibraryFile, name_of
from engine.drafters.lookup import LookupDrafter

CONTEXT = 32_768
COUNTED = 4_000
LIMIT = 63
VOCABULARY = 151_936
TURNS = 5


def main() -> None:
    """Print a line for each kind of text, without and with a full library."""
    chance = np.random.default_rng(0)
    texts = {
        "Zipf 1.05": _zipf(chance, 1.05, CONTEXT),
        "Zipf 1.3": _zipf(chance, 1.3, CONTEXT),
        "Zipf 1.05, half of it twice": _zipf(chance, 1.05, CONTEXT // 2) * 2,
        "Zipf 1.05, an eighth eight times": _zipf(chance, 1.05, CONTEXT // 8) * 8,
        "one token": [5] * CONTEXT,
        "two in turns": [5, 6] * (CONTEXT // 2),
        "two by chance": chance.integers(0, 2, CONTEXT).tolist(),
        "four by chance": chance.integers(0, 4, CONTEXT).tolist(),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = _full(chance, LibraryFile(Path(folder) / "library" / "answers", VOCABULARY))
        print(f"library of {MOST_TOKENS:,} tokens, opened: {spread(_times(lambda: Library(file)), 1)} ms", flush=True)
        for name, ids in texts.items():
            for library in (None, Library(file)):
                begun, token, worst = zip(*(_cost(ids, library) for _ in range(TURNS)), strict=True)
                print(
                    f"{name}{', library' if library else ''}: {spread(token, 1)} us a token, one of them at most"
                    f" {min(worst):.0f}; {spread(begun, 1)} ms for the prompt",
                    flush=True,
                )


def _cost(ids: list[int], library: Library | None) -> tuple[float, float, float]:
    """Milliseconds to take in the prompt, microseconds a token after it, and for the dearest of them."""
    lookup = LookupDrafter(frozenset({VOCABULARY}), library)
    start = len(ids) - COUNTED
    began = time.thread_time()
    lookup.begin(ids[:start], 0)
    begun = time.thread_time() - began
    held, took = ids[:start], []
    for token in ids[start:]:
        held.append(token)
        began = time.thread_time()
        lookup.offer(held, LIMIT)
        took.append(time.thread_time() - began)
    return begun * 1e3, sum(took) / COUNTED * 1e6, max(took) * 1e6


def _times(what: Callable[[], object]) -> list[float]:
    took = []
    for _ in range(TURNS):
        began = time.perf_counter()
        what()
        took.append((time.perf_counter() - began) * 1e3)
    return took


def _zipf(chance: np.random.Generator, exponent: float, length: int) -> list[int]:
    """Tokens as often as words are."""
    ranks = np.arange(1, VOCABULARY + 1, dtype=float) ** -exponent
    return chance.choice(VOCABULARY, length, p=ranks / ranks.sum()).tolist()


def _full(chance: np.random.Generator, file: LibraryFile) -> LibraryFile:
    """A file with somewhat more answers than are kept."""
    text, answers, at = np.array(_zipf(chance, 1.05, MOST_TOKENS + 1000), np.uint32), {}, 0
    while at < len(text):
        tokens = text[at : at + int(chance.integers(50, 400))]
        answers[name_of(tokens)] = tokens
        at += len(tokens)
    file.append((), (), answers)
    return file


if __name__ == "__main__":
    main()
