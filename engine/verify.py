"""Keep or refuse drafted tokens without changing what the target would have said.

One invariant: whatever the draft, each emitted token is a true sample of the target's distribution at its place.
Two rules (DESIGN 3.3): rejection (Leviathan et al. 2023, Chen et al. 2023) and coupled, where draft and target race
over the same noise.  All chance of the rejection rule goes through its Randomness.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.noise import Noise
from engine.sampling import Distribution


class Randomness(Protocol):
    """Where the rejection rule takes its chance from."""

    def keep(self, probability: float) -> bool:
        """True with this probability."""
        ...

    def draw(self, distribution: Distribution) -> int:
        """A token of the distribution."""
        ...


class Generator:
    """Randomness from a seed; streams of one seed are independent of each other and of all other code."""

    def __init__(self, seed: int, stream: int) -> None:
        self._uniform = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream]))).random

    def keep(self, probability: float) -> bool:
        """True with this probability."""
        return self._uniform() < probability

    def draw(self, distribution: Distribution) -> int:
        """A token of the distribution."""
        return distribution.draw(self._uniform())


class Rule(Protocol):
    """How tokens are proposed, judged and chosen; `position` is the absolute index in the conversation."""

    def propose(self, draft: Distribution, position: int) -> int:
        """The token that the draft proposes."""
        ...

    def choose(self, target: Distribution, position: int) -> int:
        """The target's own token, where nothing was proposed."""
        ...

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        """The token to emit, which is `token` iff that is kept; a draft of None proposed it with certainty."""
        ...


class Rejection:
    """Keep with min(1, target / draft), else draw from what the target has beyond the draft."""

    def __init__(self, randomness: Randomness) -> None:
        self._randomness = randomness

    def propose(self, draft: Distribution, position: int) -> int:  # noqa: ARG002
        """A draw from the draft."""
        return self._randomness.draw(draft)

    def choose(self, target: Distribution, position: int) -> int:  # noqa: ARG002
        """A draw from the target."""
        return self._randomness.draw(target)

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:  # noqa: ARG002
        """`token`, or a draw from the residual."""
        if self._randomness.keep(accept_probability(token, target, draft)):
            return token
        return self._randomness.draw(residual(target, draft, token))


class Coupled:
    """Draft and target race over the same noise; a draft is kept iff it is what the target emits."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def propose(self, draft: Distribution, position: int) -> int:
        """The draft's winner at this position."""
        return self._noise.race(draft, position)

    def choose(self, target: Distribution, position: int) -> int:
        """The target's winner at this position."""
        token = self._noise.race(target, position)
        self._noise.settle(position)
        return token

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:  # noqa: ARG002
        """The target's winner, whatever was proposed."""
        return self.choose(target, position)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A drafted token and the distribution that it was drawn from; None where it was chosen in any other way."""

    token: int
    draft: Distribution | None
    chance: float | None = None
    """What its model gave it before temperature and filters; None where nobody asked, or no model drew it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many proposals were kept, and the target's own token after them."""

    accepted: int
    token: int


def verify(rule: Rule, target: Callable[[int], Distribution], proposals: Sequence[Proposal], position: int) -> Outcome:
    """Judge the proposals in order up to the first refusal.

    target(i) is the target's distribution after i proposals; it is asked for in order, for the rows needed alone.
    `position` is the absolute index of the first proposal in the conversation.
    """
    for index, proposal in enumerate(proposals):
        token = rule.judge(proposal.token, target(index), proposal.draft, position + index)
        if token != proposal.token:
            return Outcome(index, token)
    kept = len(proposals)
    return Outcome(kept, rule.choose(target(kept), position + kept))


def accept_probability(token: int, target: Distribution, draft: Distribution | None) -> float:
    """min(1, target / draft) at the token, in log space; the target's own probability for a one-hot draft.

    A token that its draft could not have drawn counts as a one-hot draft; one that the target cannot emit gets 0.
    """
    target_prob = target.prob(token)
    draft_prob = 1.0 if draft is None else draft.prob(token) or 1.0
    if target_prob <= 0:
        return 0.0
    return math.exp(min(0.0, math.log(target_prob) - math.log(draft_prob)))


def residual(target: Distribution, draft: Distribution | None, token: int) -> Distribution:
    """What to draw from after `token` was refused: max(0, target - draft), normalized; the target where that is 0."""
    if draft is None or draft.prob(token) <= 0:
        rest = _without(target, token)
    else:
        rest = _at(draft, target)
        np.subtract(target.probs, rest, out=rest)
        np.maximum(rest, 0.0, out=rest)
    mass = float(rest.sum())
    if mass <= 0:
        return target
    rest /= mass
    return Distribution(rest, target.ids)


def _without(target: Distribution, token: int) -> npt.NDArray[np.float64]:
    """The target's probabilities with 0 at the token."""
    rest = target.probs.copy()
    if target.ids is not None:
        rest[target.ids == token] = 0.0
    elif 0 <= token < rest.size:
        rest[token] = 0.0
    return rest


def _at(draft: Distribution, target: Distribution) -> npt.NDArray[np.float64]:
    """The draft's probabilities in the target's places, 0 where it has none; float64 [len(target.probs)]."""
    out = np.zeros(target.probs.size)
    ours, theirs = target.ids, draft.ids
    if theirs is None and ours is None:
        shared = min(out.size, draft.probs.size)
        out[:shared] = draft.probs[:shared]
    elif theirs is None and ours is not None:
        inside = ours < draft.probs.size
        out[inside] = draft.probs[ours[inside]]
    elif theirs is not None and ours is None:
        inside = theirs < out.size
        out[theirs[inside]] = draft.probs[inside]
    elif theirs is not None and ours is not None:
        places = np.minimum(np.searchsorted(theirs, ours), theirs.size - 1)
        np.copyto(out, draft.probs[places], where=theirs[places] == ours)
    return out
