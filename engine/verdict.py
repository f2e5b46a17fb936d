"""How sure it is that a greedy answer is the target's own, where wide passes had a part in it.

A pass over several tokens rounds otherwise than passes over one, which changes the lead of the first token over the
second a little.  The one invariant: every token whose row came from a wide pass, or from a cache that holds what one
wrote, is judged, the token that ended the answer included.
"""

from collections.abc import Sequence

from engine.config import Sampling
from engine.stats import Verdict


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

    def verdict(self, lead_change: float | None, sampling: Sampling) -> Verdict:
        """Clear, or where the near ties are: the tokens that led by less than a lead was ever seen to change.

        `lead_change` is the most that was seen in calibration, in logits; None: nothing was measured.
        """
        if lead_change is None:
            return Verdict(kind="unmeasured")
        threshold = lead_change * max(sampling.repeat_penalty, 1 / sampling.repeat_penalty)
        near = sorted(at for at, lead in self._leads.items() if lead < threshold)
        return Verdict(kind="near_ties" if near else "clear", threshold=threshold, near_ties=near)
