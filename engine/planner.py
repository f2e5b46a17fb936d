"""How many tokens to draft, from whom, and why: off, a fixed length, or whatever is expected to pay.

A round's drafting is planned piece by piece, since what a draft model says decides whether it goes on.  In mode `auto`
each piece is the one with which the round is expected to bring most tokens per millisecond, if that is more than
without it; to draft nothing is where it begins.  One invariant: what is decided depends on tokens before, on rows up to
the one in question and on rounds that are over, so no draw of this round has a part in it (DESIGN 3.3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, repeat

from engine.config import MAX_DRAFT, Speculation
from engine.costs import Spent
from engine.drafters import Offer
from engine.experience import Experience
from engine.gain import MARGIN, Begun, rates
from engine.pair import OFF
from engine.reasons import NAMES, Reason
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Proposal

FIXED: tuple[Source, ...] = ("model", "exit", "lookup")
"""Whose drafts a fixed length takes: the first that offers any."""
SAMPLING: frozenset[Source] = frozenset({"model", "exit"})
"""Sources that run a model."""
AS_GOOD_AS_ANY = 0.95
"""An acceptance per test above which no draft model is expected to stay."""
LONGEST_SAMPLED = 24
"""Tokens that are thought of as sampled one after another."""
REPAID = 16
"""Rounds in which what a draft model has to read first should have paid."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What one drafter proposed, behind `start` drafted tokens."""

    offer: Offer
    start: int
    proposals: list[Proposal]


class Drafting:
    """One round's drafting; this one drafts nothing."""

    def __init__(self, speculation: Speculation, reason: Reason, room: int = 0) -> None:
        self.speculation = speculation
        """The setting that it is made under."""
        self.reason = reason
        self.room = room
        """Most tokens that may be drafted."""
        self.pieces: list[Piece] = []
        self.first: Sequence[Offer] = ()
        """What was on offer before anything was drafted."""
        self.sampling: Source | None = None
        """Which source ran a model for this round, whether or not anything was drafted by it."""
        self._declined: set[Source] = set()
        self._passes, self._ms = 0, 0.0

    @property
    def drafted(self) -> int:
        """Tokens so far."""
        return sum(len(piece.proposals) for piece in self.pieces)

    @property
    def proposals(self) -> list[Proposal]:
        """All that was drafted."""
        return [proposal for piece in self.pieces for proposal in piece.proposals]

    @property
    def sources(self) -> list[Source]:
        """Whose each drafted token is."""
        return [piece.offer.source for piece in self.pieces for _ in piece.proposals]

    def next(self, offers: Sequence[Offer]) -> Offer | None:  # noqa: ARG002
        """The piece to draft now, one of the offers cut to a length; None: enough."""
        return None

    def submits(self, rows: Sequence[Distribution]) -> bool:  # noqa: ARG002
        """Whether the token that would be drawn from the last of these rows is drawn and sent."""
        return True

    def took(self, offer: Offer, proposals: list[Proposal], ms: float) -> None:
        """What was asked for, what came of it, and in how many milliseconds."""
        if offer.source in SAMPLING:
            self.sampling = offer.source
            self._declined |= SAMPLING - {offer.source}  # one of them a round, so that its time is known
            self._passes += 1
            self._ms += ms
        if proposals:
            self.pieces.append(Piece(offer, self.drafted, proposals))
        else:
            self._declined.add(offer.source)

    def spent(self, target: float) -> Spent:
        """The milliseconds of the round, whose verifying pass took `target`."""
        return Spent(self._ms, target, self._passes)


class FixedDrafting(Drafting):
    """One source, up to the room there is."""

    def next(self, offers: Sequence[Offer]) -> Offer | None:
        """The draft model where there is one, else an early exit, else lookup; it goes on to the end."""
        begun = self.pieces[0].offer.source if self.pieces else None
        mine = [o for o in offers if o.source not in self._declined and begun in (None, o.source)]
        offer = min(mine, key=lambda offer: FIXED.index(offer.source), default=None)
        if not self.pieces:
            text = f"fixed: {NAMES[offer.source]} up to {self.room}" if offer else "fixed: nothing to draft from here"
            self.reason = Reason(text, offer.source if offer else None)
        return offer


class AutoDrafting(Drafting):
    """Whatever is expected to bring most tokens per millisecond."""

    def __init__(self, speculation: Speculation, room: int, learned: Experience, context: int, greedy: bool) -> None:
        super().__init__(speculation, Reason("off: nothing repeats here"), room)
        self._learned, self._greedy = learned, greedy
        self._cost = learned.costs.at(context)
        self._plain = self._cost(1)
        self._likely = self._expected = 1.0
        """The chance that all drafted so far are kept, and the tokens that the round brings."""
        self._drafting = 0.0
        """Milliseconds of drafting so far."""
        self._asked: Source = "model"
        """Which source that samples was asked last."""

    def next(self, offers: Sequence[Offer]) -> Offer | None:
        """The offer, cut to its best length, that raises the round's tokens per millisecond most."""
        if not self.pieces:
            self.first = self.first or offers
        offers = [offer for offer in offers if offer.source not in self._declined]
        least = self._rate * (MARGIN if not self.pieces else 1.0)
        best: tuple[float, Offer] | None = None
        found: dict[Source, tuple[float, int]] = {}
        for offer in offers:
            skipped = not self.pieces and offer.source in SAMPLING and self._hopeless(offer)
            rate, length = found[offer.source] = (0.0, 0) if skipped else self._best(offer)
            if length and rate > (best[0] if best else least):
                best = rate, replace(offer, length=length)
        if best is None and not self.pieces and (tried := self._explored(offers, found)):
            best = self._rate, tried
        if best is None:
            if not self.pieces:
                self.reason = self._why_not(offers, found)
            return None
        rate, offer = best
        if not self.pieces:
            many = offer.length if offer.tokens else found[offer.source][1]
            self.reason = self._why(offer, many, rate * self._plain - 1)
        if offer.tokens:
            return offer
        self._asked = offer.source
        return replace(offer, length=1)

    def submits(self, rows: Sequence[Distribution]) -> bool:
        """Whether the token is worth its place in the verifying pass, now that its row is known."""
        chance = self._learned.acceptance.sampled(self._asked, self._greedy, rows[-1])
        draft = self._learned.costs.draft(self._asked)
        width, without = self.drafted + 1, self._drafting + draft.ms
        with_it = (self._expected + self._likely * chance) / (self._cost(width + 1) + self._drafting + draft.net)
        return with_it > self._expected / (self._cost(width) + without)

    def took(self, offer: Offer, proposals: list[Proposal], ms: float) -> None:
        """Also: what that is expected to bring."""
        super().took(offer, proposals, ms)
        draft = self._learned.costs.draft(offer.source)
        self._drafting += draft.net * len(proposals) if proposals else draft.ms
        for chance in self._kept(offer, proposals):
            self._likely *= chance
            self._expected += self._likely

    @property
    def _rate(self) -> float:
        """Tokens per millisecond that the round is expected to bring so far."""
        return self._expected / (self._cost(self.drafted + 1) + self._drafting)

    def _kept(self, offer: Offer, proposals: Sequence[Proposal]) -> Iterator[float]:
        """The chance of each of these, given that those before it are kept."""
        acceptance = self._learned.acceptance
        if offer.marks:
            return islice(acceptance.copied(offer), len(proposals))
        return (acceptance.sampled(offer.source, self._greedy, proposal.draft) for proposal in proposals)

    def _chances(self, offer: Offer) -> Iterator[float]:
        acceptance = self._learned.acceptance
        if offer.marks:
            return acceptance.copied(offer)
        return repeat(acceptance.sampled(offer.source, self._greedy), min(offer.length, LONGEST_SAMPLED))

    def _best(self, offer: Offer) -> tuple[float, int]:
        """The round's best tokens per millisecond with 1, 2, ... tokens of this offer, and with how many."""
        costs = self._learned.costs
        ms = self._drafting + costs.read(offer.source, offer.lag) / REPAID
        begun = Begun(self.drafted, self._likely, self._expected, ms)
        best = (0.0, 0)
        for k, rate in enumerate(rates(self._chances(offer), self._cost, costs.draft(offer.source), begun), start=1):
            if rate > best[0]:
                best = (rate, k)
        return best

    def _explored(self, offers: Sequence[Offer], found: Mapping[Source, tuple[float, int]]) -> Offer | None:
        """A source that samples, which could pay and is not expected to, where that costs no more than was saved up."""
        for offer in offers:
            if offer.source in SAMPLING and not self._hopeless(offer):
                rate, length = found[offer.source]
                # what the round costs more than the tokens that it brings would take
                loss = self._learned.costs.read(offer.source, offer.lag)
                loss += (1 / self._plain - rate) * self._cost(1 + length) * self._plain if length else self._plain
                if loss <= self._learned.saved_up:
                    self._learned.saved_up -= max(0.0, loss)
                    return replace(offer, length=1)
        return None

    def _hopeless(self, offer: Offer) -> bool:
        """Whether no draft model is as good as this one would have to be."""
        least = self._needed(offer)
        return least is None or least > AS_GOOD_AS_ANY

    def _needed(self, offer: Offer) -> float | None:
        return self._learned.needed(offer.source, self._cost)

    def _why(self, offer: Offer, many: int, gain: float) -> Reason:
        observed = next(iter(self._chances(offer)))
        text = f"{NAMES[offer.source]} up to {many}: {gain:+.0%} expected"
        return Reason(text, offer.source, self._needed(offer), observed, gain)

    def _why_not(self, offers: Sequence[Offer], found: Mapping[Source, tuple[float, int]]) -> Reason:
        """What is said of each source: of the one that samples with the numbers."""
        said, numbers = [], Reason("")
        if asked := self.sampling:  # in vain
            least = self._learned.needed(asked, self._cost)
            numbers = Reason("", asked, least, self._learned.acceptance.sampled(asked, self._greedy))
            said.append(f"{NAMES[asked]}: not sure enough of what comes next")
        elif not offers:
            return Reason("off: nothing repeats here")
        for offer in offers:
            least, has = self._needed(offer), next(iter(self._chances(offer)))
            need = f"needs {least:.2f}" if least else "too slow to pay here"
            rate = found[offer.source][0]
            numbers = Reason("", offer.source, least, has, rate * self._plain - 1 if rate else None)
            what = f"a match of {offer.match}" if offer.marks else NAMES[offer.source]
            said.append(f"{what}: {need}, has {has:.2f}")
        return replace(numbers, text="off: " + "; ".join(said))


class Planner:
    """Decides each round of one answer; `speculation` may be replaced at any time, from any thread."""

    def __init__(
        self,
        speculation: Speculation,
        experience: Experience | None = None,
        width_limit: int | None = None,
        reach: int | None = None,
        greedy: bool = True,
    ) -> None:
        """`width_limit` is the most tokens that a verifying pass may hold, `reach` the target's (see Model.reach)."""
        self.speculation = speculation
        self._learned = experience or Experience()
        self._learned.acceptance.rest()
        self._width_limit = width_limit
        self._longest = min(
            MAX_DRAFT if width_limit is None else width_limit - 1, MAX_DRAFT if reach is None else reach
        )
        self._greedy = greedy

    @property
    def length(self) -> int | None:
        """The fixed length in force, after the clamp; None in other modes."""
        asked = self.speculation.length
        return None if asked is None else min(asked, self._longest)

    def begin(self, room: int, context: int) -> Drafting:
        """This round's drafting, with room for `room` tokens behind `context`."""
        now = self.speculation
        most = min(room, self._longest, MAX_DRAFT if now.length is None else now.length)
        if plain := self._why_plain(now, most):
            return Drafting(now, plain)
        if now.mode == "fixed":
            return FixedDrafting(now, Reason(""), most)
        return AutoDrafting(now, most, self._learned, context, self._greedy)

    def _why_plain(self, now: Speculation, most: int) -> Reason | None:
        """Why nothing is drafted, whatever is on offer; None where something may be."""
        if now.mode == "off":
            return Reason("speculation is off")
        if self._width_limit == 1:
            return Reason("off: no wider pass equals a single one bit for bit here")
        if not self._longest:
            return Reason(OFF)
        if most < 1:
            return Reason("off: no room for a draft", passing=True)
        if now.mode == "auto" and self._learned.wants_plain:
            return Reason("a plain round, to know what one costs", passing=True)
        return None

    def observe(
        self, drafting: Drafting, emitted: Sequence[int], accepted: int, target_ms: float, context: int
    ) -> None:
        """Learn from a finished round behind `context` tokens that brought `emitted`, `accepted` of them drafts."""
        learned, spent = self._learned, drafting.spent(target_ms)
        expected = learned.costs.target(1 + drafting.drafted, context)
        learned.took(drafting.drafted, spent.draft + spent.target, expected)
        learned.costs.observe(drafting.drafted, drafting.sampling, spent, context)
        for offer in drafting.first:
            learned.acceptance.learn_copied(offer, emitted)
        for piece in drafting.pieces:
            self._learn(piece, emitted, accepted)

    def _learn(self, piece: Piece, emitted: Sequence[int], accepted: int) -> None:
        """What stands behind a refused token was not tested: `emitted` ends there."""
        acceptance, source = self._learned.acceptance, piece.offer.source
        if piece.offer.marks:
            if piece.start:  # else it was among the first offers
                acceptance.learn_copied(piece.offer, emitted[piece.start :])
            return
        for at, proposal in enumerate(piece.proposals, piece.start):
            if at <= accepted:
                acceptance.learn_sampled(source, self._greedy, proposal.draft, at < accepted)
