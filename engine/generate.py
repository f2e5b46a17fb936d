"""The loop: plan, draft, verify, commit; ids in, rounds out, and no text anywhere.

A generator that may be closed at any yield, or interrupted inside any pass: its `finally` leaves the ids and both
caches consistent.  One pass of the target over the last token and the drafts gives the rows that judge them all.
(Chen et al. 2023; Leviathan et al. 2023.)
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from engine import trace
from engine.config import Speculation
from engine.context import Cache, Context
from engine.drafters import Drafter
from engine.drafters.model import ModelDrafter
from engine.errors import ModelError
from engine.model import FloatArray
from engine.narrow import NarrowRows
from engine.planner import Drafting, Planner
from engine.reasons import Reason
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.stats import Source
from engine.trace import Chances, Seen
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

    reason: Reason
    speculation: Speculation
    """The setting that it was drafted under."""
    sources: list[Source]
    """Whose each drafted token was."""
    accepted: int
    """Drafts kept by the rule, one past a cut among them."""
    tokens: list[int]
    """What the answer gained: kept drafts, then the target's own, up to a cut."""
    leads: list[float]
    """For each of the tokens, and for one that ended the answer: by how much its logit led; inf unless greedy."""
    seconds: float
    end: End | None
    sampled: bool
    """Whether a model ran for drafts, if in vain."""
    seen: list[Seen]
    """The chances of each of the tokens, where they are traced."""

    @property
    def plain(self) -> bool:
        """Whether it was a single pass and nothing else."""
        return not self.sources and not self.sampled

    @property
    def drafted(self) -> int:
        """Tokens that were verified as drafts."""
        return len(self.sources)

    @property
    def source(self) -> Source | None:
        """Whose the first draft was; None where there was none."""
        return self.sources[0] if self.sources else None


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
    took: Callable[[int, float, int], None] = lambda _width, _ms, _context: None
    """Told of each verifying pass: its width, its milliseconds, and how many tokens it stood behind."""
    chances: Chances | None = None
    """What is asked for the chances of the answer's tokens; None: nobody wants to know."""


class Judged(NamedTuple):
    """What a verifying pass has decided."""

    accepted: int
    """Drafts that are kept."""
    tokens: list[int]
    """These, and the target's own token behind them."""
    leads: list[float]
    """By how much each of the tokens led."""
    rows: FloatArray | NarrowRows
    """The target's rows after each draft, until its next call."""


def rounds(a: Answering) -> Generator[CatchingUp | DraftFailed | RoundDone, None, None]:
    """Rounds until an end; the context holds a read prompt (all but its last id)."""
    start = len(a.context.ids)
    last = min(start + a.room, a.context.target.model.n_ctx)
    drafters = list(a.drafters)
    try:
        end: End | None = None
        while end is None:
            started = a.clock()
            held = len(a.context.ids)
            yield from _catch_up(a.context, "target", a.context.target, 1)
            # room is kept for the target's own token, and in its pass
            drafting = a.planner.begin(min(last - held, a.context.target.model.n_batch) - 1, held)
            yield from _draft(a, drafting, drafters)
            yield from _catch_up(a.context, "target", a.context.target, 1)  # where an early exit has lost its cache
            verifying = a.clock()
            judged = _verify(a, drafting.proposals)
            ms = (a.clock() - verifying) * 1000
            seen = trace.seen(a.chances, judged.rows, drafting.proposals, judged.tokens) if a.chances else []
            a.planner.observe(drafting, judged.tokens, judged.accepted, ms, held)
            a.took(1 + drafting.drafted, ms, held)
            tokens, end = _cut(judged.tokens, a.sampler.eog, last - held)
            a.context.commit(tokens, min(judged.accepted, len(tokens)))
            if end == "length" and len(a.context.ids) - start < a.room:
                end = "context_full"
            yield RoundDone(
                drafting.reason,
                drafting.speculation,
                drafting.sources,
                judged.accepted,
                tokens,
                judged.leads[: len(tokens) + (end == "eos")],
                a.clock() - started,
                end,
                drafting.sampling is not None,
                seen[: len(tokens)],
            )
    finally:
        a.context.settle()


def _catch_up(context: Context, model: Literal["target", "draft"], cache: Cache, lag: int) -> Iterator[CatchingUp]:
    """Read in chunks where more than `lag` ids are missing; fewer go along with the next pass."""
    if len(context.ids) - cache.length > lag:
        for done in context.read(cache):
            yield CatchingUp(model, done, len(context.ids) - 1)


def _draft(
    a: Answering, drafting: Drafting, drafters: list[Drafter]
) -> Generator[CatchingUp | DraftFailed, None, None]:
    """Piece after piece, as long as one is wanted; a drafter that fails is dropped, what was drawn before it stays."""
    while True:
        proposals = drafting.proposals
        ahead = [proposal.token for proposal in proposals]
        room = drafting.room - len(ahead)
        if room < 1 or (ahead and ahead[-1] in a.sampler.eog):
            return
        on_offer = {d.source: (d, o) for d in drafters if (o := d.offer(a.context.ids, room, ahead))}
        wanted = drafting.next([offer for _, offer in on_offer.values()])
        if wanted is None:
            return
        drafter = on_offer[wanted.source][0]
        try:
            if isinstance(drafter, ModelDrafter):
                lag = min(FEW, drafter.cache.model.n_batch - len(ahead))  # what others drafted is in the same pass
                yield from _catch_up(a.context, "draft", drafter.cache, lag)
            started = a.clock()
            found = drafter.propose(wanted.length, proposals, drafting.submits)
        except ModelError as error:
            drafters.remove(drafter)
            yield DraftFailed(drafter.source, str(error))
        else:
            drafting.took(wanted, found, (a.clock() - started) * 1000)


def _verify(a: Answering, proposals: Sequence[Proposal]) -> Judged:
    """One pass of the target over the drafts, and what comes of them."""
    ahead = [p.token for p in proposals]
    rows = a.context.advance_for(a.sampler.want, a.context.target, ahead, len(ahead) + 1)
    leads: list[float] = []

    def target(i: int) -> Distribution:
        found = a.sampler(rows[i], a.context.ids, ahead[:i])
        leads.append(found.lead)
        return found

    outcome = verify(a.rule, target, proposals, len(a.context.ids))
    return Judged(outcome.accepted, [*ahead[: outcome.accepted], outcome.token], leads, rows)


def _cut(tokens: list[int], eog: frozenset[int], room: int) -> tuple[list[int], End | None]:
    """Tokens up to the first that ends the answer, or to the room there is."""
    stop = next((i for i, token in enumerate(tokens) if token in eog), None)
    if stop is not None and stop < room:
        return tokens[:stop], "eos"
    return tokens[:room], "length" if len(tokens) >= room else None
