"""How many tokens to draft, from whom, and why: off, a fixed length, or whatever is expected to pay.

`plan_auto` is the plain first form: expected tokens per millisecond from measured costs and learned acceptance, pure
functions over both; the state is a few counts.  (Leviathan et al. 2023 for the expected tokens of a draft.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from engine.config import Speculation
from engine.drafters import Offer
from engine.stats import Source

MARGIN = 1.1
"""An expected gain below this is not worth the risk of a wrong estimate."""
LOOKUP_PRIOR = {2: 0.44, 3: 0.5, 4: 0.6, 5: 0.73, 6: 0.8, 8: 0.8, 12: 0.95, 16: 0.98}
"""Chance that a copied token is right, by length of the match: measured over answers of 15 kinds."""
MODEL_PRIOR = 0.8
"""Chance that a draft model's token is kept, before anything was seen."""
WEIGHT = 12.0
"""How many tests a prior is worth."""
MEMORY = 0.98
"""What a test still weighs after the next one."""

Cost = Callable[[int], float]
"""Milliseconds of one pass over so many tokens."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What passes cost: the target's by width; one draft token's, None where there is no draft model."""

    target: Cost
    draft: float | None = None


FLAT = Costs(lambda width: 1 + 0.01 * width, 0.05)
"""A machine on which a wide pass costs hardly more than a narrow one: for models without costs of their own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One round's decision."""

    source: Source | None
    length: int
    why: str
    match: int = 0


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


@dataclass(slots=True)
class Acceptance:
    """What is known of each source's acceptance per test."""

    lookup: dict[int, Estimate] = field(default_factory=lambda: {m: Estimate(p) for m, p in LOOKUP_PRIOR.items()})
    model: Estimate = field(default_factory=lambda: Estimate(MODEL_PRIOR))

    def at(self, plan_source: Source, match: int, position: int) -> Estimate:
        """The estimate that rules the token at `position` of a draft; a copied stretch grows its own match."""
        if plan_source == "model":
            return self.model
        length = match + position
        return self.lookup[max((m for m in self.lookup if m <= length), default=min(self.lookup))]

    def chances(self, offer: Offer) -> list[float]:
        """The chance of each token of an offer, given those before it."""
        return [self.at(offer.source, offer.match, i).chance for i in range(offer.length)]

    def learn(self, plan: Plan, drafted: int, accepted: int) -> None:
        """Take in one round: each kept token, and the one at which it stopped."""
        if plan.source is None:
            return
        for position in range(min(accepted + 1, drafted)):
            self.at(plan.source, plan.match, position).learn(position < accepted)


def gains(chances: Sequence[float], cost: Cost, draft_ms: float) -> list[float]:
    """Tokens per millisecond relative to not drafting, for drafts of 1, 2, ... tokens."""
    expected = 1.0
    out = []
    for k, kept in enumerate(accumulate(chances, mul), start=1):
        expected += kept
        out.append(expected * cost(1) / (cost(k + 1) + k * draft_ms))
    return out


def needed(length: int, cost: Cost, draft_ms: float) -> float | None:
    """The least acceptance per test at which some draft up to `length` pays; None: not even a perfect one does."""
    for percent in range(1, 101):
        if max(gains([percent / 100] * length, cost, draft_ms), default=0.0) >= 1:
            return percent / 100
    return None


class Planner:
    """Decides each round; `speculation` may be replaced at any time, from any thread."""

    def __init__(self, speculation: Speculation, costs: Costs = FLAT, width_limit: int | None = None) -> None:
        self.speculation = speculation
        self._costs = costs
        self._width_limit = width_limit
        self._acceptance = Acceptance()

    @property
    def length(self) -> int | None:
        """The fixed length in force, after the clamp; None in other modes."""
        asked = self.speculation.length
        return asked if asked is None or self._width_limit is None else min(asked, self._width_limit - 1)

    def limit(self, room: int) -> int:
        """Most tokens that this round may draft, given room for so many."""
        if self.speculation.mode == "off":
            return 0
        widest = room if self._width_limit is None else min(room, self._width_limit - 1)
        return max(0, widest if self.length is None else min(widest, self.length))

    def plan(self, offers: Sequence[Offer]) -> Plan:
        """This round's source and length; every offer is within `limit`."""
        if self.speculation.mode == "off":
            return Plan(None, 0, "speculation is off")
        if self._width_limit == 1:
            return Plan(None, 0, "off: no wider pass equals a single one bit for bit here")
        return self._fixed(offers) if self.speculation.mode == "fixed" else self._auto(offers)

    def observe(self, plan: Plan, drafted: int, accepted: int) -> None:
        """Learn from a finished round."""
        self._acceptance.learn(plan, drafted, accepted)

    def _fixed(self, offers: Sequence[Offer]) -> Plan:
        """The draft model where there is one, else lookup."""
        by_source = {offer.source: offer for offer in offers}
        offer = by_source.get("model") or by_source.get("lookup")
        if offer is None:
            return Plan(None, 0, "fixed: nothing to draft from here")
        return Plan(offer.source, offer.length, f"fixed: {offer.source} up to {self.length}", offer.match)

    def _auto(self, offers: Sequence[Offer]) -> Plan:
        best, best_gain = Plan(None, 0, self._why_not(offers)), MARGIN
        for offer in offers:
            draft_ms = (self._costs.draft or 0.0) if offer.source == "model" else 0.0
            scale = gains(self._acceptance.chances(offer), self._costs.target, draft_ms)
            gain = max(scale, default=0.0)
            if gain > best_gain:
                length = scale.index(gain) + 1
                why = f"{offer.source} up to {length}: {gain - 1:+.0%} expected"
                best, best_gain = Plan(offer.source, length, why, offer.match), gain
        return best

    def _why_not(self, offers: Sequence[Offer]) -> str:
        reasons = []
        lookup = next((o for o in offers if o.source == "lookup"), None)
        reasons.append(f"a match of {lookup.match} does not pay" if lookup else "nothing repeats here")
        if any(o.source == "model" for o in offers):
            reasons.append(self._why_no_model())
        return "off: " + "; ".join(reasons)

    def _why_no_model(self) -> str:
        need = needed(8, self._costs.target, self._costs.draft or 0.0)
        has = self._acceptance.model.chance
        return f"draft model: {f'needs {need:.2f}' if need else 'too slow to pay here'}, has {has:.2f}"
