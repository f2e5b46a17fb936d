"""Thread counts on made-up machines: a folder stands for the root of the file system."""

import os
import sys
from pathlib import Path

import pytest

from engine.threads import cpu_quota, physical_cores

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="control groups are Linux's")


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def topology(siblings: list[str], name: str = "core_cpus_list") -> dict[str, str]:
    return {f"sys/devices/system/cpu/cpu{cpu}/topology/{name}": f"{text}\n" for cpu, text in enumerate(siblings)}


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n"}, 4.0),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000",
                "sys/fs/cgroup/a/cpu.max": "200000 100000",
            },
            2.0,
        ),
        ({"proc/self/cgroup": "0::/gone\n", "sys/fs/cgroup/cpu.max": "300000 100000"}, 3.0),
        (
            {
                "proc/self/cgroup": "5:cpuset:/x\n4:cpu,cpuacct:/d\n1:name=systemd:/d\n",
                "sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us": "250000",
                "sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us": "100000",
            },
            2.5,
        ),
        (
            {
                "proc/self/cgroup": "1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            None,
        ),
        ({"proc/self/cgroup": "nonsense\n\n0::/\n", "sys/fs/cgroup/cpu.max": "what 0"}, None),
    ],
)
def test_the_quota_is_the_least_of_all_groups(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert cpu_quota(write(tmp_path, files)) == quota


@pytest.mark.parametrize(
    ("siblings", "affinity", "quota", "cores"),
    [
        (["0", "1", "2", "3"], {0, 1, 2, 3}, "max 100000", 4),
        (["0,2", "1,3", "0,2", "1,3"], {0, 1, 2, 3}, "max 100000", 2),
        (["0,2", "1,3", "0,2", "1,3"], {0, 2}, "max 100000", 1),
        (["0", "1", "2", "3"], {1, 3}, "max 100000", 2),
        (["0", "1", "2", "3"], {0, 1, 2, 3}, "250000 100000", 2),
        (["0", "1", "2", "3"], {0, 1, 2, 3}, "50000 100000", 1),
        ([], {0, 1, 2}, "max 100000", 3),
    ],
)
@pytest.mark.parametrize("name", ["core_cpus_list", "thread_siblings_list"])
def test_cores_are_counted_once_within_affinity_and_quota(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    siblings: list[str],
    affinity: set[int],
    quota: str,
    cores: int,
    name: str,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: affinity)
    files = topology(siblings, name) | {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": quota}
    assert physical_cores(write(tmp_path, files)) == cores


def test_this_machine_has_cores() -> None:
    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))
