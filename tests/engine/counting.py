"""Rounds by chance, counted: are the answers those of the target, and is as much kept as theory says?

What the walk over all chance cannot see is looked at here: engine.verify.Generator and engine.noise.Noise.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy import stats

from engine.config import Sampling
from engine.model import FloatArray
from engine.noise import Noise
from engine.sampling import Distribution, distribution
from engine.verify import Coupled, Generator, Proposal, Rejection, Rule
from tests.engine.rounds import Game, Prefix, Rows, joint
from tests.engine.rows import dense, plain

V = 8
DRAFTED = 2
LEVEL = 0.001
"""The chance that a right engine fails any of the chi-square tests of a whole table."""
RuleName = Literal["rejection", "coupled"]
Keeps = Callable[[FloatArray, FloatArray], float]
RULES: tuple[RuleName, ...] = ("rejection", "coupled")


class Copied(Game):
    """Drafts as a lookup makes them: by the place, without probabilities."""

    def _proposals(self, rule: Rule, answer: Prefix) -> list[Proposal]:
        return [Proposal(copied(len(answer) + ahead), None) for ahead in range(self.drafted)]


def copied(place: int) -> int:
    """What a Copied game drafts there."""
    return (3 * place + 1) % V


@dataclass(frozen=True)
class Setting:
    """How the rows of a target and of its draft are made."""

    target: Sampling
    draft: Sampling | None = None
    """None: as the target."""
    widths: tuple[int, int] = (V, V)
    """Columns of the rows."""
    sizes: tuple[int, int] = (V, V)
    """How many of them are real ids; the rest is padding that both models like best."""
    game: type[Game] = Game

    def play(self) -> Game:
        """A game of this setting."""
        sides = zip(self.widths, self.sizes, (self.target, self.draft or self.target), strict=True)
        return self.game(*(_rows(which, *side) for which, side in enumerate(sides)), DRAFTED)


def _rows(which: int, width: int, size: int, sampling: Sampling) -> Rows:
    """Rows of one of two models that are somewhat alike."""
    alike = 1.5 * np.random.default_rng(11).standard_normal((23, width))
    table = (alike + 0.8 * np.random.default_rng(which).standard_normal((23, width))).astype(np.float32)
    table[:, size:] = 30

    @cache
    def row(prefix: Prefix) -> Distribution:
        index = 0
        for token in prefix:
            index = (index * 31 + token + 1) % len(table)
        return distribution(table[index], size, sampling, prefix, prefix)

    return row


SETTINGS: dict[str, Setting] = {
    "plain": Setting(plain()),
    "default": Setting(Sampling()),
    "temperature 1.6": Setting(plain(temperature=1.6)),
    "top-k 3": Setting(plain(top_k=3)),
    "top-p 0.8": Setting(plain(top_p=0.8)),
    "min-p 0.2": Setting(plain(min_p=0.2)),
    "repeat 1.5": Setting(plain(repeat_penalty=1.5)),
    "frequency, presence": Setting(plain(frequency_penalty=1.0, presence_penalty=0.7)),
    "bias": Setting(plain(logit_bias={0: -math.inf, 3: 1.5})),
    "draft by other filters": Setting(plain(), Sampling(temperature=0.8, top_k=4)),
    "padded, a smaller target": Setting(plain(top_p=0.95), widths=(12, 24), sizes=(6, V)),
    "lookup": Setting(plain(), game=Copied),
}


@dataclass(frozen=True)
class Count:
    """What came of many answers of two tokens."""

    p_first: float
    """Chi-square of the first token against the target; 0 where something impossible was emitted."""
    p_both: float
    """The same of both tokens together."""
    tests: int
    """Drafts that were tested, up to the first refusal of each round."""
    kept: int
    expected: float
    """Drafts that theory keeps, given what was tested."""
    sigma: float
    """The standard deviation of `kept` around it."""

    @property
    def deviation(self) -> float:
        """Of what was kept, in sigmas."""
        return (self.kept - self.expected) / self.sigma


def counted(setting: str, name: RuleName, answers: int) -> Count:
    """So many answers of two tokens in one of the settings under a right rule."""
    game = SETTINGS[setting].play()
    seed = 1000 * list(SETTINGS).index(setting)
    return count(game, _rules(name, game, seed), overlap if name == "rejection" else agreement, answers)


def count(game: Game, rule_of: Callable[[int], Rule], keeps: Keeps, answers: int) -> Count:
    """So many answers of two tokens; `keeps` says how often a rule should keep a draft, given both rows."""
    share = _shares(game, keeps)
    both: Counter[Prefix] = Counter()
    kept, tested = 0, Counter[float]()
    for index in range(answers):
        answer = game.play(rule_of(index), 2)
        both[answer] += 1
        start = 0
        for outcome in game.outcomes:
            kept += outcome.accepted
            for place in range(start, start + min(outcome.accepted + 1, DRAFTED)):
                tested[share(answer[:place])] += 1
            start += outcome.accepted + 1
    first: Counter[Prefix] = Counter()
    for answer, times in both.items():
        first[answer[:1]] += times
    return Count(
        p_value(first, joint(game.target, 1, V)),
        p_value(both, joint(game.target, 2, V)),
        tested.total(),
        kept,
        sum(share * times for share, times in tested.items()),
        math.sqrt(sum(share * (1 - share) * times for share, times in tested.items())),
    )


def _rules(name: RuleName, game: Game, seed: int) -> Callable[[int], Rule]:
    """The rule of each answer: one generator for all, or another place or another seed of noise."""
    if name == "rejection":
        rejection = Rejection(Generator(seed, 0))
        return lambda _: rejection
    noises = [Coupled(Noise(seed + i)) for i in range(50)]

    def coupled(index: int) -> Rule:
        game.start = 2 + DRAFTED * 2 * (index // len(noises))
        return noises[index % len(noises)]

    return coupled


def _shares(game: Game, keeps: Keeps) -> Callable[[Prefix], float]:
    """How often a draft after a prefix should be kept."""

    @cache
    def share(prefix: Prefix) -> float:
        target = game.target(prefix)
        if isinstance(game, Copied):
            return target.prob(copied(len(prefix)))
        return keeps(dense(target, V), dense(game.draft(prefix), V))

    return share


def overlap(target: FloatArray, draft: FloatArray) -> float:
    """How often the rejection rule keeps a draft."""
    return float(np.minimum(target, draft).sum())


def agreement(target: FloatArray, draft: FloatArray) -> float:
    """How often two races over the same noise have the same winner (DESIGN 3.3)."""
    shared = [x for x in range(target.size) if target[x] > 0 and draft[x] > 0]
    return float(sum(1 / np.maximum(target / target[x], draft / draft[x]).sum() for x in shared))


def p_value(counts: Counter[Prefix], wanted: Mapping[Prefix, float]) -> float:
    """Chi-square against the expected shares; 0 where something impossible was emitted; rare answers are pooled."""
    total = counts.total()
    if any(answer not in wanted for answer in counts):
        return 0.0
    common = [answer for answer, mass in wanted.items() if mass * total >= 5]
    observed = [counts[answer] for answer in common]
    expected = [wanted[answer] * total for answer in common]
    if (rest := total - sum(expected)) > 1e-6 * total:
        observed.append(total - sum(observed))
        expected.append(rest)
    return float(stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue)
