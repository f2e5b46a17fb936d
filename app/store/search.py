"""What was said, found again: an index of terms beside the texts, kept in the same transaction as they are."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from app.store.records import Hit
from app.store.rows import moment
from app.store.words import Query, indexed

EACH = 3
"""Hits in the messages of one conversation that a search gives."""
MOST_READ = 20_000
"""Matches, newest first, after which a search goes no further back."""
TABLES = ("message_words", "title_words")

_TITLES = """
SELECT c.id, c.title, c.changed FROM title_words w CROSS JOIN conversation c ON c.id = w.rowid
WHERE title_words MATCH ? AND c.deleted IS NULL ORDER BY c.changed DESC LIMIT ?"""
_MESSAGES = """
SELECT m.id, m.conversation FROM message_words w CROSS JOIN message m ON m.id = w.rowid
WHERE message_words MATCH ? ORDER BY w.rowid DESC LIMIT ?"""
_SHOWN = """
SELECT c.title, m.text, c.changed FROM message m JOIN conversation c ON c.id = m.conversation
WHERE m.id = ? AND c.deleted IS NULL"""


def keep_message(connection: sqlite3.Connection, number: int, text: str) -> None:
    """Have a message found by what it says now."""
    _keep(connection, "message_words", number, text)


def keep_title(connection: sqlite3.Connection, number: int, title: str) -> None:
    """Have a conversation found by its title."""
    _keep(connection, "title_words", number, title)


def forget_messages(connection: sqlite3.Connection, numbers: Sequence[tuple[int]]) -> None:
    """Take messages out of the index; `wipe_some` then takes their terms out of the file."""
    connection.executemany("DELETE FROM message_words WHERE rowid = ?", numbers)


def forget_title(connection: sqlite3.Connection, conversation: int) -> None:
    """Take a title out of the index; as `forget_messages`."""
    connection.execute("DELETE FROM title_words WHERE rowid = ?", (conversation,))


def wipe_some(connection: sqlite3.Connection, table: str, pages: int, begun: bool) -> bool:
    """Write so many pages of an index anew without the terms of what was forgotten, which FTS5 only marks as gone.

    Whether there may be more to write: then again, with `begun`.  This is FTS5's "optimize" in parts.
    """
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages if begun else -pages,))
    return connection.total_changes - before >= 2


def search(connection: sqlite3.Connection, text: str, limit: int) -> list[Hit]:
    """Titles first, then messages, newest first; nothing where the text holds no word."""
    query = Query(text)
    if not query:
        return []
    hits = []
    for conversation, title, changed in connection.execute(_TITLES, (query.match(), limit)):
        hits.append(Hit(conversation, None, title, *query.excerpt(title), moment(changed)))
    for number, conversation in _few_of_each(connection.execute(_MESSAGES, (query.match(), MOST_READ))):
        if len(hits) >= limit:
            break
        if shown := connection.execute(_SHOWN, (number,)).fetchone():
            title, said, changed = shown
            hits.append(Hit(conversation, number, title, *query.excerpt(said), moment(changed)))
    return hits


def _few_of_each(found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    seen: Counter[int] = Counter()
    for number, conversation in found:
        seen[conversation] += 1
        if seen[conversation] <= EACH:
            yield number, conversation


def _keep(connection: sqlite3.Connection, table: str, number: int, text: str) -> None:
    connection.execute(f"INSERT OR REPLACE INTO {table} (rowid, terms) VALUES (?, ?)", (number, indexed(text)))
