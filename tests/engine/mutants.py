"""Wrong rules, each a mistake that someone has shipped: a test of losslessness that passes one of them is no test.

MUTANTS are rules for rounds without a model.  LOOPS are whole loops with one wrong part.
"""

from collections.abc import Callable, Sequence

import numpy as np

from engine.config import Sampling
from engine.context import Cache, Context
from engine.drafters import Submits as SubmitsRows
from engine.drafters import always as always_submits
from engine.drafters.ahead import AheadDrafter
from engine.drafters.exit import ExitDrafter
from engine.drafters.model import ModelDrafter
from engine.model import FloatArray
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Coupled, Proposal, Randomness, Rejection, Rule, accept_probability, residual
from tests.engine.loops import Loop, Parts
from tests.engine.rounds import Path, always
from tests.engine.rows import PLAIN
from tests.engine.simplex import TriangleNoise

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


# Wrong parts of the loop


class TakesTheRowBefore(Wrong):
    """The residual is that of the position before."""

    before: Distribution | None = None

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        row, self.before = self.before or target, target
        if self.randomness.keep(accept_probability(token, target, draft)):
            return token
        return self.randomness.draw(residual(row, draft, token))

    def choose(self, target: Distribution, position: int) -> int:
        self.before = None
        return super().choose(target, position)


class KeepsWhatIsPossible(Coupled):
    """Keeps the draft's winner wherever the target could emit it."""

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        return token if target.prob(token) > 0 else super().judge(token, target, draft, position)


class KeepsByChance(Coupled):
    """Judges the draft's winner by the rejection rule, and races over the same noise after a refusal."""

    def __init__(self, path: Path) -> None:
        super().__init__(TriangleNoise(path))  # type: ignore[arg-type]
        self.path = path

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        if self.path.keep(accept_probability(token, target, draft)):
            return token
        return super().judge(token, residual(target, draft, token), draft, position)


class StandingNoise(TriangleNoise):
    """The noise does not depend on the position."""

    def race(self, distribution: Distribution, position: int) -> int:
        return super().race(distribution, 0)


class NoiseOfTheLastDraft(Coupled):
    """The bonus token races over the noise of the draft before it."""

    def choose(self, target: Distribution, position: int) -> int:
        return super().choose(target, position - 1)

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        return super().choose(target, position)


class DropsUnlikely(AheadDrafter):
    """Does not submit a token that it drew, and nothing after it, because the token was unlikely."""

    def propose(
        self, length: int, ahead: Sequence[Proposal] = (), submits: SubmitsRows = always_submits
    ) -> list[Proposal]:
        proposals = super().propose(length, ahead, submits)
        likely = [p.draft is None or p.draft.prob(p.token) >= 0.4 for p in proposals]
        return proposals[: likely.index(False)] if False in likely else proposals


class StopsByTheDraw(AheadDrafter):
    """Does not submit the last token, because of what was drawn there."""

    def propose(
        self, length: int, ahead: Sequence[Proposal] = (), submits: SubmitsRows = always_submits
    ) -> list[Proposal]:
        proposals = super().propose(length, ahead, submits)
        return proposals[:-1] if proposals and proposals[-1].token == 0 else proposals


class ModelDropsUnlikely(DropsUnlikely, ModelDrafter):
    """A draft model that does so."""


class ModelStopsByTheDraw(StopsByTheDraw, ModelDrafter):
    """A draft model that does so."""


class ExitDropsUnlikely(DropsUnlikely, ExitDrafter):
    """An early exit that does so."""


class ExitStopsByTheDraw(StopsByTheDraw, ExitDrafter):
    """An early exit that does so."""


class CountsRefused(Sampler):
    """Penalties go on counting drafts that were refused."""

    def __init__(self, sampling: Sampling, size: int, eog: frozenset[int], start: int) -> None:
        super().__init__(sampling, size, eog, start)
        self.seen: list[int] = []

    def __call__(self, row: FloatArray, ids: Sequence[int], ahead: Sequence[int]) -> Distribution:
        out = super().__call__(row, ids, [*self.seen, *ahead])
        self.seen.extend(ahead[-1:])
        return out


class ForgetsDrafts(Sampler):
    """Penalties do not see the drafts before a position."""

    def __call__(self, row: FloatArray, ids: Sequence[int], ahead: Sequence[int]) -> Distribution:
        return super().__call__(row, ids, ())


class LateRows(Context):
    """Each draft is judged by the row of the one before it."""

    def advance(self, cache: Cache, ahead: Sequence[int], rows: int) -> FloatArray:
        out = super().advance(cache, ahead, rows)
        return np.roll(out, 1, axis=0) if cache is self.target else out


class FeedsRefused(Context):
    """After a refusal the target reads the refused draft where its own token stands."""

    ahead: Sequence[int] = ()
    refused: Sequence[int] = ()

    def advance(self, cache: Cache, ahead: Sequence[int], rows: int) -> FloatArray:
        if cache is not self.target:
            return super().advance(cache, ahead, rows)
        right, self.ahead = self.ids, ahead
        self.ids = [*right[: len(right) - len(self.refused)], *self.refused]
        try:
            return super().advance(cache, ahead, rows)
        finally:
            self.ids = right

    def commit(self, tokens: Sequence[int], fed: int) -> None:
        super().commit(tokens, fed)
        self.refused = self.ahead[fed : fed + 1]


COUNTED = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.5, frequency_penalty=1.5)


def _made_of(parts: Parts, sampling: Sampling = PLAIN, sources: tuple[Source, ...] = ("model",)) -> Loop:
    return Loop(sampling, 2, sources, room=3, parts=parts, remembers=False)


def _rule(rule: Callable[[Path], Rule]) -> Loop:
    return _made_of(Parts(rule=rule))


def _copied(rule: Callable[[Path], Rule]) -> Loop:
    return _made_of(Parts(rule=rule), sources=("lookup",))


LOOPS: dict[str, Loop] = {
    "the uniform draw is 0": _rule(KeepsAll),
    "the uniform draw is 0, with lookup": _copied(KeepsAll),
    "the draft's probability is 1": _rule(IgnoresDraft),
    "the residual is the target": _rule(DrawsFromTarget),
    "the residual is the target, with lookup": _copied(DrawsFromTarget),
    "the residual is that of the row before": _rule(TakesTheRowBefore),
    "the bonus comes from the draft": _rule(DrawsBonusFromDraft),
    "the argmax decides": _rule(ComparesArgmax),
    "the draft is filtered otherwise": _rule(FiltersDraftOtherwise),
    "dropped by its own probability": _made_of(Parts(drafter=ModelDropsUnlikely)),
    "dropped by its own probability, early": _made_of(Parts(exit=ExitDropsUnlikely), sources=("exit",)),
    "stopped by what was drawn": _made_of(Parts(drafter=ModelStopsByTheDraw)),
    "stopped by what was drawn, early": _made_of(Parts(exit=ExitStopsByTheDraw), sources=("exit",)),
    "refused drafts are counted": _made_of(Parts(sampler=CountsRefused), COUNTED),
    "drafts before a position are not counted": _made_of(Parts(sampler=ForgetsDrafts), COUNTED),
    "rows come one late": _made_of(Parts(context=LateRows)),
    "rows come one late, early": _made_of(Parts(context=LateRows), sources=("exit",)),
    "the refused draft is read": _made_of(Parts(context=FeedsRefused)),
    "coupled keeps what is possible": _rule(lambda path: KeepsWhatIsPossible(TriangleNoise(path))),  # type: ignore[arg-type]
    "coupled keeps by chance": _rule(KeepsByChance),
    "coupled noise is the same everywhere": _rule(lambda path: Coupled(StandingNoise(path))),  # type: ignore[arg-type]
    "coupled noise is the last draft's": _rule(lambda path: NoiseOfTheLastDraft(TriangleNoise(path))),  # type: ignore[arg-type]
}
"""What is wrong, and a loop that does it."""
