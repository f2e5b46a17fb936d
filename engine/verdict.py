"""How sure it is that a greedy answer is the target's own, where wide passes had a part in it.

A pass over several tokens rounds otherwise than passes over one, which changes the lead of the first token over the
second a little.  The one invariant: every token whose row came from a wide pass, or from a cache that holds what one
wrote, is judged, the token that ended the answer included.
"""

from collections.abc import Sequence

from engine.config import Frozen, Sampling
from engine.stats import Verdict


class Change(Frozen, frozen=True, kw_only=True):
    """The most that wide passes were seen to change logits, against single passes."""

    lead: float = 0.0
    """Of the lead of the first token over the second."""
    logit: float = 0.0
    """Of either of their logits: all may move together, and no lead with them."""

    def threshold(self, sampling: Sampling) -> float:
        """The most that the lead changes by, after the repetition penalty.

        It scales a logit by one of three factors.  With s of the first and t of the second, their lead changes by
        s times the change of the lead and by (s - t) times the change of the second.
        """
        factors = (1.0, sampling.repeat_penalty, 1 / sampling.repeat_penalty)
        return self.lead * max(factors) + self.logit * (max(factors) - min(factors))


class Leads:
    """The leads of one answer's tokens that wide passes had a part in."""

    def __init__(self) -> None:
        self._leads: dict[int, float] = {}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._leads)

    def note(self, start: int, leads: Sequence[float]) -> None:
        """The leads of the tokens from the answer's token `start` on."""
        self._leads.update(enumerate(leads, start))

    def verdict(self, change: Change | None, sampling: Sampling) -> Verdict:
        """Clear, or where the near ties are: the tokens that led by less than a lead was ever seen to change.

        `change` is the most that was seen in calibration; None: nothing was measured.
        """
        if change is None:
            return Verdict(kind="unmeasured")
        threshold = change.threshold(sampling)
        near = sorted(at for at, lead in self._leads.items() if lead < threshold)
        return Verdict(kind="near_ties" if near else "clear", threshold=threshold, near_ties=near)
