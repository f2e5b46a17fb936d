import os
import stat
import sys
from pathlib import Path

import pytest

from engine import hostlog

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")


@posix
def test_the_log_is_private_and_bounded(tmp_path: Path) -> None:
    log = tmp_path / "above" / "folder" / "engine.log"
    os.close(hostlog.open_log(log))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(log.parent.parent.stat().st_mode) == 0o700
    log.write_bytes(b"x" * (hostlog.LIMIT + 1))
    log.chmod(0o644)
    os.close(hostlog.open_log(log))
    assert log.stat().st_size < 100
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = hostlog.open_log(tmp_path / "file" / "engine.log")
    os.write(log, b"words")
    os.close(log)
    assert hostlog.last_lines(tmp_path / "file" / "engine.log", 1) == []
