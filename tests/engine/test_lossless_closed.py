"""Losslessness of one position in closed form, for rows made by every chain of filters.

draft * accept + (1 - sum of draft * accept) * residual == target (Leviathan et al. 2023; Chen et al. 2023).
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.config import Sampling
from engine.model import FloatArray
from engine.sampling import Distribution, distribution, one_hot
from engine.verify import accept_probability, residual
from tests.engine.counting import agreement, overlap
from tests.engine.rounds import Path, every_outcome
from tests.engine.rows import PLAIN, dense, logit_rows, samplings
from tests.engine.simplex import TriangleNoise

EXACT = 1e-12
IDS = st.lists(st.integers(0, 12), max_size=8)


@dataclass(frozen=True)
class Rows:
    """One position's rows, and a size that holds all their ids."""

    target: Distribution
    draft: Distribution
    size: int


@st.composite
def positions(draw: st.DrawFn) -> Rows:
    """Rows of any chains of filters after the same ids, of vocabularies padded to sizes of their own."""
    logits = [draw(logit_rows(1, 12)) for _ in range(2)]
    if draw(st.booleans()):
        logits[1] = logits[0] + np.float32(draw(st.sampled_from([0.0, 1e-7, 0.5])))
    chains = [draw(samplings(penalties=True))] * 2
    if draw(st.booleans()):
        chains[1] = draw(samplings(penalties=True))
    history, answer = draw(IDS), draw(IDS)
    made = [
        _made(row, chain, [*history, *answer], answer, draw(st.integers(0, 3)))
        for row, chain in zip(logits, chains, strict=True)
    ]
    return Rows(made[0], made[1], max(row.size for row in logits))


def _made(row: FloatArray, chain: Sampling, history: list[int], answer: list[int], padding: int) -> Distribution:
    padded = np.append(row, np.full(padding, 1e30, np.float32))
    assume(any(value > -math.inf and chain.logit_bias.get(i, 0.0) > -math.inf for i, value in enumerate(row)))
    return distribution(padded, row.size, chain, history, answer)


@settings(max_examples=200, deadline=None)
@given(positions())
def test_accept_and_residual_give_back_the_target(rows: Rows) -> None:
    target, draft = dense(rows.target, rows.size), dense(rows.draft, rows.size)
    drawn = [token for token in range(rows.size) if draft[token] > 0]
    kept = np.zeros(rows.size)
    for token in drawn:
        kept[token] = draft[token] * accept_probability(token, rows.target, rows.draft)
    for refused in drawn:
        rest = dense(residual(rows.target, rows.draft, refused), rows.size)
        np.testing.assert_allclose(kept + (1 - kept.sum()) * rest, target, rtol=0, atol=EXACT)


@settings(max_examples=60, deadline=None)
@given(positions())
def test_a_certain_draft_of_any_token_gives_back_the_target(rows: Rows) -> None:
    target = dense(rows.target, rows.size)
    for token in range(-1, rows.size + 1):
        kept = accept_probability(token, rows.target, None)
        assert kept == pytest.approx(rows.target.prob(token), abs=EXACT)
        out = (1 - kept) * dense(residual(rows.target, None, token), rows.size)
        if 0 <= token < rows.size:
            out[token] += kept
        np.testing.assert_allclose(out, target, rtol=0, atol=EXACT)


@settings(max_examples=60, deadline=None)
@given(positions())
def test_a_residual_is_a_distribution_over_what_the_target_can_emit(rows: Rows) -> None:
    for proposed in (rows.draft, rows.target, None):
        for token in (-1, *range(rows.size), rows.size, 2**40):
            assert 0 <= accept_probability(token, rows.target, proposed) <= 1
            rest = dense(residual(rows.target, proposed, token), rows.size)
            assert rest.sum() == pytest.approx(1, abs=1e-9)
            assert (rest >= 0).all()
            assert not rest[dense(rows.target, rows.size) == 0].any()


@settings(max_examples=50, deadline=None)
@given(positions(), st.floats(0, 1e-9))
def test_a_residual_without_mass_gives_back_the_target(rows: Rows, more: float) -> None:
    target = rows.target
    above = Distribution(target.probs + more * target.probs, target.ids)
    for draft in (target, above):
        assert residual(target, draft, target.top) is target


def emitted(target: Distribution, draft: Distribution, size: int) -> FloatArray:
    """The distribution of what the rejection rule emits at one position."""
    out = np.zeros(size)
    for token in range(size):
        if proposed := draft.prob(token):
            kept = accept_probability(token, target, draft)
            out[token] += proposed * kept
            out += proposed * (1 - kept) * dense(residual(target, draft, token), size)
    return out


def test_a_row_is_compared_with_a_row_of_another_form_and_another_length() -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(6))
    forms = [
        Distribution(probs, None),
        Distribution(probs, np.arange(6)),
        Distribution(np.append(probs * 0.9, [0.06, 0.04]), None),
        Distribution(probs[[1, 3, 5]] / probs[[1, 3, 5]].sum(), np.array([1, 3, 5])),
        Distribution(np.array([0.25, 0.75]), np.array([5, 7])),
        one_hot(2),
        one_hot(7),
    ]
    for target in forms:
        for draft in forms:
            np.testing.assert_allclose(emitted(target, draft, 8), dense(target, 8), rtol=0, atol=EXACT)


@pytest.mark.parametrize("wide", [False, True])
def test_wide_rows_are_compared_place_by_place(wide: bool) -> None:
    generator = np.random.default_rng(3)
    rows = generator.standard_normal((2, 2000)).astype(np.float32)
    filters = [PLAIN, Sampling(), Sampling(top_k=0, top_p=0.6, min_p=0.0)]
    for ours in filters:
        for theirs in filters:
            target = distribution(rows[0], 2000 if wide else 1500, ours, [], [])
            draft = distribution(rows[1], 1500 if wide else 2000, theirs, [], [])
            gap = np.maximum(dense(target, 2000) - dense(draft, 2000), 0)
            found = dense(residual(target, draft, draft.top), 2000)
            np.testing.assert_allclose(found, gap / gap.sum(), rtol=1e-9, atol=1e-15)


# The coupled rule over three tokens


@st.composite
def thirds(draw: st.DrawFn) -> Distribution:
    """A row of three tokens, of which some may be impossible."""
    weights = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.0, 7.0]), min_size=3, max_size=3)))
    assume(weights.sum() > 0)
    return Distribution(weights / weights.sum(), None)


def assert_law(found: dict[int, float], row: Distribution) -> None:
    for token in range(3):
        assert found.get(token, 0.0) == pytest.approx(row.prob(token), abs=EXACT)


@settings(max_examples=60, deadline=None)
@given(thirds(), st.lists(thirds(), max_size=3))
def test_a_race_draws_from_its_row_whatever_was_raced_before(target: Distribution, drafts: list[Distribution]) -> None:
    def last(path: Path) -> int:
        noise = TriangleNoise(path)
        return [noise.race(row, 5) for row in (*drafts, target)][-1]

    assert_law(every_outcome(last), target)


@settings(max_examples=60, deadline=None)
@given(thirds(), thirds())
def test_a_coupled_draft_is_kept_as_often_as_the_formula_says(target: Distribution, draft: Distribution) -> None:
    def kept(path: Path) -> bool:
        noise = TriangleNoise(path)
        return noise.race(draft, 5) == noise.race(target, 5)

    share = every_outcome(kept).get(True, 0.0)
    assert share == pytest.approx(agreement(target.probs, draft.probs), abs=EXACT)
    assert share <= overlap(target.probs, draft.probs) + EXACT
