import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.errors import StoreDamaged, StoreError
from app.store import migrations, tree
from app.store.database import Database, set_aside
from app.store.store import Store
from app.transcript import Entry

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and signals of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "conversations.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """A file in which something was said."""
    with closing(Store.open(path)) as store:
        store.add(store.create(), None, Entry("user", "precious words " * 2000))
    return path


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as another program opens it."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        yield connection


def refused(path: Path, kind: type[StoreError] = StoreError) -> str:
    """The one line with which the file cannot be opened, or, where it can, not be read."""
    with pytest.raises(kind) as caught, closing(Store.open(path)) as store:
        store.get(1)
    line = str(caught.value)
    assert str(path) in line
    assert "\n" not in line
    return line


@posix
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_files_are_their_owners_alone(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with closing(Store.open(path)) as store:
            store.set_unsent(None, "x")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) == {path.name, f"{path.name}-wal", f"{path.name}-shm"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_memory_alone_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(Store.open(None)) as store:
        store.add(store.create(), None, Entry("user", "canary"))
        assert store.get(1).title == "canary"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"x" * 5000, b"not a database at all" * 300])
def test_a_broken_file_is_said_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert "is damaged, and is left as it is" in refused(path, StoreDamaged)
    assert path.read_bytes() == content


def test_a_file_that_was_cut_is_said_and_left_alone(filled: Path) -> None:
    whole = filled.read_bytes()
    filled.write_bytes(whole[: len(whole) // 3])
    refused(filled, StoreDamaged)
    assert filled.read_bytes() == whole[: len(whole) // 3]


def test_a_file_with_flipped_bytes_is_said(filled: Path) -> None:
    content = bytearray(filled.read_bytes())
    content[4096:] = bytes(byte ^ 0x5A for byte in content[4096:])
    filled.write_bytes(content)
    assert "is damaged" in refused(filled, StoreDamaged)


def test_a_broken_file_makes_room_for_a_new_one(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"first" * 999, b"second" * 999):
        path.write_bytes(content)
        refused(path, StoreDamaged)
        path.with_name(f"{path.name}-wal").write_bytes(b"log of it")
        place = set_aside(path)
        assert place.read_bytes() == content
        assert place.with_name(f"{place.name}-wal").exists()
        assert not path.with_name(f"{path.name}-wal").exists()
    with closing(Store.open(path)) as store:
        store.create()
    assert len(list(path.parent.glob("*.damaged-?"))) == 2


def test_a_file_of_a_newer_version_is_said_and_left_alone(filled: Path) -> None:
    with raw(filled) as other:
        other.execute("PRAGMA user_version = 99")
    before = filled.read_bytes()
    assert "written by a newer paceline: update this one" in refused(filled)
    assert filled.read_bytes() == before


def test_a_file_of_something_else_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with raw(path) as other:
        other.execute("CREATE TABLE recipe (cake)")
    assert "holds something else" in refused(path, StoreDamaged)
    with raw(path) as other:
        assert [row[0] for row in other.execute("SELECT name FROM sqlite_master")] == ["recipe"]


@posix
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_file_that_cannot_be_written_is_said(filled: Path) -> None:
    filled.chmod(0o400)
    assert "cannot be written" in refused(filled)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "make the file and its folder writable" in refused(tmp_path / "file" / "conversations.db")


def test_a_folder_in_its_place_is_said(path: Path) -> None:
    path.mkdir(parents=True)
    assert "cannot be written" in refused(path)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_READONLY, "cannot be written: make the file and its folder writable"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_IOERR | 10 << 8, "cannot be read or written: check the drive"),
        (sqlite3.SQLITE_FULL, "is full: free some space"),
        (sqlite3.SQLITE_CORRUPT | 1 << 8, "is damaged"),
        (sqlite3.SQLITE_MISUSE, "cannot be used (of its own): try again"),
    ],
)
def test_each_trouble_of_the_disk_is_one_line_and_undoes_the_write(code: int, said: str) -> None:
    database = Database.open(None)
    error = sqlite3.OperationalError("of its own")
    error.sqlite_errorcode = code

    def write() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO note VALUES ('a', 'b')")
            raise error

    with pytest.raises(StoreError) as caught:
        write()
    assert said in str(caught.value)
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM note").fetchall() == []
    database.close()


def test_a_full_drive_loses_nothing(filled: Path) -> None:
    connection = sqlite3.connect(filled, isolation_level=None)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with closing(Store(Database(connection, "the file"))) as store:
        with pytest.raises(StoreError, match="the drive of the file is full"):
            store.add(1, 1, Entry("assistant", "many words " * 9000))
        store.set_unsent(1, "short")
        assert [node.entry.role for node in store.get(1).path] == ["user"]


def test_a_write_waits_for_another_program_and_readers_do_not(filled: Path) -> None:
    with raw(filled) as other, closing(Store.open(filled)) as store:
        other.execute("BEGIN IMMEDIATE")
        assert len(store.get(1).path) == 1
        done = threading.Event()

        def say() -> None:
            store.set_unsent(1, "waited")
            done.set()

        thread = threading.Thread(target=say)
        thread.start()
        assert not done.is_set()
        other.execute("COMMIT")
        thread.join()
        assert store.get(1).unsent == "waited"


def test_a_program_that_holds_the_file_for_long_is_said(filled: Path) -> None:
    with raw(filled) as other, closing(Store(Database.open(filled, wait=0.01))) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program holds "):
            store.create()
        other.execute("ROLLBACK")
        assert store.create() == 2


def test_a_write_has_the_file_for_itself_from_its_beginning(filled: Path) -> None:
    with closing(Database.open(filled)) as one, closing(Database.open(filled, wait=0)) as other:
        with one.writing(), pytest.raises(StoreError, match="another program holds"), other.writing():
            pass
        with one.reading() as before, other.writing() as connection:
            connection.execute("INSERT INTO note VALUES ('a', 'b')")
            assert before.execute("SELECT * FROM note").fetchall() == []


def test_a_closed_store_says_so() -> None:
    store = Store.open(None)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="cannot be used"):
        store.summaries()


SAY = """
import sys
from pathlib import Path
from app.store.store import Store
from app.transcript import Entry

store = Store.open(Path(sys.argv[1]))
number = store.create()
for place in range(1_000_000):
    node = store.add(number, None, Entry("user", f"message {place} " + "word " * 300))
    store.update(node.id, Entry("user", f"message {place} kept"))
    print(number, node.id, place, flush=True)
"""


def test_a_kill_in_the_middle_of_a_write_loses_nothing(path: Path) -> None:
    told: list[list[int]] = []
    for round_ in range(3):
        with subprocess.Popen([sys.executable, "-c", SAY, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(7 * round_ + 3)]
            process.kill()
            lines += [line for line in process.stdout if line.endswith("\n")]
            told += [[int(part) for part in line.split()] for line in lines]
    with closing(Store.open(path)) as store:
        for number, message, place in told:
            kept = {node.id: node.entry.text for node in store.tree(number).nodes}
            assert kept[message] == f"message {place} kept"
    with raw(path) as other:
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        other.execute("INSERT INTO message_words (message_words) VALUES ('integrity-check')")


def test_two_programs_may_start_at_once(path: Path) -> None:
    start = (
        "import sys; from pathlib import Path; from app.store.store import Store; sys.stdin.read(1);"
        "print(Store.open(Path(sys.argv[1])).create())"
    )
    command = [sys.executable, "-c", start, str(path)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.flush()
    said = [process.communicate(timeout=60) for process in both]
    assert [errors for _, errors in said] == [b""] * 3
    assert sorted(int(out) for out, _ in said) == [1, 2, 3]


def test_each_step_is_applied_once_with_its_number() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        steps = (("CREATE TABLE a (x)",), ("CREATE TABLE b (x)", "INSERT INTO b VALUES (1)"))
        migrations.migrate(connection, "it", steps[:1])
        connection.execute("INSERT INTO a VALUES (7)")
        for _ in range(2):
            migrations.migrate(connection, "it", steps)
        assert connection.execute("SELECT a.x, b.x FROM a, b").fetchall() == [(7, 1)]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_step_that_fails_leaves_the_file_as_it_was() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrations.migrate(connection, "it", (("CREATE TABLE a (x)", "CREATE TABLE a (x)"),))
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_what_the_first_form_of_a_file_holds_is_there_in_the_newest() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrations.migrate(connection, "it", migrations.STEPS[:1])
        connection.execute("INSERT INTO conversation (title, created, changed) VALUES ('talk', 1, 2)")
        columns = "conversation, depth, used, created, role, text, ending, attachments"
        connection.execute(f"INSERT INTO message ({columns}) VALUES (1, 1, 1, 3, 'user', 'hi', '', '[]')")
        migrations.migrate(connection, "it")
        assert tree.node(connection, 1).entry == Entry("user", "hi", id=1)


def test_another_program_that_comes_and_goes_costs_nothing_of_what_is_said_here(filled: Path) -> None:
    looks = "import sys, pathlib; from app.store.store import Store; s = Store.open(pathlib.Path(sys.argv[1]));"
    looks += "print(len(s.summaries())); s.close()"

    def another() -> int:
        command = [sys.executable, "-c", looks, str(filled)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    with closing(Store.open(filled)) as store:
        store.purge()
        assert another() == 1
        store.add(store.create(), None, Entry("user", "later"))
        assert another() == 2
