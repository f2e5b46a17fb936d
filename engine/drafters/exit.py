"""Early exit: the target's own first layers sample ahead, and the whole target verifies.

They share the target's cache, so nothing is read for them and the verifying pass takes up what they have run.
(Elhoushi et al. 2024; Zhang et al. 2023 for drafting with a part of the target's own layers.)
"""

from collections.abc import Callable, Sequence

from engine.context import Context
from engine.drafters import Offer
from engine.drafters.ahead import AheadDrafter
from engine.model import FloatArray
from engine.sampler import Sampler
from engine.stats import Source
from engine.trace import Chances
from engine.verify import Rule


class ExitDrafter(AheadDrafter):
    """Drafts with the context's target, left early; the target lacks the last id alone when it proposes."""

    source: Source = "exit"

    def __init__(
        self,
        context: Context,
        rule: Rule,
        sampler: Sampler,
        stopped: Callable[[], bool],
        chances: Chances | None = None,
    ) -> None:
        if context.exit_layers is None:
            raise ValueError("the context's target is not left early")
        super().__init__(context, rule, sampler, stopped, chances)

    def offer(self, ids: Sequence[int], limit: int, ahead: Sequence[int] = ()) -> Offer | None:
        """As many tokens as one verifying pass can hold and the target can take back."""
        model = self._context.target.model
        most = min(model.n_ctx - len(ids), model.n_batch - 1)
        if model.reach is not None:
            most = min(most, model.reach)
        length = min(limit, most - len(ahead))
        return Offer(self.source, length) if length > 0 else None

    def row(self, ahead: Sequence[int]) -> FloatArray:
        """A pass of the first layers over the token that they lack."""
        row: FloatArray = self._context.leave(ahead)[0]
        return row
