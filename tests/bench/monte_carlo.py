"""Both rules by counting: 200,000 answers of two tokens in each of 12 settings.  Run: python tests/bench/monte_carlo.py

For each setting and rule: the p-values of chi-square tests of the first token and of both tokens against the target's
own distribution, and drafts kept per test against theory.  Fails where a p-value falls below the family-wise level of
0.001, or what is kept is more than 4 sigma from what theory keeps.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine.counting import LEVEL, RULES, SETTINGS, counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=200_000)
    answers = parser.parse_args().answers
    least = LEVEL / (2 * len(SETTINGS) * len(RULES))
    print(f"# {answers} answers a row; a p-value below {least:.1e} fails\n")
    print(
        "| setting | rule | p, first token | p, both | kept per test | theory | sigmas |\n|---|---|---|---|---|---|---|"
    )
    failed = 0
    for setting in SETTINGS:
        for rule in RULES:
            found = counted(setting, rule, answers)
            failed += min(found.p_first, found.p_both) < least or abs(found.deviation) > 4
            kept, theory = found.kept / found.tests, found.expected / found.tests
            print(f"| {setting} | {rule} | {found.p_first:.3f} | {found.p_both:.3f} ", end="")
            print(f"| {kept:.4f} | {theory:.4f} | {found.deviation:+.1f} |", flush=True)
    sys.exit(f"{failed} rows fail" if failed else 0)


if __name__ == "__main__":
    main()
