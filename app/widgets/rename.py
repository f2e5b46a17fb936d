"""A title that is being rewritten in its place: a field that lies over the row and goes where the row goes."""

from dataclasses import dataclass

from textual import events, on
from textual.binding import Binding
from textual.message import Message

from app.widgets.field import Field
from app.widgets.row_list import RowList


class Rename(Field):
    """Over a row of a list; Enter, or going elsewhere, keeps what is written, Esc the old title."""

    BINDINGS = [Binding("escape", "cancel", "Cancel", id="rename.cancel", tooltip="Keep the old title")]

    @dataclass
    class Done(Message):
        """There is a new title."""

        conversation: int
        title: str
        """Empty where the conversation is to be called after its first message again."""

    def __init__(self, conversation: int, title: str, rows: RowList, key: str) -> None:
        super().__init__(title)
        self._conversation, self._old = conversation, title
        self._rows, self._key = rows, key
        self._over = False

    @on(events.Mount)
    def _stay_with_row(self) -> None:
        self.watch(self._rows, "scroll_y", self._place)
        self.watch(self._rows, "virtual_size", self._place)
        self.focus()

    def _place(self) -> None:
        line = self._rows.line_of(self._key)
        region = self._rows.region
        self.display = line is not None and 0 <= line < region.height
        if line is not None and self.parent is not None:
            self.styles.offset = (1, region.y - self.parent.region.y + line)  # type: ignore[attr-defined]

    @on(Field.Submitted)
    def _keep(self, event: Field.Submitted) -> None:
        event.stop()
        self._end(event.value.strip())

    @on(Field.Blurred)
    def _left(self, event: Field.Blurred) -> None:
        event.stop()
        if self.app.app_focus:
            self._end(event.value.strip(), back=False)

    @on(Field.Changed)
    def _typed(self, event: Field.Changed) -> None:
        event.stop()

    def action_cancel(self) -> None:
        """Keep the old title."""
        self._end(self._old)

    def _end(self, title: str, *, back: bool = True) -> None:
        if self._over:
            return
        self._over = True
        if title != self._old:
            self.post_message(self.Done(self._conversation, title))
        if back:
            self._rows.focus()
        self.remove()
