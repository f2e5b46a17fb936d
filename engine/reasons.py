"""Why rounds were drafted as they were, and what is said of a whole answer."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.stats import Source

NAMES: Mapping[Source, str] = {"lookup": "lookup", "model": "draft model", "exit": "early exit"}
"""What a reason calls a source."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one round was drafted as it was."""

    text: str
    source: Source | None = None
    """Whose drafts it is about; None: nobody's."""
    needed: float | None = None
    """The least acceptance per test at which that source pays; None: unknown, or not even a perfect one does."""
    observed: float | None = None
    """The acceptance per test that is expected of it."""
    gain: float | None = None
    """Expected tokens per millisecond relative to not drafting, less 1."""
    passing: bool = False
    """Whether it says nothing of the round after this one."""


@dataclass(slots=True)
class Reasons:
    """The reasons of one answer."""

    rounds: int = 0
    _drafted: dict[Source, list[Reason]] = field(default_factory=lambda: defaultdict(list))
    _plain: Reason | None = None

    def note(self, reason: Reason, source: Source | None) -> None:
        """A round whose first draft was of this source; None: that drafted nothing."""
        self.rounds += 1
        if source:
            self._drafted[source].append(reason)
        elif self._plain is None or self._plain.passing or not reason.passing:
            self._plain = reason

    @property
    def text(self) -> str:
        """Each source with its rounds, then the last word on what was left out."""
        said = [
            f"{NAMES[source]} in {len(reasons)} of {self.rounds} rounds{_hoped(_gain(reasons))}"
            for source, reasons in self._drafted.items()
        ]
        return "; ".join([*said, *([self._plain.text] if self._plain else [])])

    @property
    def about(self) -> Reason:
        """The last reason of what was drafted most often; where nothing was, the last reason why not."""
        most = max(self._drafted.values(), key=len, default=None)
        return most[-1] if most else self._plain or Reason("")

    @property
    def gain(self) -> float | None:
        """What rounds with drafts were expected to gain, in the mean."""
        return _gain([reason for reasons in self._drafted.values() for reason in reasons])


def _gain(reasons: list[Reason]) -> float | None:
    known = [reason.gain for reason in reasons if reason.gain is not None]
    return sum(known) / len(known) if known else None


def _hoped(gain: float | None) -> str:
    return "" if gain is None else f" ({gain:+.0%} expected)"
