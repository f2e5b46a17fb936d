"""A purge goes in short steps: others write between them, and one that is cut short is gone on with."""

from contextlib import closing
from pathlib import Path

import pytest

from app.errors import NotStored
from app.store import erasing
from app.store.database import Database
from app.store.store import Store
from app.transcript import Entry

FAR = 1 << 60
"""After everything that is deleted here."""


def long(store: Store, length: int, word: str) -> int:
    """A conversation of so many messages in one branch, each of which holds the word and one of its own."""
    number, parent = store.create(), None
    for place in range(length):
        role = "assistant" if place % 2 else "user"
        parent = store.add(number, parent, Entry(role, f"{word} {word}x{place}")).id  # type: ignore[arg-type]
    return number


def whole(path: Path) -> bytes:
    """All that stands in the files."""
    return b"".join(file.read_bytes().lower() for file in path.parent.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.db"


def begun(path: Path, steps: int) -> tuple[int, ...]:
    """The numbers of a purge that ends after so many steps, as where its process is killed."""
    with closing(Database.open(path)) as database:
        gone = erasing.condemn(database, FAR)
        for _, _ in zip(range(steps), erasing.steps(database, gone), strict=False):
            pass
        return gone


@pytest.fixture(scope="module")
def deleted(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int, int]:
    """A file with a deleted conversation of many steps beside one that stays; their numbers."""
    path = tmp_path_factory.mktemp("deleted") / "c.db"
    with closing(Store.open(path)) as store:
        stays, goes = long(store, 40, "ordinary"), long(store, 2 * erasing.MESSAGES + 10, "canary")
        store.remember_input("canary canaryx0")
        store.delete(goes)
    return path.read_bytes(), stays, goes


@pytest.mark.parametrize("steps", range(9))
def test_one_that_is_cut_short_is_gone_on_with(path: Path, deleted: tuple[bytes, int, int], steps: int) -> None:
    content, stays, goes = deleted
    path.write_bytes(content)
    assert begun(path, steps) == (goes,)
    with closing(Store.open(path)) as store:
        with pytest.raises(NotStored):
            store.restore(goes)
        store.purge()
        assert store.purge() == ()
        assert store.inputs() == []
        assert b"canary" not in whole(path)
        assert len(store.get(stays).path) == 40
        assert store.search("ordinaryx7")


def test_whoever_writes_between_two_steps_is_not_held_and_loses_nothing(
    path: Path, deleted: tuple[bytes, int, int]
) -> None:
    content, _, goes = deleted
    path.write_bytes(content)
    with closing(Store.open(path)) as store, closing(Database.open(path)) as database:
        said = []
        for step, _ in enumerate(erasing.steps(database, erasing.condemn(database, FAR))):
            said.append(long(store, 3, f"between{step}"))
            assert store.has(said[-1])
        assert len(said) > 4, "it goes in steps"
        assert not store.has(goes)
        assert b"canary" not in whole(path)
        for step, number in enumerate(said):
            assert [hit.conversation for hit in store.search(f"between{step}x2")] == [number]


def test_closing_the_store_ends_a_purge(
    path: Path, deleted: tuple[bytes, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, _, goes = deleted
    path.write_bytes(content)
    store = Store.open(path)
    monkeypatch.setattr("app.store.store.time.sleep", lambda _: store.close())
    assert store.purge() == (goes,)
    monkeypatch.undo()
    assert b"canary" in whole(path)
    with closing(Store.open(path)) as again:
        assert again.purge() == (goes,)
        assert b"canary" not in whole(path)
