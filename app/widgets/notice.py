"""A sentence of the program's own between the messages: what went wrong, or what it chose, and what to do."""

from typing import Literal

from textual.content import Content
from textual.widgets import Static

from engine.detokenize import sanitize

Tone = Literal["note", "error"]


class Notice(Static):
    """One sentence, as plain text."""

    def __init__(self, text: str, tone: Tone = "note") -> None:
        super().__init__(Content(sanitize(text)), classes=f"-{tone}", markup=False)
