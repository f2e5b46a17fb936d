"""Garbage of the window: what is there at the start is not walked again."""

import subprocess
import sys
from pathlib import Path

CODE = """
import gc
from app import garbage

before = gc.get_threshold()
garbage.settle()
assert gc.get_freeze_count() > 1000, gc.get_freeze_count()
assert gc.get_threshold() == (*before[:2], garbage.FULL_EVERY), gc.get_threshold()
"""


def test_what_is_alive_is_taken_for_permanent() -> None:
    command, root = [sys.executable, "-c", CODE], Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
