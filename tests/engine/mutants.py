"""Wrong rules, each a mistake that someone has shipped: a test of losslessness that passes one of them is no test."""

from collections.abc import Callable

import numpy as np

from engine.sampling import Distribution
from engine.verify import Randomness, Rejection, Rule, accept_probability, residual
from tests.engine.rounds import always

Submits = Callable[[int, Distribution], bool]


class Wrong(Rejection):
    """The rejection rule with its randomness at hand."""

    def __init__(self, randomness: Randomness) -> None:
        super().__init__(randomness)
        self.randomness = randomness


class KeepsAll(Wrong):
    """The uniform draw is stuck at 0, so nothing that is possible is refused."""

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        if accept_probability(token, target, draft) > 0:
            return token
        return super().judge(token, target, draft, position)


class IgnoresDraft(Wrong):
    """The draft's probability is left out of the ratio."""

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        if self.randomness.keep(target.prob(token)):
            return token
        return self.randomness.draw(residual(target, draft, token))


class DrawsFromTarget(Wrong):
    """After a refusal it draws from the target, not from the residual."""

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        if self.randomness.keep(accept_probability(token, target, draft)):
            return token
        return self.randomness.draw(target)


class DrawsBonusFromDraft(Wrong):
    """The token after the last kept one comes from the draft's row."""

    draft: Distribution | None = None

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        self.draft = draft
        return super().judge(token, target, draft, position)

    def choose(self, target: Distribution, position: int) -> int:
        return self.randomness.draw(self.draft or target)


class ComparesArgmax(Wrong):
    """Keeps what the target ranks first, whatever the probabilities."""

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        return token if token == target.top else self.randomness.draw(residual(target, draft, token))


class FiltersDraftOtherwise(Wrong):
    """Draws from the two most likely tokens of the draft, and hands the whole row to the verifier."""

    def propose(self, draft: Distribution, position: int) -> int:
        kept = np.sort(np.argsort(-draft.probs, kind="stable")[:2])
        probs = draft.probs[kept] / draft.probs[kept].sum()
        return self.randomness.draw(Distribution(probs, kept if draft.ids is None else draft.ids[kept]))


def confident(token: int, draft: Distribution) -> bool:
    """Drops a drawn token for its own low probability: what the target then says is no longer its own."""
    return draft.prob(token) >= 0.3


MUTANTS: dict[str, tuple[Callable[[Randomness], Rule], Submits]] = {
    "the uniform draw is 0": (KeepsAll, always),
    "the draft's probability is 1": (IgnoresDraft, always),
    "the residual is the target": (DrawsFromTarget, always),
    "the bonus comes from the draft": (DrawsBonusFromDraft, always),
    "the argmax decides": (ComparesArgmax, always),
    "the draft is filtered otherwise": (FiltersDraftOtherwise, always),
    "dropped by its own probability": (Rejection, confident),
}
