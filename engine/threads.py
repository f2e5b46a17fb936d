"""How many threads a model should use: the physical cores that this process may really have.

llama.cpp asks neither for affinity nor for a container's quota, and spinning threads beyond the cores that are
free are several times slower than fewer.  The one invariant: the answer is at least 1 and never more than the
affinity mask, the quota (rounded down) or the physical cores allow.
"""

import os
import sys
from pathlib import Path


def physical_cores(root: Path = Path("/")) -> int:
    """Physical cores within the affinity and the cgroup quota; `root` holds proc and sys."""
    cores = _linux_cores(root) if sys.platform.startswith("linux") else _other_cores()
    quota = cpu_quota(root)
    return max(1, cores if quota is None else min(cores, int(quota)))


def _other_cores() -> int:
    import psutil  # type: ignore[import-untyped]

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    affinity = getattr(psutil.Process(), "cpu_affinity", None)  # Windows has it, macOS has not
    return min(cores, len(affinity())) if affinity else cores


def _linux_cores(root: Path) -> int:
    """Sets of sibling hardware threads among the CPUs of the affinity mask."""
    return len({_siblings(root, cpu) for cpu in os.sched_getaffinity(0)})


def _siblings(root: Path, cpu: int) -> str:
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    return _read(topology / "core_cpus_list") or _read(topology / "thread_siblings_list") or str(cpu)


def cpu_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the control groups (version 1 or 2) grant this process; None where nothing limits it."""
    limits = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            limits += [_quota_v2(folder) for folder in _up(root / "sys/fs/cgroup", path)]
        elif "cpu" in controllers.split(","):
            mounts = (root / "sys/fs/cgroup" / controllers, root / "sys/fs/cgroup/cpu")
            limits += [_quota_v1(folder) for mount in mounts for folder in _up(mount, path)]
    return min((limit for limit in limits if limit is not None), default=None)


def _up(mount: Path, path: str) -> list[Path]:
    """The group's folder and those above it: each may set a limit of its own."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _quota_v2(folder: Path) -> float | None:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    return _ratio(quota, period)


def _quota_v1(folder: Path) -> float | None:
    return _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """Quota by period; None for "max", -1 and anything unreadable, which all mean no limit."""
    try:
        share = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
