"""Things that propose tokens: each says what it could offer, and proposes when it is asked to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.stats import Source
from engine.verify import Proposal


@dataclass(frozen=True, slots=True)
class Offer:
    """What a drafter could propose now."""

    source: Source
    length: int
    """Most tokens that it can propose."""
    match: int = 0
    """Tokens before here that agree with the place it copies from; 0 where nothing is copied."""


class Drafter(Protocol):
    """Proposes tokens to follow the committed ids."""

    @property
    def source(self) -> Source:
        """The name under which its drafts are counted."""
        ...

    def offer(self, ids: Sequence[int], limit: int) -> Offer | None:
        """What could be proposed after `ids`, at most `limit` tokens; None: nothing.  Cheap: no model runs."""
        ...

    def propose(self, length: int) -> list[Proposal]:
        """Up to `length` tokens of the last offer, none after an end-of-generation token."""
        ...
