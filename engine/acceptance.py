"""How likely a drafted token is to be kept: learned online, around what is usual, quick to follow a change of text.

A chance is what was seen of the token's class (how long the match is, how many places agree; how sure the draft model
is), around a prior, moved in logits by a mood that all classes of a source share, and for copies by how those of the
very token have fared: a bracket or the second half of a word is copied rightly where a number or a name is not.  One
invariant: what is learned depends on classes, tokens and verdicts alone, so that it can be kept and taken up again.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from types import MappingProxyType

from engine.config import Frozen
from engine.drafters import Mark, Offer
from engine.sampling import Distribution
from engine.stats import Source

ONE_PLACE = {1: 0.34, 2: 0.46, 3: 0.59, 4: 0.64, 5: 0.67, 6: 0.74, 8: 0.85, 12: 0.9, 16: 0.93, 32: 0.98, 64: 0.995}
"""Chance that the first copied token is right where one place matches, by length of the match: text of many kinds."""
AGREED = {1: 0.58, 2: 0.62, 3: 0.67, 4: 0.68, 5: 0.7, 6: 0.76, 8: 0.85, 12: 0.9, 16: 0.93, 32: 0.98, 64: 0.995}
"""The same where several places match and all go on alike."""
CONTESTED = {1: 0.18, 2: 0.21, 3: 0.3, 4: 0.3, 6: 0.36, 8: 0.4, 12: 0.55, 16: 0.65}
"""The same where places that match as far go on otherwise."""
RESUMED = {1: 0.62, 2: 0.8, 3: 0.78, 4: 0.82, 5: 0.77, 6: 0.79, 8: 0.84, 12: 0.9, 16: 0.93, 32: 0.98, 64: 0.995}
"""The same where copying was going on and goes on near there."""
TABLES: Mapping[str, Mapping[int, float]] = MappingProxyType(
    {
        "one": ONE_PLACE,
        "agreed": AGREED,
        "contested": CONTESTED,
        "resumed": RESUMED,
        "library one": {1: 0.75, 6: 0.8, 16: 0.85, 32: 0.9},
        "library agreed": {1: 0.88, 6: 0.92, 12: 0.94},
        "library contested": {1: 0.3, 8: 0.25, 12: 0.12, 16: 0.06},
    }
)
"""By kind of support.  Earlier answers were about something else: how many agree says more than how far they do."""
DEPTHS = (1, 2, 3, 4, 6, 8, 16, 32)
"""Where classes part by how many tokens were copied before this one."""
SETTLED = 8
"""Copied tokens from which on what was right counts as much as what matched; before, half: copies begin by chance."""
PRIORS: Mapping[Source, float] = MappingProxyType({"model": 0.75, "exit": 0.5})
"""Chance that a sampled token is kept, before anything was seen."""
LEADS = (0.25, 0.75, 1.5, 3.0, 5.0)
"""Where classes of greedy draft rows part, by the lead of the first logit over the second."""
FAVOURITES = (0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
"""Where classes of sampled draft rows part, by the largest probability."""
WEIGHTS: Mapping[Source, float] = MappingProxyType({"lookup": 150.0, "model": 30.0, "exit": 30.0})
"""How many tests a prior is worth: what is usual of copies is known from much text."""
MEMORY = 0.999
"""What a test of a class still weighs after the next one."""
RESTED = 0.5
"""What is left of a mood when an answer begins: it may be of another kind."""
MOOD_RATES: Mapping[Source, float] = MappingProxyType({"lookup": 0.15, "model": 0.06, "exit": 0.06})
"""How far a verdict moves the mood, at least."""
DRIFT_RATES: Mapping[Source, float] = MappingProxyType({"lookup": 0.1, "model": 1.0, "exit": 1.0})
"""How much further it moves the mood, the more errors of late agree; copies come in bursts, which are no drift."""
CAUTION = 0.3
"""By how many logits a copy is thought less likely than it is known to be: what looks best looks too good."""
LATE = 0.8
"""What an error still weighs in the drift after the next one."""
FADE = 0.995
"""What is left of a mood after a verdict."""
TOKEN_RATE = 0.5
"""How far a verdict moves what is expected of copies of a token."""
MOST_OF_TOKEN = 2.0
"""The most that copies of a token are expected to be better or worse than others, in logits."""
MOST_TOKENS = 4096
"""Tokens of which that is known, those copied last."""
MOST = 6.0
"""Moods stay within this of 0: nothing is ever certain."""
SUREST = 0.99
"""Most that a prior is taken for, and what it lacks of 1 the least: an early exit may agree nowhere, or everywhere."""


class Learned(Frozen, frozen=True):
    """What was learned of all sources: of each class, by name, the tests kept and all tests; the others in logits."""

    classes: dict[str, tuple[float, float]] = {}
    moods: dict[str, float] = {}
    tokens: dict[int, float] = {}


class Acceptance:
    """The chances of all sources, as verdicts move them."""

    def __init__(self, priors: Mapping[Source, float] = PRIORS, learned: Learned | None = None) -> None:
        """`priors` are what was measured; PRIORS hold for sources that are not in it."""
        self._priors = {source: min(max(chance, 1 - SUREST), SUREST) for source, chance in {**PRIORS, **priors}.items()}
        self._classes = dict(learned.classes) if learned else {}
        self._moods = dict(learned.moods) if learned else {}
        self._drifts: dict[str, float] = {}
        """The mean error of late, by source."""
        self._tokens = dict(learned.tokens) if learned else {}
        """By how much copies of a token are better than others, in logits; the last one to be copied stands last."""

    @property
    def learned(self) -> Learned:
        """All that has been learned."""
        return Learned(classes=dict(self._classes), moods=dict(self._moods), tokens=dict(self._tokens))

    def rest(self) -> None:
        """Another answer begins."""
        self._moods = {source: RESTED * mood for source, mood in self._moods.items()}
        for token in list(islice(self._tokens, max(0, len(self._tokens) - MOST_TOKENS))):
            del self._tokens[token]

    def copied(self, offer: Offer) -> Iterator[float]:
        """The chance of each copied token, given that those before it were kept; on the safe side."""
        for depth, (mark, token) in enumerate(zip(offer.marks, offer.tokens, strict=False)):
            yield self._chance("lookup", *_class_of(mark, depth), self._tokens.get(token, 0.0) - CAUTION)

    def sampled(self, source: Source, greedy: bool, row: Distribution | None = None) -> float:
        """The chance of a token of a source that samples, given those before it; knowing its row, or not yet."""
        return self._chance(source, *self._sampled_class(source, greedy, row))

    def learn_copied(self, offer: Offer, emitted: Iterable[int]) -> None:
        """Compare what was offered with what came, whether it was drafted or not."""
        for depth, (mark, offered, came) in enumerate(zip(offer.marks, offer.tokens, emitted, strict=False)):
            better = self._tokens.pop(offered, 0.0)
            error = self._learn("lookup", *_class_of(mark, depth), offered == came, shift=better)
            self._tokens[offered] = _within(better + TOKEN_RATE * error, MOST_OF_TOKEN)
            if offered != came:
                break

    def learn_sampled(self, source: Source, greedy: bool, row: Distribution | None, kept: bool) -> None:
        """Take in the verdict on a token that was drawn from `row`."""
        for seen in (row, None):  # the class without a row is what is expected of the next
            self._learn(source, *self._sampled_class(source, greedy, seen), kept=kept, mood=seen is None)

    def _sampled_class(self, source: Source, greedy: bool, row: Distribution | None) -> tuple[str, float]:
        """Name and usual chance of a class of rows."""
        usual = self._priors[source]
        if row is None:
            return f"{source} {greedy}", usual
        value, parts = (row.lead, LEADS) if greedy else (float(row.probs.max()), FAVOURITES)
        place = bisect_right(parts, value)
        sure = (place + 0.5) / (len(parts) + 1)
        return f"{source} {greedy} {place}", _logistic(_logit(usual) + 4 * (sure - 0.6))

    def _chance(self, source: Source, name: str, usual: float, shift: float = 0.0) -> float:
        kept, tests = self._classes.get(name, (0.0, 0.0))
        weight = WEIGHTS[source]
        seen = (usual * weight + kept) / (weight + tests)
        return _logistic(_logit(seen) + self._moods.get(source, 0.0) + shift)

    def _learn(
        self, source: Source, name: str, usual: float, kept: bool, mood: bool = True, shift: float = 0.0
    ) -> float:
        """Take in a verdict; by how much it was better than expected."""
        error = kept - self._chance(source, name, usual, shift)
        right, tests = self._classes.get(name, (0.0, 0.0))
        self._classes[name] = MEMORY * right + kept, MEMORY * tests + 1
        if mood:
            drift = self._drifts[source] = LATE * self._drifts.get(source, 0.0) + (1 - LATE) * error
            rate = MOOD_RATES[source] + DRIFT_RATES[source] * abs(drift)
            self._moods[source] = _within(FADE * self._moods.get(source, 0.0) + rate * error)
        return error


def _class_of(mark: Mark, depth: int) -> tuple[str, float]:
    """Name and usual chance of the class of a token copied behind `depth` others."""
    kind = "contested" if mark.other else "resumed" if mark.near else "agreed" if mark.agree > 1 else "one"
    return _class(mark.match - depth, depth, f"library {kind}" if mark.library else kind)


@lru_cache(maxsize=4096)
def _class(match: int, depth: int, kind: str) -> tuple[str, float]:
    """The same, of a draft that began with a match of so many tokens."""
    table = TABLES[kind]
    counts = match + (depth if depth >= SETTLED else depth // 2)
    name = f"lookup {kind} {_step(match, ONE_PLACE)} {bisect_right(DEPTHS, depth)}"
    return name, table[_step(counts, table)]


def _step(match: int, table: Mapping[int, float]) -> int:
    """The length in the table that a match comes up to."""
    lengths = tuple(table)  # ascending
    return lengths[max(0, bisect_right(lengths, match) - 1)]


def _logit(chance: float) -> float:
    return math.log(chance / (1 - chance))


def _logistic(score: float) -> float:
    return 1 / (1 + math.exp(-score))


def _within(value: float, most: float = MOST) -> float:
    return max(-most, min(most, value))
