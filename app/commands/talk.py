"""The conversation that `paceline ask` begins or goes on with, and what keeps it.

Where no history is wanted it is kept in memory, which is the same without a file.  That something cannot be kept is
told once and stops no answer.
"""

import sys
from collections.abc import Callable

from app import options
from app.errors import NotStored, StoreError, UsageError
from app.options import Options
from app.paths import conversations_file
from app.settings import Settings
from app.store.growing import Growing
from app.store.records import Conversation
from app.store.store import Store
from app.transcript import Entry
from engine.config import Message, Request
from engine.detokenize import sanitize
from engine.stats import Answer

OFFERED = 5
"""Conversations that are named where the one that was asked for is not there."""


class Talk:
    """What was said before and what is said now; `said` is what the command line alone says of the settings."""

    def __init__(self, store: Store, settings: Settings, said: Settings, stored: Conversation | None = None) -> None:
        self._store, self._settings, self._kept = store, settings, True
        self._options, self._system = Options.of_settings(said), settings.system or ""
        self._messages: list[Message] = []
        self._number: int | None = None
        self._leaf: int | None = None
        self._growing: Growing | None = None
        if stored is not None:
            self._take_up(stored, said.system)

    def _take_up(self, stored: Conversation, system: str | None) -> None:
        """Go on with what is stored; a question that was never answered stays beside what is asked now."""
        answered = stored.path[:-1] if stored.path and stored.path[-1].entry.role == "user" else stored.path
        self._messages = [node.entry.message() for node in answered]
        self._number, self._leaf = stored.id, answered[-1].id if answered else None
        self._options = self._options.merge(Options.of_json(stored.options))
        self._system = stored.system if system is None else system

    def ask(self, text: str) -> Request:
        """Keep a message of the user; what the engine is asked with it."""
        entry = Entry("user", text)
        self._messages.append(entry.message())
        self._keep(lambda: self._begin(entry))
        return options.request(self._settings, self._options, tuple(self._messages), self._system)

    def open(self, opening: str) -> None:
        """The prompt opens a thought by this tag, in which the answer begins; empty: none."""
        if self._growing is not None:
            self._growing.open(opening)

    def hear(self, text: str) -> None:
        """More of the answer."""
        growing = self._growing
        if growing is not None:
            self._keep(lambda: growing.add(text))

    def end(self, answer: Answer | None = None) -> None:
        """The answer as a whole; None: where there is one, it broke off."""
        growing, self._growing = self._growing, None
        entry = None if answer is None else Entry.of_answer(answer)
        if entry is not None:
            self._messages.append(entry.message())
        if growing is not None:
            self._keep(lambda: self._finish(growing, entry))

    def close(self) -> None:
        """Nothing more is said."""
        self.end()
        self._store.close()

    def _begin(self, entry: Entry) -> None:
        if self._number is None:
            self._number = self._store.create(self._system, self._options.said())
        self._leaf = self._store.add(self._number, self._leaf, entry).id
        self._growing = Growing(self._store, self._number, self._leaf)

    def _finish(self, growing: Growing, entry: Entry | None) -> None:
        self._leaf = growing.end(entry)

    def _keep(self, write: Callable[[], None]) -> None:
        if self._kept:
            try:
                write()
            except StoreError as error:
                self._kept = False
                _note(error)


def open_talk(settings: Settings, said: Settings, latest: bool = False, number: int | None = None) -> Talk:
    """A new conversation, the latest one, or that of a number.

    UsageError where there is none such; StoreError where the stored ones cannot be read and one of them is wanted.
    """
    if latest and number is not None:
        raise UsageError("--continue and --conversation exclude each other: give one of them")
    stored = latest or number is not None
    if stored and settings.history is False:
        raise UsageError("history is off, so there is no conversation to go on with: set history = true")
    store = _open(in_memory=settings.history is False or (bool(settings.demo) and not stored), must=stored)
    try:
        return Talk(store, settings, said, _found(store, number) if stored else None)
    except BaseException:
        store.close()
        raise


def _open(in_memory: bool, must: bool) -> Store:
    try:
        return Store.open(None if in_memory else conversations_file())
    except StoreError as error:
        if must:
            raise
        _note(error)
        return Store.open(None)


def _found(store: Store, number: int | None) -> Conversation:
    """The conversation of this number; None: the latest."""
    recent = store.recent(OFFERED)
    if not recent:
        raise UsageError("no conversation is stored yet: begin one without --continue and --conversation")
    try:
        return store.get(recent[0].id if number is None else number)
    except NotStored as error:
        named = ", ".join(f"{summary.id} ({summary.title})" for summary in recent)
        raise UsageError(f"there is no conversation {number}: the latest are {named}") from error


def _note(error: StoreError) -> None:
    print(f"paceline: this conversation is not kept: {sanitize(str(error))}", file=sys.stderr)
