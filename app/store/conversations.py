"""Conversations and what is said in them, as queries on a connection; the caller's transaction makes them whole."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace

from app.errors import NotStored, StoreError
from app.store import rows, search, tree
from app.store.records import Conversation, Summary, Tree
from app.store.titles import title_of
from app.transcript import Entry
from engine.events import TokenTrace

_DEPTH = "SELECT depth FROM message WHERE conversation = c.id ORDER BY used DESC LIMIT 1"
_LISTED = f"SELECT id, title, changed, pinned, coalesce(({_DEPTH}), 0) FROM conversation c WHERE deleted IS NULL"
_SUMMARIES = f"{_LISTED} AND (pinned, changed, id) < (?, ?, ?) ORDER BY pinned DESC, changed DESC, id DESC LIMIT ?"
_SAID_IN = "EXISTS (SELECT 1 FROM message WHERE conversation = c.id)"
_RECENT = f"{_LISTED} AND {_SAID_IN} ORDER BY changed DESC, id DESC LIMIT ?"
_BEFORE_ALL = (2, 0, 0)


def create(connection: sqlite3.Connection, system: str, options: Mapping[str, object], now: int) -> int:
    """Begin one; its number."""
    number = connection.execute(
        "INSERT INTO conversation (system, options, created, changed) VALUES (?, ?, ?, ?)",
        (rows.clean(system), rows.written(dict(options)), now, now),
    ).lastrowid
    assert number is not None
    return number


def summaries(connection: sqlite3.Connection, limit: int, before: Summary | None) -> list[Summary]:
    """Pinned ones first, then the newest, those after `before`."""
    after = (before.pinned, rows.stamp(before.changed), before.id) if before else _BEFORE_ALL
    return _summaries(connection, _SUMMARIES, (*after, limit))


def recent(connection: sqlite3.Connection, limit: int) -> list[Summary]:
    """Those in which something was said, the newest first, whatever is pinned."""
    return _summaries(connection, _RECENT, (limit,))


def fetch(connection: sqlite3.Connection, conversation: int) -> Conversation:
    """One with the branch in use."""
    found = connection.execute(
        "SELECT title, system, options, unsent FROM conversation WHERE id = ? AND deleted IS NULL", (conversation,)
    ).fetchone()
    if found is None:
        raise _unknown(conversation)
    title, system, options, unsent = found
    path = tree.path(connection, tree.leaf(connection, conversation))
    return Conversation(conversation, title, system, rows.options(options), unsent, path)


def there(connection: sqlite3.Connection, conversation: int) -> bool:
    """Whether there is such a one, and it is not deleted."""
    found = connection.execute("SELECT 1 FROM conversation WHERE id = ? AND deleted IS NULL", (conversation,))
    return found.fetchone() is not None


def change(connection: sqlite3.Connection, conversation: int, values: Mapping[str, object]) -> None:
    """Set columns of one."""
    places = ", ".join(f"{column} = ?" for column in values)
    changed = connection.execute(
        f"UPDATE conversation SET {places} WHERE id = ? AND deleted IS NULL",
        (*values.values(), conversation),
    )
    if not changed.rowcount:
        raise _unknown(conversation)


def rename(connection: sqlite3.Connection, conversation: int, title: str) -> None:
    """Give one the user's title, or that of its first message again."""
    path = () if title else tree.path(connection, tree.leaf(connection, conversation))
    shown = title_of(path[0].entry) if path else title
    change(connection, conversation, {"title": shown, "titled": bool(title)})
    search.keep_title(connection, conversation, shown)


def restore(connection: sqlite3.Connection, conversation: int) -> None:
    """Bring back a deleted one, of which nothing has been erased."""
    again = "UPDATE conversation SET deleted = NULL WHERE id = ? AND deleted IS NOT 0"
    if not connection.execute(again, (conversation,)).rowcount:
        raise _unknown(conversation)


def say(connection: sqlite3.Connection, conversation: int, parent: int | None, entry: Entry, now: int) -> int:
    """Put a message below another one, as the leaf in use; its number."""
    change(connection, conversation, {"changed": now})
    number = tree.insert(connection, conversation, parent, entry, now)
    _keep(connection, number, entry)
    if parent is None and entry.role == "user":
        title = rows.clean(title_of(entry))
        if connection.execute(
            "UPDATE conversation SET title = ? WHERE id = ? AND title = ''", (title, conversation)
        ).rowcount:
            search.keep_title(connection, conversation, title)
    return number


def say_anew(connection: sqlite3.Connection, message: int, entry: Entry, now: int) -> None:
    """Put an entry in the place of a message, though its conversation be deleted: it may come back."""
    conversation = tree.replace(connection, message, entry)
    connection.execute("UPDATE conversation SET changed = ? WHERE id = ?", (now, conversation))
    _keep(connection, message, entry)


def trace(connection: sqlite3.Connection, message: int) -> tuple[TokenTrace, ...]:
    """Where each token of a message came from."""
    found = connection.execute("SELECT tokens FROM trace WHERE message = ?", (message,)).fetchone()
    return rows.to_trace(found[0]) if found else ()


def whole(connection: sqlite3.Connection, conversation: int) -> Tree:
    """One with all its branches and traces."""
    shown = fetch(connection, conversation)
    pinned, titled = connection.execute(
        "SELECT pinned, titled FROM conversation WHERE id = ?", (conversation,)
    ).fetchone()
    nodes = tuple(
        replace(node, entry=replace(node.entry, trace=trace(connection, node.id)))
        for node in tree.everything(connection, conversation)
    )
    leaf = tree.leaf(connection, conversation)
    return Tree(shown.title, shown.system, shown.options, nodes, leaf, bool(pinned), bool(titled))


def plant(connection: sqlite3.Connection, grown: Tree, now: int) -> int:
    """Take a whole one in, with numbers of its own; its number."""
    begun = min((rows.stamp(node.created) for node in grown.nodes), default=now)
    conversation = create(connection, grown.system, grown.options, begun)
    numbers: dict[int, int] = {}
    for node in grown.nodes:
        if node.id in numbers or (node.parent is not None and node.parent not in numbers):
            raise StoreError(f"message {node.id} stands before the one that it follows, or twice: nothing was taken in")
        parent = None if node.parent is None else numbers[node.parent]
        numbers[node.id] = say(connection, conversation, parent, node.entry, rows.stamp(node.created))
    if grown.leaf is not None and grown.leaf in numbers:
        tree.take(connection, conversation, numbers[grown.leaf])
    if grown.titled:
        rename(connection, conversation, grown.title)
    return conversation


def _summaries(connection: sqlite3.Connection, query: str, values: tuple[int, ...]) -> list[Summary]:
    found = connection.execute(query, values)
    return [Summary(id, title, rows.moment(at), bool(pinned), length) for id, title, at, pinned, length in found]


def _keep(connection: sqlite3.Connection, message: int, entry: Entry) -> None:
    """What is kept beside the text: its terms, and the trace where there is one."""
    search.keep_message(connection, message, entry.text)
    if entry.trace:
        connection.execute("INSERT OR REPLACE INTO trace VALUES (?, ?)", (message, rows.of_trace(entry.trace)))


def _unknown(conversation: int) -> NotStored:
    return NotStored(f"there is no conversation {conversation}: it was deleted, or never there")
