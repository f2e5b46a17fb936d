"""Rounds of speculation without a model: rows by prefix, played with any rule, by chance or over all of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from engine.model import FloatArray
from engine.sampling import Distribution
from engine.verify import Outcome, Proposal, Rule, verify

T = TypeVar("T")
Prefix = tuple[int, ...]
Rows = Callable[[Prefix], Distribution]


def always(token: int, draft: Distribution) -> bool:
    """Every token that was drawn is submitted."""
    return True


@dataclass
class Game:
    """A target and a draft, and how many tokens are drafted a round; the answer starts at position `start`."""

    target: Rows
    draft: Rows
    drafted: int
    submits: Callable[[int, Distribution], bool] = always
    start: int = 0
    outcomes: list[Outcome] = field(default_factory=list)

    def play(self, rule: Rule, length: int) -> Prefix:
        """The first `length` tokens of an answer."""
        answer: Prefix = ()
        self.outcomes.clear()
        while len(answer) < length:
            proposals = self._proposals(rule, answer)
            tokens = tuple(proposal.token for proposal in proposals)
            before = answer
            outcome = verify(
                rule, lambda i, b=before, t=tokens: self.target(b + t[:i]), proposals, self.start + len(answer)
            )
            self.outcomes.append(outcome)
            answer = (*answer, *tokens[: outcome.accepted], outcome.token)
        return answer[:length]

    def _proposals(self, rule: Rule, answer: Prefix) -> list[Proposal]:
        proposals: list[Proposal] = []
        while len(proposals) < self.drafted:
            row = self.draft(answer)
            token = rule.propose(row, self.start + len(answer))
            if not self.submits(token, row):
                break
            proposals.append(Proposal(token, row))
            answer = (*answer, token)
        return proposals


def table_rows(table: FloatArray, form: Callable[[FloatArray], Distribution]) -> Rows:
    """Rows that depend on the whole prefix."""

    @cache
    def row(prefix: Prefix) -> Distribution:
        index = 0
        for token in prefix:
            index = (index * 31 + token + 1) % len(table)
        return form(table[index])

    return row


def joint(target: Rows, length: int, size: int) -> dict[Prefix, float]:
    """The target's own distribution of its first `length` tokens."""
    found: dict[Prefix, float] = {(): 1.0}
    for _ in range(length):
        found = {
            (*prefix, token): mass * target(prefix).prob(token)
            for prefix, mass in found.items()
            for token in range(size)
            if target(prefix).prob(token) > 0
        }
    return found


class Path:
    """Randomness that follows one path of decisions and notes where it could have gone elsewhere.

    `weight` is the probability of the choices made after the first `way` decisions.
    """

    def __init__(self, decisions: Sequence[int], way: int = 0) -> None:
        self.decisions = list(decisions)
        self.choices: list[int] = []
        self.weight = 1.0
        self._way = way

    def keep(self, probability: float) -> bool:
        assert 0 <= probability <= 1
        return self.branch([(True, probability), (False, 1 - probability)])

    def draw(self, distribution: Distribution) -> int:
        return self.branch([(distribution.token(i), p) for i, p in enumerate(distribution.probs.tolist()) if p > 0])

    def branch(self, options: Sequence[tuple[T, float]]) -> T:
        """One of the values that have a probability above 0."""
        possible = [option for option in options if option[1] > 0]
        step = len(self.choices)
        if step == len(self.decisions):
            self.decisions.append(0)
        self.choices.append(len(possible))
        value, probability = possible[self.decisions[step]]
        if step >= self._way:
            self.weight *= probability
        return value


def every_path(play: Callable[[Path], T], way: Sequence[int] = ()) -> Iterator[tuple[Path, T]]:
    """Each path of decisions that begins with `way`, and what `play` returned on it."""
    open_paths = [list(way)]
    while open_paths:
        given = open_paths.pop()
        path = Path(given, len(way))
        yield path, play(path)
        for step in range(len(given), len(path.choices)):
            open_paths += [[*path.decisions[:step], other] for other in range(1, path.choices[step])]


def every_outcome(play: Callable[[Path], T]) -> dict[T, float]:
    """The exact distribution of what `play` returns, over all chance."""
    found: dict[T, float] = {}
    for path, result in every_path(play):
        found[result] = found.get(result, 0.0) + path.weight
    return found


def error(found: Mapping[T, float], wanted: Mapping[T, float]) -> float:
    """The largest difference between two distributions."""
    return max(abs(found.get(result, 0.0) - wanted.get(result, 0.0)) for result in {**found, **wanted})
