"""What was deleted is erased for good, in steps so short that whoever writes meanwhile hardly waits.

The one invariant: a purge that is cut short, by a crash too, is gone on with by the next one.  What has begun to be
erased cannot be restored, and a note stands until the terms of all that was erased are out of the index.
"""

import secrets
import sqlite3
from collections.abc import Iterator

from app.store import desk, search
from app.store.database import Database

MESSAGES = 100
"""Messages that a step erases."""
PAGES = 100
"""Pages of the index that a step writes anew."""

_UNWIPED = "unwiped"


def condemn(database: Database, before: int) -> tuple[int, ...]:
    """Mark what was deleted before a time as what is erased now, with what a purge before has left; its numbers."""
    with database.writing() as connection:
        if connection.execute("UPDATE conversation SET deleted = 0 WHERE deleted < ?", (before,)).rowcount:
            desk.keep_note(connection, _UNWIPED, secrets.token_hex(8))
        return tuple(row[0] for row in connection.execute("SELECT id FROM conversation WHERE deleted = 0"))


def steps(database: Database, condemned: tuple[int, ...]) -> Iterator[None]:
    """Erase them, a short transaction a step; then their terms."""
    for conversation in condemned:
        more = True
        while more:
            with database.writing() as connection:
                more = _erase_some(connection, conversation)
            yield
    with database.reading() as connection:
        unwiped = desk.note(connection, _UNWIPED)
    if not unwiped:
        return
    for table in search.TABLES:
        begun = more = False
        while more or not begun:
            with database.writing() as connection:
                more = search.wipe_some(connection, table, PAGES, begun)
            begun = True
            yield
    database.forget_log()
    with database.writing() as connection:
        if desk.note(connection, _UNWIPED) == unwiped:  # else another window has erased more meanwhile
            desk.forget_note(connection, _UNWIPED)


def _erase_some(connection: sqlite3.Connection, conversation: int) -> bool:
    """Erase its last messages, and itself once there are no more; whether there may be more."""
    found = connection.execute(
        "SELECT id FROM message WHERE conversation = ? ORDER BY id DESC LIMIT ?", (conversation, MESSAGES)
    ).fetchall()
    desk.forget_inputs(connection, found)
    search.forget_messages(connection, found)
    connection.executemany("DELETE FROM message WHERE id = ?", found)
    if len(found) == MESSAGES:
        return True
    search.forget_title(connection, conversation)
    connection.execute("DELETE FROM conversation WHERE id = ?", (conversation,))
    return False
