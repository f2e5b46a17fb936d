"""A rule that is wrong on purpose: what a test of losslessness must find, or it is no test."""

from engine.config import Rule as RuleName
from engine.engine import lossless
from engine.sampling import Distribution
from engine.verify import Generator, Randomness, Rule


class DrawsAnew:
    """Refuses as the true rule does, then draws from the target instead of from what the draft has left of it.

    It looks right, since the target's own row is drawn from: but what was refused gets a second chance.
    """

    def __init__(self, rule: Rule, chance: Randomness) -> None:
        self._rule, self._chance = rule, chance

    def propose(self, draft: Distribution, position: int) -> int:
        """As the true rule."""
        return self._rule.propose(draft, position)

    def choose(self, target: Distribution, position: int) -> int:
        """As the true rule."""
        return self._rule.choose(target, position)

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        """`token`, or any draw of the target."""
        kept = self._rule.judge(token, target, draft, position) == token
        return token if kept else self._chance.draw(target)


def sabotaged(name: RuleName, seed: int, start: int) -> Rule:
    """Either rule, broken; in place of engine.engine.lossless."""
    return DrawsAnew(lossless(name, seed, start), Generator(seed, start + 2**32))
