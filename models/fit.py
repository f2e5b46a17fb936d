"""How much memory models need, how much there is, and the longest context for which the one fits the other.

The one invariant: every estimate errs on the large side.  The parts of `need` follow what llama.cpp reports for its
buffers (weights as in the file; the cache in blocks of 256 tokens; one buffer for the sums of a batch of 512).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from models import checkpoint
from models.catalogue import Entry
from models.facts import Facts, facts
from models.gguf import read

CacheType = Literal["f16", "q8_0", "q4_0"]

STEP: Final = 256
"""Contexts are multiples of this many tokens."""
_BATCH: Final = 512
_BYTES_PER_32: Final[dict[CacheType, int]] = {"f16": 64, "q8_0": 34, "q4_0": 18}
_COMPUTE: Final = 24 << 20
_PROCESS: Final = 96 << 20
_UNLIMITED: Final = 1 << 60


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One model as a burden on the memory."""

    weights: int
    """Bytes of its file or files."""
    facts: Facts


def of_file(path: Path) -> Load:
    """The load that a model's file, or a checkpoint's folder, is.  Raises BadFile or NotWritable."""
    if path.is_dir():
        return Load(weights=checkpoint.check(path), facts=checkpoint.facts(path))
    header = read(path)
    return Load(weights=header.size, facts=facts(header))


def of_entry(entry: Entry) -> Load:
    """The load that a model will be once it is fetched."""
    return Load(weights=entry.bytes, facts=entry.facts)


def cache_bytes(shape: Facts, n_ctx: int, kv: CacheType = "f16") -> int:
    """Bytes of the key-value cache."""
    return _padded(n_ctx) * shape.kv_width * _BYTES_PER_32[kv] // 32


def need(loads: Sequence[Load], n_ctx: int, kv: CacheType = "f16") -> int:
    """Bytes that all these models need at once with a context of n_ctx tokens each."""
    return _PROCESS + sum(_one(load, n_ctx, kv) for load in loads)


def largest_context(loads: Sequence[Load], wanted: int, budget: int, kv: CacheType = "f16") -> int:
    """The most tokens up to `wanted`, and to what the first model was trained for, with which all fit; 0 if none."""
    trained = loads[0].facts.n_ctx_train if loads else wanted
    top = min(wanted, trained)
    if need(loads, top, kv) <= budget:
        return top
    low, high = 0, top // STEP
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if need(loads, middle * STEP, kv) <= budget else (low, middle - 1)
    return low * STEP


def available(proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that may still be taken: what the machine has left, within the limits of this process's control groups."""
    import psutil  # type: ignore[import-untyped]

    groups = [_left(folder, mount) for folder in _groups(proc, mount)]
    return min(int(psutil.virtual_memory().available), *groups, _UNLIMITED)


def _one(load: Load, n_ctx: int, kv: CacheType) -> int:
    """Weights, cache, and the larger of two peaks of the sums: all logits of a batch, or its attention unfused."""
    shape = load.facts
    logits = _BATCH * shape.n_vocab * 4
    attention = _BATCH * _padded(n_ctx) * (shape.n_head + 1) * 4
    return load.weights + cache_bytes(shape, n_ctx, kv) + max(logits, attention) + _COMPUTE


def _padded(n_ctx: int) -> int:
    return -(-n_ctx // STEP) * STEP


def _groups(proc: Path, mount: Path) -> list[Path]:
    """The folders of this process's control groups and of all groups above them, versions 1 and 2."""
    try:
        lines = proc.read_text().splitlines()
    except (OSError, ValueError):  # a name that is no text in this locale
        return []
    found = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        base = mount / "memory" if controllers else mount
        inner = Path(path.lstrip("/"))
        if ".." in inner.parts:
            inner = Path()
        found += [base / part for part in (inner, *inner.parents)]
    return found


def _left(folder: Path, mount: Path) -> int:
    """Bytes left in one control group; file pages that can be dropped count as free."""
    old = mount / "memory" in (folder, *folder.parents)
    limit = _number(folder / ("memory.limit_in_bytes" if old else "memory.max"))
    used = _number(folder / ("memory.usage_in_bytes" if old else "memory.current"))
    if limit is None or used is None:
        return _UNLIMITED
    return max(0, limit - max(0, used - _droppable(folder / "memory.stat")))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _droppable(path: Path) -> int:
    try:
        pairs = [line.split() for line in path.read_text().splitlines()]
    except (OSError, ValueError):
        return 0
    counts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
    return counts.get("total_inactive_file", counts.get("inactive_file", 0))
