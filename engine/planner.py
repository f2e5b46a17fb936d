"""How many tokens to draft, from whom, and why: off, a fixed length, or whatever is expected to pay.

The mode `auto` is the plain first form: expected tokens per millisecond from measured costs and learned acceptance,
pure functions over both; now and then a plain round keeps the cost of not drafting known.  (Leviathan et al. 2023 for
the expected tokens of a draft.)
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.acceptance import PRIORS, Acceptance
from engine.config import MAX_DRAFT, Speculation
from engine.costs import FLAT, Cost, Costs, DraftCost, LiveCosts, Spent
from engine.drafters import Offer
from engine.pair import OFF
from engine.stats import Source

MARGIN = 1.1
"""An expected gain below this is not worth the risk of a wrong estimate."""
FIRST_PLAIN = 3
"""Plain rounds before anything is drafted: they put the cost of one token right."""
PLAIN_EVERY = 32
"""Rounds after which a plain one is made, however well drafting does."""
UNLIKELY = 0.005
"""Drafts are not thought through beyond the token that is kept this rarely."""
FIXED: tuple[Source, ...] = ("model", "exit", "lookup")
"""Whose drafts a fixed length takes: the first that offers any."""
WORDS: Mapping[Source, str] = {"exit": "early exit"}
"""What a reason calls a source, where that is not its name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One round's decision: what part of an offer to draft (None: nothing), and why."""

    offer: Offer | None
    why: str
    speculation: Speculation
    """The setting it was made under."""


def gains(chances: Iterable[float], cost: Cost, draft: DraftCost) -> list[float]:
    """Tokens per millisecond relative to not drafting, for drafts of 1, 2, ... tokens, as far as they are likely."""
    expected = likely = 1.0
    plain = cost(1)
    out = []
    for k, chance in enumerate(chances, start=1):
        likely *= chance
        expected += likely
        out.append(expected * plain / (cost(k + 1) + k * draft.net))
        if likely < UNLIKELY:
            break
    return out


def needed(length: int, cost: Cost, draft: DraftCost) -> float | None:
    """The least acceptance per test at which some draft up to `length` pays; None: not even a perfect one does."""
    if max(gains([1.0] * length, cost, draft), default=0.0) < 1:
        return None
    low, high = 0, 100
    while high - low > 1:
        middle = (low + high) // 2
        pays = max(gains([middle / 100] * length, cost, draft)) >= 1
        low, high = (low, middle) if pays else (middle, high)
    return high / 100


class Experience:
    """What one pair has taught so far, from answer to answer: acceptance, and what passes cost."""

    def __init__(self, costs: Costs = FLAT, priors: Mapping[Source, float] = PRIORS) -> None:
        """`priors`: how often sampled tokens were right where that was measured."""
        self.acceptance = Acceptance(priors)
        self.costs = LiveCosts(costs)
        self.since_plain = -FIRST_PLAIN
        """Rounds since the last plain one; below 0: plain rounds still to be made."""


class Planner:
    """Decides each round of one answer; `speculation` may be replaced at any time, from any thread."""

    def __init__(
        self,
        speculation: Speculation,
        experience: Experience | None = None,
        width_limit: int | None = None,
        reach: int | None = None,
    ) -> None:
        """`width_limit` is the most tokens that a verifying pass may hold, `reach` the target's (see Model.reach)."""
        self.speculation = speculation
        self._learned = experience or Experience()
        self._width_limit = width_limit
        self._longest = min(
            MAX_DRAFT if width_limit is None else width_limit - 1, MAX_DRAFT if reach is None else reach
        )

    @property
    def length(self) -> int | None:
        """The fixed length in force, after the clamp; None in other modes."""
        asked = self.speculation.length
        return None if asked is None else min(asked, self._longest)

    def plan(self, room: int, offers: Callable[[int], Sequence[Offer]]) -> Plan:
        """This round's draft, given room for `room` tokens; `offers(limit)` says what each source could propose."""
        now = self.speculation
        if now.mode == "off":
            return Plan(None, "speculation is off", now)
        if self._width_limit == 1:
            return Plan(None, "off: no wider pass equals a single one bit for bit here", now)
        if not self._longest:
            return Plan(None, OFF, now)
        limit = min(room, self._longest, MAX_DRAFT if now.length is None else now.length)
        if limit < 1:
            return Plan(None, "off: no room for a draft", now)
        return self._fixed(now, limit, offers(limit)) if now.mode == "fixed" else self._auto(now, offers(limit))

    def observe(self, plan: Plan, drafted: int, accepted: int, spent: Spent) -> None:
        """Learn from a finished round."""
        learned = self._learned
        learned.costs.observe(drafted, plan.offer.source if plan.offer else None, spent)
        if not drafted or plan.offer is None:
            learned.since_plain = min(0, learned.since_plain + 1)
            return
        learned.since_plain += 1
        learned.acceptance.learn(Offer(plan.offer.source, drafted, plan.offer.match), accepted)

    def _fixed(self, now: Speculation, limit: int, offers: Sequence[Offer]) -> Plan:
        """The draft model where there is one, else an early exit, else lookup."""
        offer = min(offers, key=lambda offer: FIXED.index(offer.source), default=None)
        why = f"fixed: {_word(offer)} up to {self.length or limit}" if offer else "fixed: nothing to draft from here"
        return Plan(offer, why, now)

    def _auto(self, now: Speculation, offers: Sequence[Offer]) -> Plan:
        if offers and (self._learned.since_plain < 0 or self._learned.since_plain >= PLAIN_EVERY):
            return Plan(None, "a plain round, to know what one costs", now)
        best, gain = None, MARGIN
        for offer in offers:
            scale = self._gains(offer)
            if (most := max(scale, default=0.0)) > gain:
                best, gain = Offer(offer.source, scale.index(most) + 1, offer.match), most
        if best is None:
            return Plan(None, self._why_not(offers), now)
        return Plan(best, f"{_word(best)} up to {best.length}: {gain - 1:+.0%} expected", now)

    def _gains(self, offer: Offer) -> list[float]:
        costs = self._learned.costs
        return gains((e.chance for e in self._learned.acceptance.of(offer)), costs.target, costs.draft(offer.source))

    def _why_not(self, offers: Sequence[Offer]) -> str:
        by_source = {offer.source: offer for offer in offers}
        lookup = by_source.get("lookup")
        reasons = [f"a match of {lookup.match} does not pay" if lookup else "nothing repeats here"]
        named: tuple[tuple[Source, str], ...] = (("model", "draft model"), ("exit", "early exit"))
        for source, name in named:
            if source in by_source:
                need = needed(8, self._learned.costs.target, self._learned.costs.draft(source))
                has = self._learned.acceptance.sampled(source).chance
                reasons.append(f"{name}: {f'needs {need:.2f}' if need else 'too slow to pay here'}, has {has:.2f}")
        return "off: " + "; ".join(reasons)


def _word(offer: Offer) -> str:
    return WORDS.get(offer.source, offer.source)
