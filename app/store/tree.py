"""The tree of messages: versions stand side by side under one parent, and one branch is in use.

The one invariant: a conversation's leaf is its message with the greatest `used`.  Only a message without children ever
gets a new one, so the greatest `used` below any message is that of the leaf that was in use there last.
"""

import sqlite3

from app.errors import NotStored
from app.store.records import Node
from app.store.rows import ENTRY, of_entry, to_node
from app.transcript import Entry

_BESIDE = "SELECT count(*) FROM message s WHERE s.parent IS m.parent AND s.conversation = m.conversation"
_NODE = f"m.id, m.parent, m.created, ({_BESIDE} AND s.id <= m.id), ({_BESIDE}), {', '.join(f'm.{c}' for c in ENTRY)}"

_PATH = f"""
WITH RECURSIVE up (id, parent) AS (
    SELECT id, parent FROM message WHERE id = ?
    UNION ALL SELECT message.id, message.parent FROM message JOIN up ON message.id = up.parent
)
SELECT {_NODE} FROM up JOIN message m ON m.id = up.id ORDER BY m.depth"""

_BELOW = """
WITH RECURSIVE down (id, used) AS (
    SELECT id, used FROM message WHERE id = ? AND conversation = ?
    UNION ALL SELECT message.id, message.used FROM message JOIN down ON message.parent = down.id
)
SELECT id FROM down ORDER BY used DESC LIMIT 1"""

_NEXT = "(SELECT coalesce(max(used), 0) + 1 FROM message WHERE conversation = ?)"


def leaf(connection: sqlite3.Connection, conversation: int) -> int | None:
    """The last message of the branch in use."""
    found: tuple[int] | None = connection.execute(
        "SELECT id FROM message WHERE conversation = ? ORDER BY used DESC LIMIT 1", (conversation,)
    ).fetchone()
    return found[0] if found else None


def path(connection: sqlite3.Connection, end: int | None) -> tuple[Node, ...]:
    """The messages from the root to `end`."""
    return tuple(map(to_node, connection.execute(_PATH, (end,))))


def everything(connection: sqlite3.Connection, conversation: int) -> tuple[Node, ...]:
    """All messages of a conversation in order of making."""
    rows = connection.execute(f"SELECT {_NODE} FROM message m WHERE m.conversation = ? ORDER BY m.id", (conversation,))
    return tuple(map(to_node, rows))


def node(connection: sqlite3.Connection, number: int) -> Node:
    """One message; StoreError where there is none of this number."""
    row = connection.execute(f"SELECT {_NODE} FROM message m WHERE m.id = ?", (number,)).fetchone()
    if row is None:
        raise _unknown(number)
    return to_node(row)


def insert(connection: sqlite3.Connection, conversation: int, parent: int | None, entry: Entry, created: int) -> int:
    """Put a message below its parent, as the leaf in use; its number."""
    depth = 1
    if parent is not None:
        above = connection.execute(
            "SELECT depth FROM message WHERE id = ? AND conversation = ?", (parent, conversation)
        ).fetchone()
        if above is None:
            raise NotStored(f"there is no message {parent} in conversation {conversation}: nothing can follow it")
        depth = above[0] + 1
    place = (conversation, parent, depth, created, conversation, *of_entry(entry))
    columns = f"conversation, parent, depth, created, used, {', '.join(ENTRY)}"
    values = f"?, ?, ?, ?, {_NEXT}, {', '.join('?' * len(ENTRY))}"
    cursor = connection.execute(f"INSERT INTO message ({columns}) VALUES ({values})", place)
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def take(connection: sqlite3.Connection, conversation: int, number: int) -> None:
    """Bring the branch of this message into use, down to the leaf that was in use there last."""
    below = connection.execute(_BELOW, (number, conversation)).fetchone()
    if below is None:
        raise NotStored(f"there is no message {number} in conversation {conversation}: choose another one")
    connection.execute(f"UPDATE message SET used = {_NEXT} WHERE id = ?", (conversation, below[0]))


def versions(connection: sqlite3.Connection, number: int) -> tuple[int, ...]:
    """The messages that stand at this one's place, itself among them, in order of making."""
    rows = connection.execute(
        "SELECT s.id FROM message m JOIN message s ON s.parent IS m.parent AND s.conversation = m.conversation"
        " WHERE m.id = ? ORDER BY s.id",
        (number,),
    )
    return tuple(row[0] for row in rows)


def replace(connection: sqlite3.Connection, number: int, entry: Entry) -> int:
    """Put an entry in a message's place; the number of its conversation."""
    columns = ", ".join(f"{column} = ?" for column in ENTRY)
    found = connection.execute(
        f"UPDATE message SET {columns} WHERE id = ? RETURNING conversation",
        (*of_entry(entry), number),
    ).fetchone()
    if found is None:
        raise _unknown(number)
    return int(found[0])


def _unknown(number: int) -> NotStored:
    return NotStored(f"there is no message {number}: it was deleted, or never there")
