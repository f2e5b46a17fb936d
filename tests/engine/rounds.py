"""Rounds of speculation without a model: rows by prefix, played with any rule, by chance or over all of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.sampling import Distribution
from engine.verify import Outcome, Proposal, Randomness, Rule, verify

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


class Path:
    """Randomness that follows one path of decisions and notes where it could have gone elsewhere."""

    def __init__(self, decisions: Sequence[int]) -> None:
        self.decisions = list(decisions)
        self.choices: list[int] = []
        self.weight = 1.0

    def keep(self, probability: float) -> bool:
        assert 0 <= probability <= 1
        return self._branch([(1, probability), (0, 1 - probability)]) == 1

    def draw(self, distribution: Distribution) -> int:
        return self._branch([(distribution.token(i), float(p)) for i, p in enumerate(distribution.probs)])

    def _branch(self, options: Sequence[tuple[int, float]]) -> int:
        possible = [option for option in options if option[1] > 0]
        step = len(self.choices)
        if step == len(self.decisions):
            self.decisions.append(0)
        self.choices.append(len(possible))
        value, probability = possible[self.decisions[step]]
        self.weight *= probability
        return value


def every_outcome(play: Callable[[Randomness], Prefix]) -> dict[Prefix, float]:
    """The exact distribution of what `play` returns, over all chance."""
    found: dict[Prefix, float] = {}
    open_paths: list[list[int]] = [[]]
    while open_paths:
        given = open_paths.pop()
        path = Path(given)
        result = play(path)
        found[result] = found.get(result, 0.0) + path.weight
        for step in range(len(given), len(path.choices)):
            open_paths += [[*path.decisions[:step], other] for other in range(1, path.choices[step])]
    return found
