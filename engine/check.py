"""Whether a draft fits a target, found out from their vocabularies alone, in a process that may die.

`python -P -m engine.check TARGET DRAFT` prints a Check.  llama.cpp ends the process that hands it a file which it did
not foresee, and the vocabularies of two large models take a moment: so nobody reads them who has something to lose.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from engine.client import environment, how_it_ended
from engine.config import Frozen
from engine.engines import require_torch
from engine.errors import LoadFailed
from engine.model import Vocabulary

PATIENCE = 120
"""Seconds that two vocabularies may take."""


class Check(Frozen, frozen=True, kw_only=True, tag=True):
    """The verdict on two models."""

    fit: Literal["equal", "map", "none"]
    reason: str
    target_tokens: int
    draft_tokens: int


class Unread(Frozen, frozen=True, kw_only=True, tag=True):
    """A file could not be read."""

    fault: str


def check(target: Path, draft: Path, command: list[str] | None = None) -> Check:
    """Compare the vocabularies of two models, files or folders; LoadFailed where one has none that can be read."""
    command = command or [sys.executable, "-P", "-m", "engine.check", str(target), str(draft)]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, env=environment(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadFailed(f"the vocabularies cannot be compared ({error}): try again") from error
    if done.returncode != 0:
        ended = how_it_ended(done.returncode)
        raise LoadFailed(f"the engine broke off while it read the vocabularies ({ended}): fetch the files again")
    try:
        answer = msgspec.json.decode(done.stdout.splitlines()[-1], type=Check | Unread)
    except (ValueError, IndexError) as error:
        raise LoadFailed("the vocabularies cannot be compared, the answer makes no sense: try again") from error
    if isinstance(answer, Unread):
        raise LoadFailed(answer.fault)
    return answer


def _compare(target: Path, draft: Path) -> Check:
    """Compare in this very process."""
    from engine.pairing import compare

    with _vocabulary(target) as ours, _vocabulary(draft) as theirs:
        fit = compare(ours, theirs)
        return Check(fit=fit.kind, reason=fit.reason, target_tokens=ours.size, draft_tokens=theirs.size)


@contextmanager
def _vocabulary(path: Path) -> Iterator[Vocabulary]:
    """The vocabulary of a GGUF file or of a checkpoint's folder."""
    if path.is_dir():
        require_torch()
        from engine.backends.torch_vocab import CheckpointVocabulary

        yield CheckpointVocabulary(path, _columns(path))
        return
    from engine.backends.llamacpp_vocab import open_vocabulary

    with open_vocabulary(path) as vocabulary:
        yield vocabulary


def _columns(folder: Path) -> int:
    """Width of a row of a checkpoint's logits."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return int(config.get("text_config", config)["vocab_size"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise LoadFailed(
            f"{folder.name}/config.json does not tell the size of its vocabulary: fetch it again"
        ) from error


def _main(target: str, draft: str) -> None:
    try:
        answer: Check | Unread = _compare(Path(target), Path(draft))
    except LoadFailed as error:
        answer = Unread(fault=str(error))
    sys.stdout.write("\n" + msgspec.json.encode(answer).decode() + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
