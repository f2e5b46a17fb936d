"""The conversations of the user, on the disk or, where no history is wanted, in memory alone.

The one invariant: each call is one transaction, so what a call has returned from is not lost by any crash, and what it
raised from has changed nothing.  All calls raise StoreError, with one line that says what to do.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from app.store import conversations, desk, erasing, rows, search, tree
from app.store.database import Database
from app.store.records import Conversation, Hit, Node, Preset, Summary, Tree
from app.transcript import Entry
from engine.events import TokenTrace

_UNSENT = "unsent"
BREATH_S = 0.02
"""Seconds between two steps of a purge, for whoever waits to write."""


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Store:
    """All conversations; usable from any thread."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self._database, self._clock = database, clock
        self._opened = self._now()

    @classmethod
    def open(cls, path: Path | None, clock: Callable[[], datetime] = utc_now) -> "Store":
        """Open or make the file; None keeps all in memory.

        StoreDamaged where the file is broken (`database.set_aside` makes room for a new one).
        """
        return cls(Database.open(path), clock)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        self._database.close()

    @property
    def on_disk(self) -> bool:
        """Whether what is said outlives the window."""
        return self._database.on_disk

    def create(self, system: str = "", options: Mapping[str, object] | None = None) -> int:
        """Begin a conversation; its number, which no other one ever gets."""
        with self._database.writing() as connection:
            return conversations.create(connection, system, options or {}, self._now())

    def summaries(self, limit: int = 200, before: Summary | None = None) -> list[Summary]:
        """Pinned ones first, then the newest, without deleted ones; `before` is the last one of the page before."""
        with self._database.reading() as connection:
            return conversations.summaries(connection, limit, before)

    def recent(self, limit: int) -> list[Summary]:
        """Those in which something was said, the newest first, whatever is pinned."""
        with self._database.reading() as connection:
            return conversations.recent(connection, limit)

    def get(self, conversation: int) -> Conversation:
        """A conversation with the branch in use."""
        with self._database.reading() as connection:
            return conversations.fetch(connection, conversation)

    def has(self, conversation: int) -> bool:
        """Whether there is such a conversation, and it is not deleted."""
        with self._database.reading() as connection:
            return conversations.there(connection, conversation)

    def rename(self, conversation: int, title: str) -> None:
        """Give it a title of the user's own; an empty one takes that of its first message again."""
        with self._database.writing() as connection:
            conversations.rename(connection, conversation, " ".join(rows.clean(title).split()))

    def pin(self, conversation: int, pinned: bool) -> None:
        """Have it stand above the others, or no longer."""
        with self._database.writing() as connection:
            conversations.change(connection, conversation, {"pinned": pinned})

    def delete(self, conversation: int) -> None:
        """Take it away; until it is purged, `restore` brings it back."""
        with self._database.writing() as connection:
            conversations.change(connection, conversation, {"deleted": self._now()})

    def restore(self, conversation: int) -> None:
        """Bring back what was deleted; StoreError where it is purged."""
        with self._database.writing() as connection:
            conversations.restore(connection, conversation)

    def purge(self) -> tuple[int, ...]:
        """Erase what was deleted before this store was opened, in the file and its index; the numbers of it.

        This may take seconds, in which others read and write; closing the store ends it, and the next one goes on.
        """
        with self._database.aside() as database:
            gone = erasing.condemn(database, self._opened)
            for _ in erasing.steps(database, gone):
                if self._database.closed:
                    break
                time.sleep(BREATH_S)
        return gone

    def set_system(self, conversation: int, text: str) -> None:
        """Change its system prompt."""
        with self._database.writing() as connection:
            conversations.change(connection, conversation, {"system": rows.clean(text)})

    def set_options(self, conversation: int, options: Mapping[str, object]) -> None:
        """Change its settings; StoreError where JSON cannot say them."""
        with self._database.writing() as connection:
            conversations.change(connection, conversation, {"options": rows.written(dict(options))})

    def set_unsent(self, conversation: int | None, text: str) -> None:
        """Keep what stands in its prompt; None: in the prompt of a conversation that has not begun."""
        with self._database.writing() as connection:
            if conversation is None:
                desk.keep_note(connection, _UNSENT, text)
            else:
                conversations.change(connection, conversation, {"unsent": rows.clean(text)})

    def unsent(self) -> str:
        """What stood in the prompt of a conversation that had not begun."""
        with self._database.reading() as connection:
            return desk.note(connection, _UNSENT)

    def add(self, conversation: int, parent: int | None, entry: Entry) -> Node:
        """Put a message below another one, as the leaf in use; the first one of the user gives the title."""
        with self._database.writing() as connection:
            return tree.node(connection, conversations.say(connection, conversation, parent, entry, self._now()))

    def update(self, message: int, entry: Entry) -> None:
        """Put an entry in a message's place, as an answer grows or ends; one without a trace leaves the trace."""
        with self._database.writing() as connection:
            conversations.say_anew(connection, message, entry, self._now())

    def choose(self, conversation: int, message: int) -> Conversation:
        """Bring the branch of a message into use, down to the leaf that was in use there last."""
        with self._database.writing() as connection:
            tree.take(connection, conversation, message)
            return conversations.fetch(connection, conversation)

    def versions(self, message: int) -> tuple[int, ...]:
        """All messages at the place of this one, itself among them, in order of making."""
        with self._database.reading() as connection:
            return tree.versions(connection, message)

    def trace(self, message: int) -> tuple[TokenTrace, ...]:
        """Where each token of an answer came from, its chances to four digits; empty where that was not kept."""
        with self._database.reading() as connection:
            return conversations.trace(connection, message)

    def search(self, text: str, limit: int = 50) -> list[Hit]:
        """Where titles and then messages, newest first, hold all words of a text, the last as far as it is typed."""
        with self._database.reading() as connection:
            return search.search(connection, text, limit)

    def tree(self, conversation: int) -> Tree:
        """A conversation with all its branches and traces."""
        with self._database.reading() as connection:
            return conversations.whole(connection, conversation)

    def plant(self, grown: Tree) -> int:
        """Take in a whole conversation under numbers of its own; its number."""
        with self._database.writing() as connection:
            return conversations.plant(connection, grown, self._now())

    def inputs(self, limit: int = 100) -> list[str]:
        """What the user said before, newest first, each once."""
        with self._database.reading() as connection:
            return desk.inputs(connection, limit)

    def remember_input(self, text: str, conversation: int | None = None) -> None:
        """Keep what the user said, for the arrow keys; it is erased with its conversation."""
        with self._database.writing() as connection:
            desk.remember_input(connection, text, conversation)

    def presets(self) -> list[Preset]:
        """All presets by name."""
        with self._database.reading() as connection:
            return desk.presets(connection)

    def save_preset(self, name: str, system: str, options: Mapping[str, object]) -> None:
        """Keep a system prompt and settings under a name, in the place of what had it."""
        with self._database.writing() as connection:
            desk.save_preset(connection, name, system, rows.written(dict(options)))

    def delete_preset(self, name: str) -> None:
        """Delete a preset, if there is one of this name."""
        with self._database.writing() as connection:
            desk.delete_preset(connection, name)

    def _now(self) -> int:
        return rows.stamp(self._clock())
