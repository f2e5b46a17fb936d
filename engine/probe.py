"""What the native library says about this machine, asked in a process that may die: `python -P -m engine.probe`.

A library built for instructions that the CPU lacks kills the process that imports it; so nobody imports it who has
something to lose.
"""

import json
import subprocess
import sys
from importlib import metadata

from engine.client import environment, how_it_ended
from engine.config import Frozen

PATIENCE = 60
"""Seconds that the library may take."""


class Probe(Frozen, frozen=True, kw_only=True):
    """What is known about the native library."""

    version: str | None = None
    features: list[str] = []
    """Instruction sets that it was built for and found."""
    offload: bool = False
    """Whether layers can run on a GPU."""
    offload_reason: str = ""
    """Which GPU, or why none."""
    fault: str | None = None
    """Why the library cannot be used, and what to do; None where it can."""


def probe(command: list[str] | None = None) -> Probe:
    """Import the library in a process of its own and ask it."""
    command = command or [sys.executable, "-P", "-m", "engine.probe"]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, env=environment(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Probe(fault=f"llama-cpp-python cannot be tried ({error}): install it again")
    if done.returncode != 0:
        return Probe(fault=_fault(done.returncode, done.stderr.decode(errors="replace")))
    try:
        return Probe(**json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, TypeError, IndexError):
        return Probe(fault="llama-cpp-python says nothing that makes sense: install it again")


def _fault(code: int, said: str) -> str:
    ended = how_it_ended(code)
    if ended in ("SIGILL", "exit code 0xc000001d"):
        return (
            f"llama-cpp-python is built for instructions that this CPU lacks ({ended}): install it again from source, "
            "with CMAKE_ARGS=-DGGML_NATIVE=on pip install --no-cache-dir --force-reinstall --no-deps "
            f"--no-binary llama-cpp-python {_pinned()}"
        )
    lines = [line for line in said.splitlines() if line.strip()]
    return f"llama-cpp-python cannot be imported ({ended}): {lines[-1] if lines else 'no word why'}; install it again"


def _pinned() -> str:
    """The library at the version that is installed, which other versions may not replace."""
    try:
        return f"llama-cpp-python=={metadata.version('llama-cpp-python')}"
    except metadata.PackageNotFoundError:
        return "llama-cpp-python"


def _ask() -> Probe:
    """Ask the library in this very process."""
    from engine.backends import llamacpp_library

    offload, reason = llamacpp_library.gpu_offload()
    return Probe(
        version=llamacpp_library.library_version(),
        features=llamacpp_library.cpu_features().split(),
        offload=offload,
        offload_reason=reason,
    )


if __name__ == "__main__":
    import msgspec

    sys.stdout.write("\n" + msgspec.json.encode(_ask()).decode() + "\n")
