"""A whole window over a fake engine and a store in memory, and what tests do in it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace as altered
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from app.screens.chat import ChatScreen
from app.transcript import Entry
from app.tui import ChatApp
from app.widgets.answer import AnswerMessage
from app.widgets.conversation import Conversation
from app.widgets.prompt import Prompt
from app.widgets.user_message import UserMessage
from engine.events import TokenTrace
from tests.app.fakes_shelf import FakeShelf, chat_app, until
from tests.fakes_client import FakeClient, FakeEngine, answer, finished, one_round, tokens

SIZE = (120, 30)
"""Room for the sidebar and the panel."""
TALK = (Entry("user", "question"), Entry.of_answer(answer("whole answer")))
HALF = (Entry("user", "question"), Entry.of_answer(answer("half", "cancelled")))
S = TypeVar("S", bound=Screen[object])


@dataclass
class Window:
    """A window, and what the tests do in it."""

    pilot: Pilot[None]
    app: ChatApp
    engine: FakeEngine
    shelf: FakeShelf
    saved: list[Mapping[str, object]]
    """What was written into the settings file."""

    async def until(self, condition: Callable[[], object]) -> None:
        """Let it work until the condition holds."""
        await until(self.pilot, condition)

    async def keys(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)

    async def screen(self, kind: type[S]) -> S:
        """The screen that is up, once it is of this kind."""
        await self.until(lambda: isinstance(self.app.screen, kind))
        assert isinstance(self.app.screen, kind)
        return self.app.screen

    async def focused(self, what: type[Widget] | Widget) -> None:
        """Wait until this, or a widget of this kind, has the focus."""
        await self.until(
            lambda: isinstance(self.app.focused, what) if isinstance(what, type) else self.app.focused is what
        )

    @property
    def chat(self) -> ChatScreen:
        """The chat."""
        assert isinstance(self.app.screen, ChatScreen)
        return self.app.screen

    @property
    def prompt(self) -> Prompt:
        """Its prompt."""
        return self.chat.prompt

    @property
    def conversation(self) -> Conversation:
        """Its messages."""
        return self.chat.conversation

    @property
    def client(self) -> FakeClient:
        """The engine that runs."""
        return self.engine.client

    @property
    def texts(self) -> list[str]:
        """The messages of the branch that is looked at."""
        return [entry.text for entry in self.chat.chat.branch.entries]

    @property
    def shown(self) -> list[str]:
        """The messages that are widgets, as they are drawn."""
        return [
            message.text if isinstance(message, AnswerMessage) else str(message.said.render())
            for message in self.conversation.messages
            if isinstance(message, AnswerMessage | UserMessage)
        ]

    # Conversations

    def keep(self, *entries: Entry) -> int:
        """Put a conversation into the store; its number."""
        store = self.chat.chat.store
        id, parent = store.create(), None
        for entry in entries:
            parent = store.add(id, parent, entry).id
        self.chat.sidebar.reload()
        return id

    async def open(self, *entries: Entry) -> int:
        """Put a conversation into the store and look at it."""
        id = self.keep(*entries)
        await self.chat.open(id)
        await self.until(lambda: len(self.texts) == len(entries) and self.conversation.messages)
        return id

    async def browse(self, index: int = -1) -> None:
        """Bring the message cursor, and the focus, to a message."""
        conversation = self.conversation
        conversation.browse()
        await self.until(lambda: conversation.has_focus_within and conversation.chosen is not None)
        conversation.chosen = index % len(self.texts)
        await self.until(lambda: self.app.focused is not None and self.app.focused.has_class("-chosen"))

    # Answers

    async def ask(self, text: str = "hello") -> None:
        """Ask, and wait until the engine has it."""
        before = len(self.client.requests)
        self.prompt.text = text
        self.prompt.focus()
        await self.keys("enter")
        await self.until(lambda: len(self.client.requests) > before)

    async def stream(self, text: str, trace: Sequence[TokenTrace] = ()) -> None:
        """Some text of the answer comes, and is on the screen where its conversation is."""
        writing = self.chat.chat.writing
        assert writing is not None
        whole = writing.text + text
        self.client.send(altered(tokens(text), trace=list(trace)), one_round())
        await self.until(lambda: writing.text == whole)
        await self.pilot.pause()

    async def finish(self, text: str = "well", **fields: object) -> None:
        """The answer ends."""
        self.client.send(finished(text, **fields))  # type: ignore[arg-type]
        await self.until(lambda: self.chat.state == "ready")


@asynccontextmanager
async def window(
    *clients: FakeClient, installed: bool = True, size: tuple[int, int] = SIZE, **fields: object
) -> AsyncIterator[Window]:
    """A window that is ready; one in which nothing is installed shows the first run."""
    shelf, saved = FakeShelf(installed=installed), list[Mapping[str, object]]()
    app, engine = chat_app(*clients, **{"shelf": shelf, "save": saved.append, **fields})
    async with app.run_test(size=size, notifications=True) as pilot:
        if installed:
            await until(pilot, lambda: isinstance(app.screen, ChatScreen) and app.screen.state == "ready")
        yield Window(pilot, app, engine, shelf, saved)
