"""Things that propose tokens: each says what it could offer, and proposes when it is asked to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Proposal

Submits = Callable[[Sequence[Distribution]], bool]
"""Asked with the rows of this round's sampled drafts, up to the one that the next would be drawn from: is it sent?"""


def always(rows: Sequence[Distribution]) -> bool:  # noqa: ARG001
    """Every token is sent."""
    return True


class Mark(NamedTuple):
    """How well a copied token is supported."""

    match: int
    """Tokens before it that agree with the place it is copied from."""
    agree: int = 1
    """Places that go on with it."""
    other: int = 0
    """Places that agree as far, and go on with another token."""
    library: bool = False
    """Whether they stand in earlier answers, not in this conversation."""
    near: bool = False
    """Whether they stand about where copying has been going on."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a drafter could propose now."""

    source: Source
    length: int
    """Most tokens that it can propose."""
    tokens: Sequence[int] = ()
    """What is copied; none where a model samples."""
    marks: Sequence[Mark] = ()
    """The support of each copied token."""
    lag: int = 0
    """Tokens that its model has to read before it can sample, beside those that go along with its next pass."""

    @property
    def match(self) -> int:
        """Tokens before here that agree with the place that is copied from; 0 where nothing is copied."""
        return self.marks[0].match if self.marks else 0


class Drafter(Protocol):
    """Proposes tokens to follow the committed ids, and what others have drafted behind them in this round."""

    @property
    def source(self) -> Source:
        """The name under which its drafts are counted."""
        ...

    def offer(self, ids: Sequence[int], limit: int, ahead: Sequence[int] = ()) -> Offer | None:
        """What could follow `ids` and `ahead`, at most `limit` tokens; None: nothing.  Cheap: no model runs."""
        ...

    def propose(self, length: int, ahead: Sequence[Proposal] = (), submits: Submits = always) -> list[Proposal]:
        """Up to `length` tokens of the last offer, which was made for the same `ahead`; none after one that ends."""
        ...
