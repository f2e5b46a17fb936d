"""Locks: one holder at a time, refusal or waiting as the caller likes, and the lock is free afterwards."""

from pathlib import Path

import pytest

from models.errors import Busy, NotWritable
from models.locks import hold, patience


def test_a_held_lock_is_refused(tmp_path: Path) -> None:
    with hold(tmp_path / "a" / "l"), pytest.raises(Busy, match="another process"), hold(tmp_path / "a" / "l"):
        pytest.fail("two holders")


def test_an_error_inside_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold(tmp_path / "l"):
        raise ZeroDivisionError
    with hold(tmp_path / "l"):
        assert (tmp_path / "l").exists()


def test_waiting_is_told_again_and_again_and_ends_when_the_lock_is_free(tmp_path: Path) -> None:
    told = []
    holder = hold(tmp_path / "l")
    holder.__enter__()

    def waiting() -> None:
        told.append(1)
        if len(told) == 3:
            holder.__exit__(None, None, None)

    with hold(tmp_path / "l", waiting):
        assert len(told) == 3


def test_patience_ends(tmp_path: Path) -> None:
    with hold(tmp_path / "l"), pytest.raises(Busy), hold(tmp_path / "l", patience(0)):
        pytest.fail("two holders")


def test_a_lock_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritable), hold(tmp_path / "file" / "l"):
        pytest.fail("no lock")
