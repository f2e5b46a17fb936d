"""Heads padded to other sizes than the vocabulary: what is no token is never proposed, emitted, or given any mass."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import chisquare

from engine.backends.toy import ToyLM
from engine.config import Request, Sampling, Speculation
from engine.model import FloatArray
from engine.pairing import Fit, compare
from engine.sampling import distribution
from tests.fakes import engine_of, last, request

REAL = 96
PROMPT = (3, 1, 4)


class Padded(ToyLM):
    """96 tokens under a wider head that likes its padding best."""

    def __init__(self, columns: int, blur: float = 0.0) -> None:
        super().__init__(REAL, seed=7, blur=blur)
        self.padding = columns - REAL
        self.proposed: set[int] = set()

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        self.proposed.update(tokens)
        out = super().forward(tokens, rows)
        out[:, REAL:] = 99
        return out


def two_tokens(seed: int, rule: str) -> Request:
    sampling = Sampling(temperature=1, top_k=6, top_p=1, min_p=0, seed=seed)
    return request(sampling, Speculation(mode="fixed", length=2, rule=rule), max_tokens=2)  # type: ignore[arg-type]


def law(sampling: Sampling) -> dict[tuple[int, ...], float]:
    """The target's own distribution of two tokens."""
    model = ToyLM(REAL, seed=7)

    def next_tokens(*answer: int) -> list[tuple[int, float]]:
        found = distribution(model.row([*PROMPT, *answer]), REAL, sampling, (), ())
        return [(found.token(i), float(p)) for i, p in enumerate(found.probs)]

    return {(a, b): p * q for a, p in next_tokens() for b, q in next_tokens(a)}


@pytest.mark.parametrize(("columns", "rule"), [((100, 112), "rejection"), ((112, 100), "coupled")])
def test_a_pair_with_padded_heads_says_what_the_target_says(columns: tuple[int, int], rule: str) -> None:
    target, draft = Padded(columns[0]), Padded(columns[1], blur=0.5)
    assert compare(target.vocab, draft.vocab) == Fit()
    engine = engine_of(target, draft)
    counts: Counter[tuple[int, ...]] = Counter()
    drafted = accepted = 0
    for seed in range(1500):
        answer = last(engine.answer_ids(PROMPT, two_tokens(seed, rule)))
        counts[tuple(answer.ids)] += 1
        drafted, accepted = drafted + answer.speculation.drafted, accepted + answer.speculation.accepted
    assert 0 < accepted < drafted
    assert max(target.proposed | draft.proposed) < REAL
    wanted = law(two_tokens(0, rule).sampling)
    assert counts.keys() <= wanted.keys()
    cells = sorted(wanted, key=lambda cell: -wanted[cell])
    often = [cell for cell in cells if 1500 * wanted[cell] >= 8]
    seen = [*(counts[cell] for cell in often), 1500 - sum(counts[cell] for cell in often)]
    expected = 1500 * np.array([*(wanted[cell] for cell in often), 1 - sum(wanted[cell] for cell in often)])
    assert chisquare(seen, expected).pvalue > 0.001
