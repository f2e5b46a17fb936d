"""The shape of the file: numbered steps, each applied once, together with its number.

A step that was released is never edited; what changes is a new one.  The number is SQLite's own `user_version`.
"""

import sqlite3

from app.errors import StoreDamaged, StoreError

FIRST = (
    """CREATE TABLE conversation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL DEFAULT '',
        titled INTEGER NOT NULL DEFAULT 0,
        system TEXT NOT NULL DEFAULT '',
        options TEXT NOT NULL DEFAULT '{}',
        unsent TEXT NOT NULL DEFAULT '',
        created INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        pinned INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER
    )""",
    "CREATE INDEX conversation_order ON conversation (pinned, changed, id) WHERE deleted IS NULL",
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
        parent INTEGER REFERENCES message ON DELETE CASCADE,
        depth INTEGER NOT NULL,
        used INTEGER NOT NULL,
        created INTEGER NOT NULL,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        ending TEXT NOT NULL,
        attachments TEXT NOT NULL,
        answer BLOB,
        answer_text TEXT
    )""",
    "CREATE INDEX message_place ON message (parent, conversation, id)",
    "CREATE INDEX message_used ON message (conversation, used, depth)",
    "CREATE TABLE trace (message INTEGER PRIMARY KEY REFERENCES message ON DELETE CASCADE, tokens BLOB NOT NULL)",
    "CREATE VIRTUAL TABLE message_words USING fts5 (terms, tokenize = 'ascii', columnsize = 0, prefix = '1 2 3')",
    "CREATE VIRTUAL TABLE title_words USING fts5 (terms, tokenize = 'ascii', columnsize = 0)",
    """CREATE TABLE input (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        text TEXT NOT NULL UNIQUE,
        conversation INTEGER REFERENCES conversation ON DELETE CASCADE
    )""",
    "CREATE INDEX input_conversation ON input (conversation)",
    "CREATE TABLE preset (name TEXT PRIMARY KEY, system TEXT NOT NULL, options TEXT NOT NULL)",
    "CREATE TABLE note (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
)
"""Times are microseconds since 1970.  `used` counts up in a conversation each time that a message becomes its leaf."""

OPENING = ("ALTER TABLE message ADD COLUMN opening TEXT NOT NULL DEFAULT ''",)
"""The tag of a thought in which an answer begins."""

STEPS: tuple[tuple[str, ...], ...] = (FIRST, OPENING)


def migrate(connection: sqlite3.Connection, name: str, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Bring a file up to date, as a whole or not at all; `name` is for the errors.

    Raises StoreError where the file is from a newer version, and StoreDamaged where it is something else's.
    """
    if _version(connection, name, len(steps)) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[_version(connection, name, len(steps)) :]:  # another process may have been faster
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, name: str, newest: int) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > newest:
        raise StoreError(f"{name} was written by a newer paceline: update this one; nothing is lost")
    if not version and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreDamaged(f"{name} holds something else than conversations: move it elsewhere to begin anew")
    return version
