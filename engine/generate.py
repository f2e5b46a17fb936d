"""The loop: plan, draft, verify, commit; ids in, rounds out, and no text anywhere.

A generator that may be closed at any yield, or interrupted inside any pass: its `finally` leaves the ids and both
caches consistent.  One pass of the target over the last token and the drafts gives the rows that judge them all.
(Chen et al. 2023; Leviathan et al. 2023.)
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.context import Cache, Context
from engine.costs import Spent
from engine.drafters import Drafter, Offer
from engine.drafters.model import ModelDrafter
from engine.errors import ModelError
from engine.planner import Plan, Planner
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Proposal, Rule, verify

Clock = Callable[[], float]
End = Literal["eos", "length", "context_full"]
FEW = 8
"""So many ids a draft model may lack and take them in with its next pass."""


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """A model reads what it lacks before it is used: tokens held, and to be held."""

    model: Literal["target", "draft"]
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class DraftFailed:
    """What drafted failed; the answer goes on without it."""

    source: Source
    reason: str


@dataclass(frozen=True, slots=True)
class RoundDone:
    """One committed round."""

    plan: Plan
    drafted: int
    accepted: int
    """Drafts kept by the rule, one past a cut among them."""
    tokens: list[int]
    """What the answer gained: kept drafts, then the target's own, up to a cut."""
    leads: list[float]
    """For each of the tokens, and for one that ended the answer: by how much its logit led; inf unless greedy."""
    seconds: float
    end: End | None

    @property
    def source(self) -> Source | None:
        """Whose drafts were verified; None where there were none."""
        return self.plan.offer.source if self.plan.offer and self.drafted else None


@dataclass(frozen=True, slots=True)
class Answering:
    """All that one answer is made with; `room` is the most tokens it may have."""

    context: Context
    drafters: Sequence[Drafter]
    planner: Planner
    rule: Rule
    sampler: Sampler
    room: int
    clock: Clock = time.perf_counter


def rounds(a: Answering) -> Generator[CatchingUp | DraftFailed | RoundDone, None, None]:
    """Rounds until an end; the context holds a read prompt (all but its last id)."""
    last = min(len(a.context.ids) + a.room, a.context.target.model.n_ctx)
    drafters = list(a.drafters)
    try:
        end: End | None = None
        while end is None:
            started = a.clock()
            plan, drafter = _plan(a, drafters, last)
            yield from _catch_up(a.context, "target", a.context.target, 1)
            try:
                proposals, drafting = yield from _propose(a, plan, drafter)
            except ModelError as error:
                if drafter is None:
                    raise
                drafters = [other for other in drafters if other is not drafter]
                yield DraftFailed(drafter.source, str(error))
                continue
            yield from _catch_up(a.context, "target", a.context.target, 1)  # where an early exit has lost its cache
            verifying = a.clock()
            accepted, tokens, leads = _verify(a, proposals)
            spent = Spent(drafting * 1000, (a.clock() - verifying) * 1000)
            a.planner.observe(plan, len(proposals), accepted, spent)
            tokens, end = _cut(tokens, a.sampler.eog, last - len(a.context.ids))
            leads = leads[: len(tokens) + (end == "eos")]
            a.context.commit(tokens, min(accepted, len(tokens)))
            if end == "length" and len(a.context.ids) - a.sampler.start < a.room:
                end = "context_full"
            yield RoundDone(plan, len(proposals), accepted, tokens, leads, a.clock() - started, end)
    finally:
        a.context.settle()


def _catch_up(context: Context, model: Literal["target", "draft"], cache: Cache, lag: int) -> Iterator[CatchingUp]:
    """Read in chunks where more than `lag` ids are missing; fewer go along with the next pass."""
    if len(context.ids) - cache.length > lag:
        for done in context.read(cache):
            yield CatchingUp(model, done, len(context.ids) - 1)


def _plan(a: Answering, drafters: Sequence[Drafter], last: int) -> tuple[Plan, Drafter | None]:
    """The plan and the drafter that it names; room is kept for the target's own token, and in its pass."""
    room = min(last - len(a.context.ids), a.context.target.model.n_batch) - 1

    def offers(limit: int) -> list[Offer]:
        return [offer for drafter in drafters if (offer := drafter.offer(a.context.ids, limit))]

    plan = a.planner.plan(room, offers)
    return plan, next((d for d in drafters if plan.offer and d.source == plan.offer.source), None)


def _propose(
    a: Answering, plan: Plan, drafter: Drafter | None
) -> Generator[CatchingUp, None, tuple[list[Proposal], float]]:
    """What the drafter proposes, and the seconds that it took without what it had to read first."""
    if drafter is None or plan.offer is None:
        return [], 0.0
    if isinstance(drafter, ModelDrafter):
        yield from _catch_up(a.context, "draft", drafter.cache, FEW)
    started = a.clock()
    return drafter.propose(plan.offer.length), a.clock() - started


def _verify(a: Answering, proposals: Sequence[Proposal]) -> tuple[int, list[int], list[float]]:
    """How many drafts are kept, the kept ones with the target's own token behind them, and the leads of these."""
    ahead = [p.token for p in proposals]
    rows = a.context.advance_for(a.sampler.want, a.context.target, ahead, len(ahead) + 1)
    leads: list[float] = []

    def target(i: int) -> Distribution:
        found = a.sampler(rows[i], a.context.ids, ahead[:i])
        leads.append(found.lead)
        return found

    outcome = verify(a.rule, target, proposals, len(a.context.ids))
    return outcome.accepted, [*ahead[: outcome.accepted], outcome.token], leads


def _cut(tokens: list[int], eog: frozenset[int], room: int) -> tuple[list[int], End | None]:
    """Tokens up to the first that ends the answer, or to the room there is."""
    stop = next((i for i, token in enumerate(tokens) if token in eog), None)
    if stop is not None and stop < room:
        return tokens[:stop], "eos"
    return tokens[:room], "length" if len(tokens) >= room else None
