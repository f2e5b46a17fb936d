"""How likely a drafted token is to be kept: learned by source, around a prior, forgetting slowly."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from engine.drafters import Offer
from engine.stats import Source

LOOKUP_PRIOR = {2: 0.44, 3: 0.5, 4: 0.6, 5: 0.73, 6: 0.8, 8: 0.8, 12: 0.95, 16: 0.98}
"""Chance that a copied token is right, by length of the match: measured over answers of 15 kinds."""
PRIORS: Mapping[Source, float] = MappingProxyType({"model": 0.8, "exit": 0.5})
"""Chance that a sampled token is kept, before anything was seen."""
WEIGHT = 12.0
"""How many tests a prior is worth."""
MEMORY = 0.98
"""What a test still weighs after the next one."""


@dataclass(slots=True)
class Estimate:
    """A chance, learned from tests around a prior, forgetting slowly."""

    prior: float
    kept: float = 0.0
    tests: float = 0.0

    @property
    def chance(self) -> float:
        """The expected chance now."""
        return (self.prior * WEIGHT + self.kept) / (WEIGHT + self.tests)

    def learn(self, kept: bool) -> None:
        """Take in one test."""
        self.kept = self.kept * MEMORY + kept
        self.tests = self.tests * MEMORY + 1


class Acceptance:
    """The estimates of all sources; a copied stretch grows its own match with each token that is right."""

    def __init__(self, priors: Mapping[Source, float] = PRIORS) -> None:
        """`priors` are what was measured; PRIORS hold for sources that are not in it."""
        self._sampled = {source: Estimate(prior) for source, prior in {**PRIORS, **priors}.items()}
        self._matches = sorted(LOOKUP_PRIOR)
        self._lookup = [Estimate(LOOKUP_PRIOR[match]) for match in self._matches]

    def sampled(self, source: Source) -> Estimate:
        """The estimate of each token of a source that samples ahead."""
        return self._sampled[source]

    def of(self, offer: Offer) -> Iterator[Estimate]:
        """The estimate of each token of an offer, given that those before it were kept."""
        if (sampled := self._sampled.get(offer.source)) is not None:
            yield from (sampled for _ in range(offer.length))
            return
        for length in range(offer.match, offer.match + offer.length):
            yield self._lookup[max(0, bisect_right(self._matches, length) - 1)]

    def learn(self, offer: Offer, accepted: int) -> None:
        """Take in a verified draft, `offer.length` long: each kept token, and the one at which it stopped."""
        for position, estimate in enumerate(self.of(offer)):
            estimate.learn(position < accepted)
            if position == accepted:
                break
