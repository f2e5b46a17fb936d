"""A draft model: a second, smaller Model that samples ahead by the same settings as the target.

Whether a token is submitted depends on the tokens before it alone, never on its own draw: so the rule stays exact.
"""

from collections.abc import Callable, Sequence

from engine.context import Cache, Context
from engine.drafters import Offer
from engine.errors import Interrupted
from engine.sampler import Sampler
from engine.stats import Source
from engine.verify import Proposal, Rule


class ModelDrafter:
    """Drafts with the context's draft model; its own tokens stay in its cache until the round is committed."""

    source: Source = "model"

    def __init__(self, context: Context, rule: Rule, sampler: Sampler, stopped: Callable[[], bool]) -> None:
        if context.draft is None:
            raise ValueError("the context has no draft model")
        self._context, self._cache = context, context.draft
        self._rule, self._sampler, self._stopped = rule, sampler, stopped

    @property
    def cache(self) -> Cache:
        """The draft's cache, to be read up to the last committed id before `propose`."""
        return self._cache

    def offer(self, ids: Sequence[int], limit: int) -> Offer | None:
        """As many tokens as there is room for in the draft's own context."""
        length = min(limit, self._cache.model.n_ctx - len(ids))
        return Offer(self.source, length) if length > 0 else None

    def propose(self, length: int) -> list[Proposal]:
        """Samples `length` tokens one by one with their distributions; Interrupted once the answer is stopped."""
        proposals: list[Proposal] = []
        ahead: list[int] = []
        for _ in range(length):
            if self._stopped():
                raise Interrupted("stopped between two passes of the draft")
            row = self._context.advance(self._cache, ahead, 1)[0]
            draft = self._sampler(row, self._context.ids, ahead)
            token = self._rule.propose(draft, len(self._context.ids) + len(ahead))
            proposals.append(Proposal(token, draft))
            ahead.append(token)
            if token in self._sampler.eog:
                break
        return proposals
