"""The corner of a block of code that copies it."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.widgets import Static


class CopyMark(Static):
    """A word at the upper right, over the code; seen while the mouse is there or the message is chosen."""

    ALLOW_SELECT = False

    @dataclass
    class Clicked(Message):
        """The block is to be copied."""

    def __init__(self) -> None:
        super().__init__(Content("copy"), markup=False)
        self.tooltip = Content("Copy this block of code")

    def on_click(self) -> None:
        """Ask for it."""
        self.post_message(self.Clicked())
