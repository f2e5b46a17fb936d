"""Same seed, T=0.8, strict: the text of `paceline ask` with speculation off and on, each from a process of its own.

Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/same_seed.py [tokens]
"""

import json
import os
import subprocess
import sys
import tempfile

from common import header, model_path
from prompts import ALL

MODES = ("off", "2", "auto", "off")
COMMAND = [sys.executable, "-P", "-c", "from app.cli import main; main()", "ask"]


def ids(prompt: str, mode: str, tokens: int, home: str) -> list[int]:
    """The ids of one answer by a fresh process."""
    options = ["--target", str(model_path("TARGET")), "--draft", str(model_path("DRAFT")), "--ctx", "2048"]
    options += ["--exact", "strict", "--seed", "7", "--temperature", "0.8", "--max-tokens", str(tokens), "--json"]
    done = subprocess.run(
        [*COMMAND, *options, "--spec", mode, "--", prompt],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PACELINE_HOME": home},
    )
    if done.returncode:
        sys.exit(done.stderr)
    return list(json.loads(done.stdout)["ids"])


def main(tokens: int) -> None:
    """A line a prompt."""
    header("same seed, T=0.8, strict, a new process each time")
    with tempfile.TemporaryDirectory() as home:
        for kind, prompt in ALL[::5]:
            first, *others = [ids(prompt, mode, tokens, home) for mode in MODES]
            print(
                f"{kind}: {[other == first for other in others]} (--spec {', '.join(MODES[1:])} against off)",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
