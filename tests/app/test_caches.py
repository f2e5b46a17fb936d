"""Folders of caches: within their budget, the least recently used out, and nothing where nothing may be kept."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.caches import BUDGET, Caches, conversations_dir
from app.errors import UsageError
from app.settings import Settings


def fill(caches: Caches, conversation: int, size: int, at: float) -> Path:
    """As the engine does, at a time."""
    folder = caches.folder(conversation)
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "target-00.cache").write_bytes(b"x" * size)
    os.utime(folder, (at, at))
    return folder


def there(root: Path) -> set[int]:
    return {int(path.name) for path in root.iterdir()}


def test_the_least_recently_used_leave(tmp_path: Path) -> None:
    caches = Caches(tmp_path, budget=250)
    for conversation in (1, 2, 3):
        fill(caches, conversation, 100, at=conversation)
    caches.used(1)
    assert there(tmp_path) == {1, 3}


@given(st.dictionaries(st.integers(1, 9), st.integers(0, 60)), st.integers(0, 120))
def test_what_stays_is_within_the_budget_and_used_last(
    tmp_path_factory: pytest.TempPathFactory, sizes: dict[int, int], budget: int
) -> None:
    root = tmp_path_factory.mktemp("caches")
    filling = Caches(root, budget=1000)
    for conversation, size in sizes.items():
        fill(filling, conversation, size, at=conversation)
    Caches(root, budget).trim()
    stay = there(root)
    assert sum(sizes[conversation] for conversation in stay) <= budget
    for gone in sizes.keys() - stay:
        assert sizes[gone] + sum(sizes[other] for other in stay if other > gone) > budget, "it would have fitted"


def test_what_is_gone_and_what_is_not_ours(tmp_path: Path) -> None:
    caches = Caches(tmp_path, budget=1)
    fill(caches, 7, 0, at=1)
    other = tmp_path / "notes"
    other.mkdir()
    (other / "long").write_bytes(b"x" * 100)
    caches.remove([7, 8])
    caches.trim()
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    Caches(tmp_path / "nowhere").trim()
    Caches(tmp_path / "nowhere").used(3)
    assert not (tmp_path / "nowhere").exists()


def test_nothing_is_kept_where_history_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    before = fill(Caches(conversations_dir()), 4, 10, at=1)
    off = Caches(None)
    assert off.folder(4) is None
    off.used(4)
    assert before.is_dir()
    off.remove([4])  # a number of its own, in memory
    assert before.is_dir()
    assert Caches(tmp_path, budget=0).folder(4) is None


@pytest.mark.parametrize("size", [-1.0, float("inf"), float("nan")])
def test_a_budget_is_a_size(size: float) -> None:
    with pytest.raises(UsageError, match="kept-gb must be 0"):
        Settings(kept_gb=size).check()
    assert Settings(kept_gb=0).window.kept_gb == 0
    assert Settings().window.kept_gb * 10**9 == BUDGET
