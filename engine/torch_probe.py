"""What the torch engine finds on this machine, asked in a process that may die: `python -P -m engine.torch_probe`.

The versions are read from the packages' records; to know the device torch has to be imported, which takes seconds and
hundreds of megabytes, so nobody imports it who has something else to do.
"""

import subprocess
import sys

from engine.client import environment, how_it_ended
from engine.config import Frozen
from engine.engines import missing_package, torch_versions

PATIENCE = 60
"""Seconds that the libraries may take."""


class TorchProbe(Frozen, frozen=True, kw_only=True):
    """What is known about the torch engine."""

    missing: str | None = None
    """The first package that it lacks; None where all are there."""
    versions: dict[str, str] = {}
    device: str | None = None
    """Where models would run; None where that is not known."""
    fault: str | None = None
    """Why it cannot be used although it is installed, and what to do."""

    @property
    def line(self) -> str:
        """For people."""
        if self.missing:
            return f"not installed (there is no {self.missing}); for checkpoints: pip install 'paceline[torch]'"
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"{self.fault or f'runs on {self.device}'}; {versions}"


def probe_torch(command: list[str] | None = None) -> TorchProbe:
    """Ask for the device in a process of its own, where the engine is installed at all."""
    if missing := missing_package():
        return TorchProbe(missing=missing)
    versions = torch_versions()
    command = command or [sys.executable, "-P", "-m", "engine.torch_probe"]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, env=environment(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return TorchProbe(versions=versions, fault=f"torch cannot be tried ({error}): install it again")
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode or not lines:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        why = f"{how_it_ended(done.returncode)}: {said[-1] if said else 'no word why'}"
        return TorchProbe(versions=versions, fault=f"torch cannot be imported ({why}): install it again")
    return TorchProbe(versions=versions, device=lines[-1])


if __name__ == "__main__":
    from engine.backends.torch_library import pick_device

    sys.stdout.write(f"\n{pick_device(gpu=True)[1]}\n")
