"""Sampling ahead: tokens drawn one by one from rows of some model, by the same settings as the target's.

Whether a token is submitted is decided before it is drawn: by the tokens before it and by rows up to its own, never by
its own draw, later ones or the verifier's chance.  So the rule stays exact (DESIGN 3.3).
"""

from collections.abc import Callable, Sequence

from engine.context import Context
from engine.errors import Interrupted, ModelError
from engine.model import FloatArray
from engine.narrow import Candidates
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.verify import Proposal, Rule

Submits = Callable[[Sequence[Distribution]], bool]
"""Asked with this round's draft rows up to the one that the next token would be drawn from: is it drawn and sent?"""


def always(rows: Sequence[Distribution]) -> bool:  # noqa: ARG001
    """Every token is sent."""
    return True


class AheadDrafter:
    """What drafters that sample have in common; subclasses say what they offer and where a row comes from."""

    def __init__(
        self, context: Context, rule: Rule, sampler: Sampler, stopped: Callable[[], bool], submits: Submits = always
    ) -> None:
        self._context = context
        self._rule, self._sampler, self._stopped, self._submits = rule, sampler, stopped, submits
        self._failure: ModelError | None = None

    def row(self, ahead: Sequence[int]) -> FloatArray | Candidates:
        """Logits after the ids and the tokens drafted behind them, float32 [columns] or what is enough: one pass."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises the ModelError of a pass that failed when something was drafted before it."""
        if self._failure is not None:
            raise self._failure

    def propose(self, length: int) -> list[Proposal]:
        """Samples up to `length` tokens one by one with their rows; Interrupted once the answer is stopped.

        A pass that fails raises ModelError; where tokens were drawn before it, they are proposed first, since to drop
        them would let what was drawn decide, and the next call raises.
        """
        self.check()
        proposals: list[Proposal] = []
        rows: list[Distribution] = []
        ahead: list[int] = []
        for _ in range(length):
            if self._stopped():
                raise Interrupted("stopped between two passes of the draft")
            try:
                rows.append(self._sampler(self.row(ahead), self._context.ids, ahead))
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
