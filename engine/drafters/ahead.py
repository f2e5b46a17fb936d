"""Sampling ahead: a token drawn from a row of some model, by the same settings as the target's.

Whether a token is submitted is decided before it is drawn: by the tokens before it and by rows up to its own, never by
its own draw, later ones or the verifier's chance.  So the rule stays exact (DESIGN 3.3).
"""

from collections.abc import Callable, Sequence

from engine.context import Context
from engine.drafters import Submits, always
from engine.errors import Interrupted
from engine.model import FloatArray
from engine.narrow import Candidates
from engine.sampler import Sampler
from engine.trace import Chances
from engine.verify import Proposal, Rule


class AheadDrafter:
    """What drafters that sample have in common; subclasses say what they offer and where a row comes from."""

    def __init__(
        self,
        context: Context,
        rule: Rule,
        sampler: Sampler,
        stopped: Callable[[], bool],
        chances: Chances | None = None,
    ) -> None:
        """`chances` is asked for each token that is drawn; None: for none."""
        self._context = context
        self._rule, self._sampler, self._stopped = rule, sampler, stopped
        self._chances = chances

    def row(self, ahead: Sequence[int]) -> FloatArray | Candidates:
        """Logits after the ids and the tokens drafted behind them, float32 [columns] or what is enough: one pass."""
        raise NotImplementedError

    def propose(self, length: int, ahead: Sequence[Proposal] = (), submits: Submits = always) -> list[Proposal]:
        """One token, however many are asked for, or none: the next is planned with this one's row in sight.

        ModelError where the pass fails, which leaves what was drawn before as it is; Interrupted once stopped.
        """
        if length < 1:
            return []
        if self._stopped():
            raise Interrupted("stopped between two passes of the draft")
        tokens = [proposal.token for proposal in ahead]
        logits = self.row(tokens)
        row = self._sampler(logits, self._context.ids, tokens)
        if not submits([*(proposal.draft for proposal in ahead if proposal.draft), row]):
            return []
        token = self._rule.propose(row, len(self._context.ids) + len(tokens))
        return [Proposal(token, row, self._chances(logits, [token])[0] if self._chances else None)]
