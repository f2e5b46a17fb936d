"""The branch of a conversation that is in use: what the window shows, and what the engine is sent.

One invariant: it is in the store before it is anywhere else, so a conversation that is opened again, after a crash too,
is the same.  Nothing is kept of a conversation in which nothing was said.
"""

from contextlib import suppress

from app.attachments import Draft
from app.errors import StoreError
from app.options import Options
from app.store.growing import Growing
from app.store.records import Conversation, Node
from app.store.store import Store
from app.transcript import Entry
from engine.config import Message


class Branch:
    """One conversation, from its first message to the one that is answered next.

    All that changes it raises StoreError, and has then changed nothing.
    """

    def __init__(self, store: Store, conversation: Conversation | None = None) -> None:
        self._store = store
        self.id = conversation.id if conversation else None
        """Its number in the store; None while nothing was said."""
        self.system = conversation.system if conversation else ""
        self.options = Options.of_json(conversation.options) if conversation else Options()
        self._path: list[Node] = list(conversation.path) if conversation else []

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its messages."""
        return tuple(node.entry for node in self._path)

    @property
    def leaf(self) -> Entry | None:
        """Its last message."""
        return self._path[-1].entry if self._path else None

    def messages(self) -> tuple[Message, ...]:
        """Its messages as the engine wants them."""
        return tuple(entry.message() for entry in self.entries)

    def index(self, entry: int | None) -> int | None:
        """Where the message of this number stands; None where it is not on this branch (any longer)."""
        return next((at for at, node in enumerate(self._path) if node.id == entry), None)

    def say(self, draft: Draft) -> Entry:
        """Put a message of the user's at its end."""
        if self.id is None:
            self.id = self._store.create(self.system, self.options.said())
        entry = Entry("user", draft.message, attachments=draft.names)
        self._path.append(self._store.add(self.id, self._tip, entry))
        with suppress(StoreError):  # the message is kept; that the arrow keys bring it back is not worth an error
            self._store.remember_input(draft.text, self.id)
        return self._path[-1].entry

    def correct(self, draft: Draft, said: Entry) -> Entry:
        """Put an answer of the user's own wording at its end, in the place of what the model said."""
        assert self.id is not None
        text, closing = draft.message, f"</{said.opening[1:]}"
        begins_inside = closing in text or closing not in said.text
        entry = Entry("assistant", text, opening=said.opening if begins_inside else "")
        self._path.append(self._store.add(self.id, self._tip, entry))
        return self._path[-1].entry

    def cut(self, length: int) -> None:
        """Go on behind its first `length` messages; those after them stay in the store, as another branch."""
        del self._path[length:]

    def take(self, entry: int, step: int) -> bool:
        """Bring another version of a message into use, with what followed it; whether there is one."""
        versions = self._store.versions(entry)
        place = versions.index(entry) + step
        if self.id is None or not 0 <= place < len(versions):
            return False
        self._path = list(self._store.choose(self.id, versions[place]).path)
        return True

    def read(self) -> None:
        """Be what the store has of it, after something was cut or an answer came."""
        if self.id is not None:
            self._path = list(self._store.get(self.id).path)

    def set_options(self, system: str, options: Options) -> None:
        """Hold another system prompt and other settings from the next answer on."""
        if self.id is not None:
            self._store.set_system(self.id, system)
            self._store.set_options(self.id, options.said())
        self.system, self.options = system, options

    def grow(self, begun: Node | None = None) -> Growing:
        """An answer below the last message, or one that goes on."""
        assert self.id is not None
        return Growing(self._store, self.id, None if begun else self._tip, begun)

    @property
    def last(self) -> Node | None:
        """Its last message as the store has it."""
        return self._path[-1] if self._path else None

    @property
    def _tip(self) -> int | None:
        return self._path[-1].id if self._path else None
