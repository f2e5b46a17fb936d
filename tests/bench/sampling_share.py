"""What sampling, verification and noise take of a round.  Run: python tests/bench/sampling_share.py

Rows have 151,936 logits that fall off like those of a language model; draft rows resemble target rows.  A round's
cost is that of the coder pair on the reference machine: off is one pass of the target over one token, fixed 3 is
three passes of the draft and one of the target over four tokens.  Before each round a buffer as large as the last
level of the cache is written, as a pass of a model would.  Where other programs run, the time on the processor says
more than the clock.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.config import Sampling
from engine.model import FloatArray
from engine.noise import Noise
from engine.sampling import Distribution, distribution
from engine.verify import Coupled, Generator, Proposal, Rejection, Rule, verify

VOCAB, SIZE = 151_936, 151_665
SHOWN = 40
"""Rows to choose from, so that no round finds its row in the cache."""
OTHER_DATA = 32 * 2**20

FILTERS = {
    "top-k 40, top-p 0.95": (Sampling(temperature=1.0, top_k=40, top_p=0.95, min_p=0.0), 0.03),
    "no filter": (Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0), 0.08),
    "top-p 0.95 alone": (Sampling(temperature=1.0, top_k=0, top_p=0.95, min_p=0.0), None),
    "the same, very flat": (Sampling(temperature=3.0, top_k=0, top_p=0.95, min_p=0.0), None),
    "greedy": (Sampling(temperature=0.0), None),
    "default + repetition": (Sampling(repeat_penalty=1.1), None),
}
RULES: dict[str, Callable[[], Rule]] = {
    "rejection": lambda: Rejection(Generator(1, 0)),
    "coupled": lambda: Coupled(Noise(1)),
}
WIDTHS = "{:8} {:21} {:10} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {}"


@dataclass(frozen=True)
class Mode:
    """How many tokens are drafted, and what the models take for the round, in milliseconds."""

    name: str
    drafted: int
    models_ms: float


MODES = [Mode("off", 0, 28.0), Mode("fixed 3", 3, 3 * 15.0 + 72.0)]


def rows() -> tuple[FloatArray, FloatArray]:
    """Target and draft rows, float32 [SHOWN, VOCAB]: most tokens far below a few likely ones."""
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((SHOWN, VOCAB), dtype=np.float32) * 2.5
    for row in shared:
        row[generator.choice(SIZE, 40, replace=False)] += np.geomspace(18, 6, 40, dtype=np.float32)
    return shared, shared + generator.standard_normal((SHOWN, VOCAB), dtype=np.float32) * np.float32(0.7)


class Table:
    """The rows as a model would give them, by position."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.target_rows, self.draft_rows = rows()

    def target(self, ids: list[int]) -> Distribution:
        return distribution(self.target_rows[len(ids) % SHOWN], SIZE, self.sampling, ids, ids[64:])

    def draft(self, ids: list[int]) -> Distribution:
        return distribution(self.draft_rows[len(ids) % SHOWN], SIZE, self.sampling, ids, ids[64:])


def play(table: Table, rule: Rule, ids: list[int], drafted: int) -> list[int]:
    """One round: propose, verify, commit; the ids with what the round brought."""
    tokens: list[int] = []
    proposals: list[Proposal] = []
    while len(proposals) < drafted:
        row = table.draft(ids + tokens)
        token = rule.propose(row, len(ids) + len(tokens))
        proposals.append(Proposal(token, row))
        tokens.append(token)
    outcome = verify(rule, lambda i: table.target(ids + tokens[:i]), proposals, len(ids))
    return [*ids, *tokens[: outcome.accepted], outcome.token]


def measure(table: Table, rule: Rule, drafted: int, rounds: int) -> tuple[list[float], list[float], float]:
    """Microseconds of each round by the clock and on the processor, and the tokens a round brought."""
    other = np.zeros(OTHER_DATA, np.uint8)
    ids, taken, busy, start = list(range(64)), [], [], 64
    for index in range(rounds + 5):
        other += 1
        before, used = time.perf_counter(), time.thread_time()
        ids = play(table, rule, ids, drafted)
        if index >= 5:
            taken.append((time.perf_counter() - before) * 1e6)
            busy.append((time.thread_time() - used) * 1e6)
        else:
            start = len(ids)
    return taken, busy, (len(ids) - start) / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    head = ("mode", "filters", "rule", "tokens", "us", "p10", "p90", "cpu us", "share", "by cpu", "limit")
    print(WIDTHS.format(*head))
    for filters, (sampling, limit) in FILTERS.items():
        table = Table(sampling)
        for mode in MODES:
            for name, rule in RULES.items():
                figures = line(mode, *measure(table, rule(), mode.drafted, rounds))
                print(WIDTHS.format(mode.name, filters, name, *figures, "" if limit is None else f"{limit:.0%}"))


def line(mode: Mode, taken: list[float], busy: list[float], tokens: float) -> list[str]:
    """The figures of one row of the table."""
    tenths = statistics.quantiles(taken, n=10)
    medians = statistics.median(taken), statistics.median(busy)
    shares = [us / (mode.models_ms * 1e3 + us) for us in medians]
    times = (medians[0], tenths[0], tenths[-1], medians[1])
    return [f"{tokens:.2f}", *(f"{us:.0f}" for us in times), *(f"{share:.2%}" for share in shares)]


if __name__ == "__main__":
    main()
