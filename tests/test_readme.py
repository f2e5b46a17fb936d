"""README tells the truth about the tree: every module is named in it, and every make target that it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_module_is_named_in_the_tree() -> None:
    tree = README.split("## What is where")[1].split("## Installing")[0]
    words = set(re.findall(r"\w+", tree))
    modules = [p for package in ("app", "engine", "models") for p in (ROOT / package).rglob("*.py")]
    assert modules
    missing = [str(p.relative_to(ROOT)) for p in modules if p.stem != "__init__" and not _named(p.stem, words)]
    assert missing == []


def _named(stem: str, words: set[str]) -> bool:
    """`llamacpp_batch` may be given as `_batch` behind `llamacpp`."""
    first, _, rest = stem.partition("_")
    return stem in words or (first in words and f"_{rest}" in words)


def test_every_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    texts = README + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for line in re.findall(r"^make ([a-z -]+)|`make ([a-z-]+)`", texts, re.MULTILINE):
        for target in "".join(line).split():
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
