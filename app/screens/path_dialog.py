"""A small dialog that asks for the path of a file and does something with it; where that fails, it says why."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.cells import one_line
from app.widgets.field import Field
from app.widgets.key_button import KeyButton
from app.widgets.task import reason

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """What is asked, and what is done with the answer."""

    title: str
    hint: str
    """One line on what may be given."""
    verb: str
    """What the button says."""
    do: Callable[[str], T]
    """Called in a thread with the path as it was written; an exception is shown, and another path can be given."""
    value: str = ""


class PathDialog(ModalScreen[T | None], Generic[T]):
    """Ends with what came of it; with None where the user gave it up."""

    CSS_PATH = "path_dialog.tcss"
    AUTO_FOCUS = "Field"
    BINDINGS = [
        Binding("enter", "accept", "OK", id="path.accept", tooltip="Do it with this path"),
        Binding("escape", "cancel", "Cancel", id="path.cancel", tooltip="Close this and do nothing"),
    ]

    def __init__(self, question: Question[T]) -> None:
        super().__init__()
        self._question = question
        self._field = Field(question.value, placeholder="path of a file", select=False)
        self._said = Static(Content(question.hint), id="path-said", markup=False)
        self._busy = False

    def compose(self) -> ComposeResult:
        """Title, field, a hint or what went wrong, and two buttons."""
        asked = self._question
        with Vertical(id="path-dialog"):
            yield Static(Content.styled(asked.title, "bold $accent"), markup=False)
            yield self._field
            yield self._said
            with Horizontal():
                yield KeyButton(self, "path.accept", asked.verb)
                yield KeyButton(self, "path.cancel")

    @on(Field.Submitted)
    def action_accept(self) -> None:
        """Do it with the path that is written."""
        if self._field.value.strip() and not self._busy:
            self._busy = True
            self.run_worker(partial(self._do, self._field.value))

    async def _do(self, path: str) -> None:
        try:
            done = await asyncio.to_thread(self._question.do, path)
        except Exception as error:
            self._said.add_class("-error")
            self._said.update(Content(one_line(reason(error))))
        else:
            self.dismiss(done)
        finally:
            self._busy = False

    def action_cancel(self) -> None:
        """Do nothing."""
        self.dismiss(None)
