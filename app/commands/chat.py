"""`paceline` without a command: the chat in a window of the terminal."""

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from app import layers
from app.errors import UsageError
from app.settings import Settings

FPS = "120"
"""Chances to draw in a second: with Textual's 60, a key waits too long for its turn while an answer streams."""


def chat(*, options: Annotated[Settings | None, Parameter(name="*")] = None) -> int:
    """Open the chat."""
    settings = layers.load(options or Settings())
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the chat needs a terminal: for one answer, use paceline ask")
    os.environ.setdefault("TEXTUAL_FPS", FPS)  # Textual reads it when it is imported
    from app.tui import run

    return run(settings)
