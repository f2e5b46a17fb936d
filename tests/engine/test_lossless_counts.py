"""Losslessness by counting (row A02): the generator and the noise that stand behind the rules.

200,000 answers of each setting take minutes: tests/bench/monte_carlo.py counts them and prints the table.
"""

import pytest

from engine.verify import Generator
from tests.engine.counting import LEVEL, RULES, SETTINGS, RuleName, count, counted, overlap
from tests.engine.mutants import MUTANTS

ANSWERS = 5000
TESTS = 2 * len(SETTINGS) * len(RULES)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_answers_and_what_is_kept_are_as_theory_says(setting: str, rule: RuleName) -> None:
    found = counted(setting, rule, ANSWERS)
    assert min(found.p_first, found.p_both) > LEVEL / TESTS
    assert abs(found.deviation) <= 4


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_rules_fail_the_count(name: str) -> None:
    wrong, submits = MUTANTS[name]
    rule, game = wrong(Generator(20, 0)), SETTINGS["plain"].play()
    game.drafted, game.submits = 1, submits
    found = count(game, lambda _: rule, overlap, ANSWERS)
    assert min(found.p_first, found.p_both) < LEVEL / TESTS
