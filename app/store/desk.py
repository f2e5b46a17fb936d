"""What lies beside the conversations: earlier inputs, presets, and text that belongs to none of them yet."""

import sqlite3
from collections.abc import Sequence

from app.store.records import Preset
from app.store.rows import clean, options

MOST_INPUTS = 1000
"""Earlier inputs that are kept."""


def remember_input(connection: sqlite3.Connection, text: str, conversation: int | None) -> None:
    """Have an input come first among the earlier ones; it goes for good with its conversation."""
    connection.execute("DELETE FROM input WHERE text = ?", (clean(text),))
    connection.execute("INSERT INTO input (text, conversation) VALUES (?, ?)", (clean(text), conversation))
    connection.execute(
        "DELETE FROM input WHERE id <= (SELECT id FROM input ORDER BY id DESC LIMIT 1 OFFSET ?)", (MOST_INPUTS,)
    )


def inputs(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Earlier inputs, newest first, each once."""
    return [row[0] for row in connection.execute("SELECT text FROM input ORDER BY id DESC LIMIT ?", (limit,))]


def forget_inputs(connection: sqlite3.Connection, messages: Sequence[tuple[int]]) -> None:
    """Delete those that messages hold, too, whichever conversation they were kept with."""
    connection.executemany(
        "DELETE FROM input WHERE text = (SELECT text FROM message WHERE id = ? AND role = 'user')", messages
    )


def presets(connection: sqlite3.Connection) -> list[Preset]:
    """All presets by name."""
    rows = connection.execute("SELECT name, system, options FROM preset ORDER BY name COLLATE NOCASE, name")
    return [Preset(name, system, options(said)) for name, system, said in rows]


def save_preset(connection: sqlite3.Connection, name: str, system: str, said: str) -> None:
    """Keep a preset, its options as JSON, in the place of one of the same name."""
    connection.execute("INSERT OR REPLACE INTO preset VALUES (?, ?, ?)", (clean(name), clean(system), said))


def delete_preset(connection: sqlite3.Connection, name: str) -> None:
    """Delete a preset, if there is one of this name."""
    connection.execute("DELETE FROM preset WHERE name = ?", (clean(name),))


def note(connection: sqlite3.Connection, name: str) -> str:
    """The text that was kept under a name; empty where there is none."""
    row = connection.execute("SELECT text FROM note WHERE name = ?", (name,)).fetchone()
    return row[0] if row else ""


def keep_note(connection: sqlite3.Connection, name: str, text: str) -> None:
    """Keep a text under a name in the place of the one before."""
    connection.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, clean(text)))


def forget_note(connection: sqlite3.Connection, name: str) -> None:
    """Drop what was kept under a name."""
    connection.execute("DELETE FROM note WHERE name = ?", (name,))
