"""Conversations as text: Markdown to be read, and JSON that holds all of one and comes back as it went.

Neither holds a character that acts on a terminal.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from app.errors import StoreError
from app.store import rows
from app.store.records import Conversation, Node, Tree
from app.store.store import Store
from app.transcript import Ending, Entry
from engine.detokenize import sanitize
from engine.events import TokenTrace

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ACTING = re.compile("[\x7f-\x9f]")
_NO_RECORD = msgspec.Raw(b"null")


class _Message(msgspec.Struct, kw_only=True):
    id: int
    parent: int | None
    role: Literal["user", "assistant"]
    text: str
    created: Annotated[datetime, msgspec.Meta(tz=True)]
    ending: Ending = ""
    opening: str = ""
    attachments: list[str] = []
    answer: msgspec.Raw = _NO_RECORD
    trace: msgspec.Raw = _NO_RECORD


class _File(msgspec.Struct, kw_only=True):
    format: Literal["paceline conversation"] = "paceline conversation"
    version: Literal[1] = 1
    title: str
    titled: bool = False
    pinned: bool = False
    system: str = ""
    options: dict[str, object] = {}
    leaf: int | None = None
    messages: list[_Message]


def to_json(store: Store, conversation: int) -> str:
    """All branches of a conversation, with what is known of each answer."""
    tree = store.tree(conversation)
    file = _File(
        title=tree.title,
        titled=tree.titled,
        pinned=tree.pinned,
        system=tree.system,
        options=dict(tree.options),
        leaf=tree.leaf,
        messages=[_message(node) for node in tree.nodes],
    )
    text = msgspec.json.format(msgspec.json.encode(file), indent=1).decode() + "\n"
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def from_json(store: Store, text: str) -> int:
    """Take in what `to_json` gave; the number of the new conversation.

    StoreError where it is anything else; what is known of an answer is left out where this version cannot read it.
    """
    try:
        file = msgspec.json.decode(rows.clean(text), type=_File)
    except msgspec.DecodeError as error:
        raise StoreError(f"this is no conversation that paceline has exported: {error}") from error
    nodes = tuple(Node(message.id, message.parent, _entry(message), message.created) for message in file.messages)
    return store.plant(
        Tree(file.title, file.system, file.options, nodes, file.leaf, pinned=file.pinned, titled=file.titled)
    )


def to_markdown(conversation: Conversation) -> str:
    """The branch in use, to be read."""
    parts = [f"# {conversation.title or 'Conversation'}"]
    if conversation.system:
        parts += ["## System", conversation.system]
    for node in conversation.path:
        parts += _section(node.entry)
    return sanitize("\n\n".join(_closed(part) for part in parts)) + "\n"


def _message(node: Node) -> _Message:
    entry = node.entry
    return _Message(
        id=node.id,
        parent=node.parent,
        role=entry.role,
        text=entry.text,
        created=node.created,
        ending=entry.ending,
        opening=entry.opening,
        attachments=list(entry.attachments),
        answer=msgspec.Raw(msgspec.json.encode(entry.answer)),
        trace=msgspec.Raw(msgspec.json.encode(entry.trace)) if entry.trace else _NO_RECORD,
    )


def _entry(message: _Message) -> Entry:
    return Entry(
        message.role,
        message.text,
        rows.to_answer(bytes(message.answer)),
        message.ending,
        trace=_trace(message.trace),
        opening=message.opening,
        attachments=tuple(message.attachments),
    )


def _trace(record: msgspec.Raw) -> tuple[TokenTrace, ...]:
    try:
        return tuple(msgspec.json.decode(record, type=list[TokenTrace] | None) or ())
    except msgspec.DecodeError:
        return ()


def _section(entry: Entry) -> Iterator[str]:
    """The heading, the text and what is to be said about it."""
    yield "## You" if entry.role == "user" else f"## {entry.answer.target if entry.answer else 'Answer'}"
    yield entry.opening + entry.text
    if entry.attachments:
        yield f"*With {', '.join(entry.attachments)}*"
    if entry.ending:
        yield f"*({entry.ending})*"


def _closed(text: str) -> str:
    """The same with the code block ended that it leaves open, so that it does not swallow what follows."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return f"{text.rstrip()}\n{fence}" if fence else text
