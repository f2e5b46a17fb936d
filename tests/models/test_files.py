"""Private files: whole or not at all, and nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.files import replacing, sweep


def test_a_file_is_replaced_only_when_its_block_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_only_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as alive:
        dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
        gone = int(dead.stdout)
        (tmp_path / f"tmp-{gone}-a").mkdir()
        (tmp_path / f"tmp-{gone}-a" / "inside").write_text("")
        (tmp_path / f"tmp-{gone}-b").write_text("")
        (tmp_path / f"tmp-{alive.pid}-c").write_text("")
        (tmp_path / "tmp-notes").write_text("")
        (tmp_path / f"tmp-{os.getpid()}-d").write_text("")
        sweep(tmp_path)
        left = sorted(entry.name for entry in tmp_path.iterdir())
        alive.communicate(b"\n")
    assert left == sorted([f"tmp-{alive.pid}-c", "tmp-notes"])


def test_sweeping_nothing(tmp_path: Path) -> None:
    sweep(tmp_path / "none")
    assert not (tmp_path / "none").exists()
