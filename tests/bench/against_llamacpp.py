"""Auto against the best mode of llama.cpp's own programs on the same prompts, each relative to its own plain decoding.

Their best mode of a kind is chosen in one half of the turns and compared in the other.  `paceline bench --dump-prompts`
writes the prompts and `paceline bench --json` ours; theirs are two files of JSON lines, one for each half: "prompt"
(the file's name without .txt), "mode" ("plain" among them), and "ratio" to plain with "median", "min" and "max".

Run: python tests/bench/against_llamacpp.py ours.jsonl first_half.jsonl second_half.jsonl
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.experiments.turns import mean

PLAIN = "plain"
Spread = tuple[float, float, float]
"""Middle, least and most of ratios to plain."""


def read(path: str) -> list[dict]:
    """JSON lines."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]


def theirs(lines: Iterable[Mapping]) -> dict[str, dict[str, Spread]]:
    """By kind and mode; prompts of a kind (coding-1, coding-2) by their geometric mean."""
    found: dict[tuple[str, str], list[Mapping[str, float]]] = defaultdict(list)
    for line in lines:
        if line["mode"] != PLAIN and "ratio" in line:
            found[line["prompt"].rpartition("-")[0], line["mode"]].append(line["ratio"])
    kinds: dict[str, dict[str, Spread]] = defaultdict(dict)
    for (kind, mode), ratios in found.items():
        median, least, most = (mean([ratio[name] for ratio in ratios]) or 0.0 for name in ("median", "min", "max"))
        kinds[kind][mode] = (median, least, most)
    return kinds


def best(modes: Mapping[str, Spread]) -> tuple[str, Spread]:
    """The mode with the highest ratio; plain where none is faster."""
    return max([*modes.items(), (PLAIN, (1.0, 1.0, 1.0))], key=lambda item: item[1][0])


def main(ours: str, first: str, second: str) -> None:
    """A line a kind."""
    auto = {line["kind"]: line for line in read(ours) if line["mode"] == "auto" and line["temperature"] == 0}
    halves = [theirs(read(first)), theirs(read(second))]
    print("kind, auto to off [95 %], their best mode to plain [least, most], auto to it [least, most]")
    for kind, line in auto.items():
        if not all(kind in half for half in halves) or not line["ratio"]:
            print(f"{kind}: not in all three")
            continue
        name, _ = best(halves[0][kind])
        median, least, most = halves[1][kind].get(name, (1.0, 1.0, 1.0))
        low, high = line["low"] or line["ratio"], line["high"] or line["ratio"]
        ratio = line["ratio"] / median
        verdict = "holds" if ratio >= 1 and high / least > 1 else "does not hold"
        print(
            f"{kind}: {line['ratio']:.3f} [{low:.3f}, {high:.3f}]; {name} {median:.3f} [{least:.3f}, {most:.3f}]; "
            f"{ratio:.3f} [{low / most:.3f}, {high / least:.3f}]: {verdict}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:4])
