"""A draft model: a second, smaller Model that samples ahead of the target."""

from collections.abc import Callable, Sequence

from engine.context import Cache, Context
from engine.drafters import Offer
from engine.drafters.ahead import AheadDrafter
from engine.model import FloatArray
from engine.narrow import Candidates
from engine.sampler import Sampler
from engine.stats import Source
from engine.trace import Chances
from engine.verify import Rule


class ModelDrafter(AheadDrafter):
    """Drafts with the context's draft model; its own tokens stay in its cache until the round is committed."""

    source: Source = "model"

    def __init__(
        self,
        context: Context,
        rule: Rule,
        sampler: Sampler,
        stopped: Callable[[], bool],
        chances: Chances | None = None,
    ) -> None:
        if context.draft is None:
            raise ValueError("the context has no draft model")
        super().__init__(context, rule, sampler, stopped, chances)
        self._cache = context.draft

    @property
    def cache(self) -> Cache:
        """The draft's cache, to be read up to the last committed id before `propose`."""
        return self._cache

    def offer(self, ids: Sequence[int], limit: int, ahead: Sequence[int] = ()) -> Offer | None:
        """As many tokens as its context has room for, where one pass can take what is ahead of it and a token before.

        One, so that it never reads a draft, if its reach is bounded.
        """
        model = self._cache.model
        length = min(limit, model.n_ctx - len(ids) - len(ahead), model.n_batch - len(ahead))
        if model.reach is not None:
            length = min(length, 1 - len(ahead))
        if length < 1:
            return None
        return Offer(self.source, length, lag=max(0, len(ids) - 1 - self._cache.length))

    def row(self, ahead: Sequence[int]) -> FloatArray | Candidates:
        """A pass of the draft model over what it lacks."""
        return self._context.advance_for(self._sampler.want, self._cache, ahead, 1)[0]
