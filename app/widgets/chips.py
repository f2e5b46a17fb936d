"""The files that go with the next message, a chip each: name, size, tokens, and a way to take it off again."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from textual import on
from textual.binding import Binding
from textual.containers import ItemGrid
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from app.attachments import Attachment
from app.cells import spread
from app.themes import MUTED
from engine.errors import EngineError

Count = Callable[[str], Awaitable[int]]
"""How many tokens a text is to the model that is loaded."""
CHIP = 36
"""Least cells of a chip where there is room for several beside each other."""


class Chip(Widget, can_focus=True):
    """One file."""

    BINDINGS = [
        Binding(
            "delete,backspace,enter", "remove", "Remove", id="chip.remove", tooltip="Take this file off the message"
        ),
    ]
    ALLOW_SELECT = False

    @dataclass
    class Removed(Message):
        """The user takes the file off."""

        chip: "Chip"

    tokens: reactive[int | None] = reactive[int | None](None)
    """What the file costs of the context; None while that is not known."""

    def __init__(self, file: Attachment) -> None:
        super().__init__()
        self.file = file
        self.tooltip = Content("Takes up this much of the context; a click takes the file off the message")

    def render(self) -> Content:
        """One line: the name as far as there is room for it, the rest whole."""
        from models.text import size

        about = size(self.file.size) if self.tokens is None else f"{size(self.file.size)} · {self.tokens:,} tokens"
        right = Content.assemble((about, MUTED), (" ×", "$text-accent"))
        return spread(Content(self.file.name), right, self.size.width)

    def action_remove(self) -> None:
        """Take the file off."""
        self.post_message(self.Removed(self))

    def on_click(self) -> None:
        """Take the file off."""
        self.action_remove()


class Chips(ItemGrid):
    """All files of the next message, in the order in which they came; hidden where there are none."""

    @dataclass
    class Changed(Message):
        """A file came or went."""

    @dataclass
    class Counted(Message):
        """The tokens of a file are known."""

    def __init__(self) -> None:
        super().__init__(min_column_width=CHIP, stretch_height=False)
        self._count: Count | None = None
        self.display = False

    @property
    def files(self) -> tuple[Attachment, ...]:
        """The files, in order."""
        return tuple(chip.file for chip in self.query(Chip))

    @property
    def tokens(self) -> int:
        """Tokens of all files, as far as they are known."""
        return sum(chip.tokens or 0 for chip in self.query(Chip))

    async def add(self, *files: Attachment) -> None:
        """Take more; one of the same name gives way."""
        names = {file.name for file in files}
        await self.remove_children([chip for chip in self.query(Chip) if chip.file.name in names])
        await self.mount(*(Chip(file) for file in files))
        self._changed()

    async def take(self, *chips: Chip) -> None:
        """Take these off."""
        await self.remove_children(chips)
        self._changed()

    async def clear(self, files: Iterable[Attachment]) -> None:
        """Take off the files that were sent; what came since stays."""
        sent = list(files)
        await self.take(*(chip for chip in self.query(Chip) if any(chip.file is file for file in sent)))

    def count_by(self, count: Count | None) -> None:
        """Count tokens like this from now on; None where no model is loaded."""
        self._count = count
        for chip in self.query(Chip):
            chip.tokens = None
        self._measure()

    @on(Chip.Removed)
    async def _removed(self, event: Chip.Removed) -> None:
        event.stop()
        chips = list(self.query(Chip))
        at = chips.index(event.chip)
        await self.take(event.chip)
        left = list(self.query(Chip))
        (left[min(at, len(left) - 1)] if left else self.screen.query_one("#prompt")).focus()

    def _changed(self) -> None:
        self.display = bool(self.files)
        self.post_message(self.Changed())
        self._measure()

    def _measure(self) -> None:
        """Count what is not counted yet."""
        if self._count is not None:
            self.run_worker(partial(self._tokens, self._count), group="tokens", exclusive=True)

    async def _tokens(self, count: Count) -> None:
        for chip in self.query(Chip):
            if chip.tokens is None:
                with suppress(EngineError):
                    chip.tokens = await count(chip.file.block)
                    self.post_message(self.Counted())
