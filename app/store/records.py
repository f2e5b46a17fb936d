"""What the store gives and takes: frozen records, which know nothing of the database.

Times are aware and in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from app.transcript import Entry


@dataclass(frozen=True)
class Summary:
    """One line of the list of conversations."""

    id: int
    title: str
    """Empty until something is said."""
    changed: datetime
    """When it was last said something in."""
    pinned: bool
    messages: int
    """How long the branch in use is."""


@dataclass(frozen=True)
class Node:
    """One message of the tree."""

    id: int
    parent: int | None
    """The message that it follows; None where it begins the conversation."""
    entry: Entry
    """With id, version and versions, and without a trace (`Store.trace` has it)."""
    created: datetime


@dataclass(frozen=True)
class Conversation:
    """One conversation with the branch in use."""

    id: int
    title: str
    system: str
    options: Mapping[str, object]
    """Settings of this conversation alone: what JSON can say."""
    unsent: str
    """What stands in its prompt."""
    path: tuple[Node, ...]
    """From the root to the leaf in use."""


@dataclass(frozen=True)
class Hit:
    """One place where a search found what it looked for."""

    conversation: int
    message: int | None
    """None where it is the title."""
    title: str
    excerpt: str
    """One line of the text around the match."""
    spans: tuple[tuple[int, int], ...]
    """What matches in the excerpt: from, and up to."""
    changed: datetime
    """When the conversation was last said something in."""


@dataclass(frozen=True)
class Preset:
    """A system prompt and settings under a name."""

    name: str
    system: str
    options: Mapping[str, object]


@dataclass(frozen=True)
class Tree:
    """A whole conversation, to go out or to come in: every branch, in order of making."""

    title: str
    system: str
    options: Mapping[str, object]
    nodes: tuple[Node, ...]
    """With their traces; each parent comes before its children."""
    leaf: int | None
    """The last message of the branch in use."""
    pinned: bool = False
    titled: bool = False
    """Whether the user chose the title."""
