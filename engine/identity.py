"""What a measurement or a saved cache is valid for: which file, on which processor."""

import hashlib
import platform
from functools import cache
from pathlib import Path

_HEAD = 1 << 20
_SAMPLE = 1 << 14
_SAMPLES = 64


def file_identity(path: Path) -> str:
    """A short name for a file's content, from its size, its head and samples of the rest (not from its place or time).

    A folder is a checkpoint: its name is made of its configuration's and its weights'.  Not a proof against forgery: it
    tells apart models, and forms of one model, that differ anywhere on a large scale.  Raises OSError.
    """
    if not path.is_dir():
        return _of_file(path)
    files = [path / "config.json", *sorted(path.glob("*.safetensors"))]
    parts = " ".join(map(_of_file, files))
    return f"{len(files)}-{hashlib.sha256(parts.encode()).hexdigest()[:24]}"


def _of_file(path: Path) -> str:
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_HEAD))
        for sample in range(1, _SAMPLES + 1):
            file.seek(max(0, size * sample // _SAMPLES - _SAMPLE))
            digest.update(file.read(_SAMPLE))
    return f"{size}-{digest.hexdigest()[:24]}"


@cache
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or platform.machine() or "unknown"
