"""One SQLite connection: every access is one transaction behind one lock, and every error a StoreError.

The one invariant: what happens inside `writing` is on the disk as a whole or not at all.  What is deleted is
overwritten, and nothing is ever put into temporary files.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from app.errors import StoreDamaged, StoreError
from app.paths import private_file, shown
from app.store.migrations import migrate

WAIT_S = 5.0
"""How long another process may hold the file before a write gives up."""

PRAGMAS = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON", "temp_store=MEMORY")


class Database:
    """A file of conversations, or memory alone; usable from any thread."""

    def __init__(self, connection: sqlite3.Connection, name: str, path: Path | None = None) -> None:
        self._connection, self._name, self._path = connection, name, path
        self._lock = threading.RLock()
        self._writers = threading.RLock()
        """Held by whoever writes: a wait for it ends at once, one for SQLite only at its next look."""
        self.closed = False

    @classmethod
    def open(cls, path: Path | None, wait: float = WAIT_S) -> "Database":
        """Open or make the file, which is its owner's alone; None keeps all in memory.  Raises StoreError."""
        name = shown(path) if path else "memory"
        with _told(name):
            if path:
                _made(path)
            connection = sqlite3.connect(
                path or ":memory:", timeout=wait, isolation_level=None, check_same_thread=False
            )
            try:
                _log_ahead(connection, wait)
                for pragma in PRAGMAS:
                    connection.execute(f"PRAGMA {pragma}")
                migrate(connection, name)
            except BaseException:
                connection.close()
                raise
        return cls(connection, name, path)

    @property
    def on_disk(self) -> bool:
        """Whether it is a file."""
        return self._path is not None

    @contextmanager
    def aside(self) -> Iterator["Database"]:
        """Another connection, whose long work holds up no reader of this one; memory has but one."""
        if self._path is None:
            yield self
            return
        other = Database.open(self._path)
        other._writers = self._writers
        try:
            yield other
        finally:
            other.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of everything, whatever others write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing."""
        with self._writers, self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def forget_log(self) -> None:
        """Empty the log, in which what was deleted may still stand; another process that reads may prevent it."""
        with self._lock, _told(self._name), suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        self.closed = True
        with self._lock, _told(self._name):
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, _told(self._name):
            try:
                self._connection.execute(begin)
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error is the one to tell; some have rolled back already
                    self._connection.execute("ROLLBACK")
                raise


def set_aside(path: Path) -> Path:
    """Move a broken file, and what SQLite keeps beside it, out of the way of a new one; where it is now."""
    number = next(n for n in count(1) if not path.with_name(f"{path.name}.damaged-{n}").exists())
    place = path.with_name(f"{path.name}.damaged-{number}")
    try:
        for end in ("-wal", "-shm", ""):
            if (beside := path.with_name(path.name + end)).exists():
                beside.rename(place.with_name(place.name + end))
    except OSError as error:
        raise StoreError(f"{shown(path)} cannot be moved ({error.strerror}): {_WRITABLE}") from error
    return place


def _made(path: Path) -> None:
    try:
        private_file(path)
    except OSError as error:
        raise StoreError(f"{shown(path)} cannot be written ({error.strerror}): {_WRITABLE}") from error


def _log_ahead(connection: sqlite3.Connection, wait: float) -> None:
    """Have readers and a writer go side by side; SQLite does not itself wait for who does the same just now."""
    until = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.02)


_WRITABLE = "make the file and its folder writable, or set history = false"
_ADVICE = {
    sqlite3.SQLITE_BUSY: "another program holds {}: close it, then try again; nothing is lost",
    sqlite3.SQLITE_LOCKED: "another program holds {}: close it, then try again; nothing is lost",
    sqlite3.SQLITE_FULL: "the drive of {} is full: free some space, then try again; nothing is lost",
    sqlite3.SQLITE_IOERR: "{} cannot be read or written: check the drive and the space left on it",
    sqlite3.SQLITE_READONLY: f"{{}} cannot be written: {_WRITABLE}",
    sqlite3.SQLITE_CANTOPEN: f"{{}} cannot be opened: {_WRITABLE}",
    sqlite3.SQLITE_PERM: f"{{}} cannot be opened: {_WRITABLE}",
}
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            line = f"{name} is damaged, and is left as it is: move it elsewhere to begin anew"
            raise StoreDamaged(line) from error
        raise StoreError(_ADVICE.get(code, f"{{}} cannot be used ({error}): try again").format(name)) from error
