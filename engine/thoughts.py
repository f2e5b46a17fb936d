"""The tags around what a model thinks, and the prompt that ends with one: its answer begins inside of a thought.

It imports nothing that is slow to import, since the window reads the names.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.model import Vocabulary

NAMES = ("think", "thinking", "thought")
"""The names of the tags."""
_OPENING = re.compile(rf"(<(?:{'|'.join(NAMES)})>)\s*\Z")
_LAST = 24
"""So many of the last ids hold a tag and the blanks behind it, one byte an id."""


def opening(vocab: "Vocabulary", prompt: Sequence[int]) -> str:
    """The tag by which the end of a prompt opens a thought, such as <think>; empty where it opens none."""
    names = {token: text for text, token in vocab.control.items()}
    pieces = (names[token].encode() if token in names else vocab.piece(token) for token in prompt[-_LAST:])
    found = _OPENING.search(b"".join(pieces).decode("utf-8", "replace"))
    return found[1] if found else ""
