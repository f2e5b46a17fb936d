"""The conversation as data: what was asked and answered, whether or not it is on the screen.

Entries are frozen and in order; the answer being written is not an entry until it ends.
"""

from dataclasses import dataclass
from typing import Literal

from engine.config import Message
from engine.events import TokenTrace
from engine.stats import Answer

Ending = Literal["", "stopped", "cut off", "context full", "broken off"]

ENDINGS: dict[str, Ending] = {"cancelled": "stopped", "length": "cut off", "context_full": "context full"}
"""How an answer that did not come to its own end is flagged, by its finish reason."""


@dataclass(frozen=True)
class Entry:
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    text: str
    answer: Answer | None = None
    """The engine's record of an answer; None where it broke off."""
    ending: Ending = ""
    """Why an answer is not whole; empty where it is."""
    id: int | None = None
    """Its number in the store; None while it has none."""
    version: int = 1
    versions: int = 1
    """Which one it is of so many that stand at its place of the conversation's tree."""
    trace: tuple[TokenTrace, ...] = ()
    """Where each token of an answer came from; empty where that was not kept."""
    opening: str = ""
    """The tag by which its prompt opened a thought, in which an answer then begins; empty: none."""
    attachments: tuple[str, ...] = ()
    """Names of the files whose text a message carries."""

    @classmethod
    def of_answer(cls, answer: Answer) -> "Entry":
        """The entry of an answer that the engine finished."""
        return cls("assistant", answer.text, answer, ENDINGS.get(answer.finish_reason, ""), opening=answer.opening)

    def message(self) -> Message:
        """What the next request carries; an answer goes back as its own ids where they are known."""
        ids = tuple(self.answer.ids) if self.answer and self.answer.ids else None
        return Message(role=self.role, content=self.text, ids=ids)
