"""A draft model: a second, smaller Model that samples ahead by the same settings as the target.

Whether a token is submitted is decided before it is drawn: by the tokens before it and by rows up to its own, never by
its own draw, later ones or the verifier's chance.  So the rule stays exact (DESIGN 3.3).
"""

from collections.abc import Callable, Sequence

from engine.context import Cache, Context
from engine.drafters import Offer
from engine.errors import Interrupted, ModelError
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Proposal, Rule

Submits = Callable[[Sequence[Distribution]], bool]
"""Asked with this round's draft rows up to the one that the next token would be drawn from: is it drawn and sent?"""


def always(rows: Sequence[Distribution]) -> bool:  # noqa: ARG001
    """Every token is sent."""
    return True


class ModelDrafter:
    """Drafts with the context's draft model; its own tokens stay in its cache until the round is committed."""

    source: Source = "model"

    def __init__(
        self, context: Context, rule: Rule, sampler: Sampler, stopped: Callable[[], bool], submits: Submits = always
    ) -> None:
        if context.draft is None:
            raise ValueError("the context has no draft model")
        self._context, self._cache = context, context.draft
        self._rule, self._sampler, self._stopped, self._submits = rule, sampler, stopped, submits
        self._failure: ModelError | None = None

    @property
    def cache(self) -> Cache:
        """The draft's cache, to be read up to the last committed id before `propose`; ModelError once a pass failed."""
        if self._failure is not None:
            raise self._failure
        return self._cache

    def offer(self, ids: Sequence[int], limit: int) -> Offer | None:
        """As many tokens as its context has room for; one, so that it never reads a draft, if its reach is bounded."""
        model = self._cache.model
        length = min(limit, model.n_ctx - len(ids), limit if model.reach is None else 1)
        return Offer(self.source, length) if length > 0 else None

    def propose(self, length: int) -> list[Proposal]:
        """Samples up to `length` tokens one by one with their rows; Interrupted once the answer is stopped.

        A pass that fails raises ModelError; where tokens were drawn before it, they are proposed first, since to drop
        them would let what was drawn decide, and `cache` raises from then on.
        """
        proposals: list[Proposal] = []
        rows: list[Distribution] = []
        ahead: list[int] = []
        for _ in range(length):
            if self._stopped():
                raise Interrupted("stopped between two passes of the draft")
            try:
                rows.append(self._row(ahead))
            except ModelError as error:
                if not proposals:
                    raise
                self._failure = error
                break
            if not self._submits(rows):
                break
            token = self._rule.propose(rows[-1], len(self._context.ids) + len(ahead))
            proposals.append(Proposal(token, rows[-1]))
            ahead.append(token)
            if token in self._sampler.eog:
                break
        return proposals

    def _row(self, ahead: Sequence[int]) -> Distribution:
        """The draft's distribution after the ids and the tokens drafted behind them."""
        rows = self._context.advance_for(self._sampler.want, self._cache, ahead, 1)
        return self._sampler(rows[0], self._context.ids, ahead)
