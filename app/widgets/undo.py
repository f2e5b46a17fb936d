"""What was deleted, the last of it named, with a button that brings it back."""

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Static

from app.cells import cut
from app.widgets.key_button import KeyButton

SEEN_S = 30.0
"""Seconds for which it is seen after each deletion; the key works on."""


class Undo(Horizontal):
    """One line after a deletion."""

    def __init__(self, button: KeyButton) -> None:
        super().__init__()
        self._said = Static(id="undo-said", markup=False)
        self._button = button
        self._deleted: list[tuple[int, str]] = []
        self._seen: Timer | None = None

    def compose(self) -> ComposeResult:
        """What was deleted, and the button."""
        yield self._said
        yield self._button

    def on_mount(self) -> None:
        """There is nothing yet."""
        self.display = False

    def _hide(self) -> None:
        self.display = False

    @property
    def waiting(self) -> bool:
        """Whether something can be brought back."""
        return bool(self._deleted)

    def add(self, id: int, title: str) -> None:
        """This was deleted."""
        self._deleted.append((id, title))
        self._show()

    def take(self) -> int | None:
        """What was deleted last is brought back: its number; None where there is nothing."""
        taken = self._deleted.pop()[0] if self._deleted else None
        self._show()
        return taken

    def _show(self) -> None:
        self.display = self.waiting
        if self.waiting:
            self._said.update(cut(f"Deleted {self._deleted[-1][1]}", self.size.width or 80))
        if self._seen is not None:
            self._seen.stop()
        self._seen = self.set_timer(SEEN_S, self._hide)
