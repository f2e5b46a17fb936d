"""Chi-square against scipy, the pooling of rare cells, and how often drafts should be kept."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from engine.experiments.goodness import RARE, Fit, fit, fit_share, kept_share, redraw_bias, upper_gamma
from engine.sampling import Distribution
from tests.engine.rows import dense


@pytest.mark.parametrize("a", [0.5, 1.0, 1.5, 3.0, 10.0, 49.5, 50.0, 400.0, 5000.0])
def test_the_upper_gamma_function_is_that_of_scipy(a: float) -> None:
    for x in [0.0, 1e-12, 0.3, 1.0, *(a * np.array([0.2, 0.7, 0.99, 1.0, 1.01, 1.3, 2.0, 4.0])), a + 1, a + 60]:
        assert upper_gamma(a, float(x)) == pytest.approx(special.gammaincc(a, x), rel=1e-9, abs=1e-300)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 2000), st.floats(0, 6000))
def test_p_values_are_those_of_scipy(freedom: int, statistic: float) -> None:
    wanted = stats.chi2.sf(statistic, freedom)
    assert Fit(statistic, freedom).p_value == pytest.approx(wanted, rel=1e-8, abs=1e-280)


def row(*probs: float) -> Distribution:
    return Distribution(np.array(probs), None)


def test_common_cells_are_compared_as_by_scipy() -> None:
    found = fit({0: 40, 1: 35, 2: 25}, row(0.5, 0.3, 0.2))
    wanted = stats.chisquare([40, 35, 25], [50, 30, 20])
    assert (found.statistic, found.freedom) == (pytest.approx(wanted.statistic), 2)
    assert found.p_value == pytest.approx(wanted.pvalue)


def test_rare_cells_are_one_cell() -> None:
    found = fit({0: 50, 1: 33, 2: 3, 3: 8, 4: 6}, row(0.5, 0.3, 0.08, 0.07, 0.05))
    wanted = stats.chisquare([50, 33, 17], [50, 30, 20])
    assert (found.statistic, found.freedom) == (pytest.approx(wanted.statistic), 2)


def test_what_is_rare_even_together_goes_to_the_least_common_cell() -> None:
    found = fit({0: 55, 1: 38, 2: 7}, row(0.6, 0.35, 0.05))
    wanted = stats.chisquare([55, 45], [60, 40])
    assert (found.statistic, found.freedom) == (pytest.approx(wanted.statistic), 1)


def test_no_cell_is_expected_too_rarely() -> None:
    """A single hit in a cell expected 0.01 times would be worth a statistic of 98."""
    assert fit({0: 99, 1: 1}, row(0.9999, 0.0001)) == Fit()
    assert fit_share(RARE - 1, 100, (RARE - 0.5) / 100) == Fit()
    assert fit_share(RARE, 100, RARE / 100) == Fit(0.0, 1)


def test_one_impossible_token_settles_it() -> None:
    found = fit({0: 60, 1: 40, 2: 1}, row(0.6, 0.4, 0.0)) + Fit(0.1, 5)
    assert (found.impossible, found.p_value) == (1, 0.0)
    assert fit({7: 1}, Distribution(np.array([1.0]), np.array([3]))).p_value == 0
    assert fit_share(1, 10, 0.0).p_value == 0
    assert fit_share(9, 10, 1.0).p_value == 0


def test_nothing_to_compare_is_no_p_value() -> None:
    assert fit({}, row(0.5, 0.5)).p_value is None
    assert fit({0: 1000}, row(1.0)).p_value is None
    assert (fit({0: 3, 1: 2}, row(0.5, 0.5)) + Fit()).p_value is None
    assert fit_share(1000, 1000, 1 + 1e-12).p_value is None


def test_the_level_holds_for_counts_of_the_distribution_itself() -> None:
    """Small cells make large statistics more likely than the p-value says: pooled as they are, they do not matter."""
    generator, runs = np.random.default_rng(0), 4000
    below = 0
    for _ in range(runs):
        probs = generator.dirichlet(np.full(30, 0.3))
        counts = generator.multinomial(600, probs)
        p = fit(Counter(dict(enumerate(counts.tolist()))), Distribution(probs, None)).p_value
        below += p is not None and p < 0.01
    assert below <= 0.01 * runs + 4 * np.sqrt(0.01 * runs)


def brute_force(target: np.ndarray, draft: np.ndarray) -> float:
    both = [x for x in range(target.size) if target[x] > 0 and draft[x] > 0]
    return sum(1 / np.maximum(target / target[x], draft / draft[x]).sum() for x in both)


@pytest.mark.parametrize("sparse", [(), ("target",), ("draft",), ("target", "draft")])
@pytest.mark.parametrize("seed", range(4))
def test_shares_of_kept_drafts_are_those_of_the_formulas(seed: int, sparse: tuple[str, ...]) -> None:
    generator = np.random.default_rng(seed)
    rows = {}
    for name in ("target", "draft"):
        probs = generator.dirichlet(np.full(40, 0.5)) * (generator.random(40) < 0.7)
        probs /= probs.sum()
        ids = np.flatnonzero(probs)
        rows[name] = Distribution(probs[ids], ids) if name in sparse else Distribution(probs, None)
    target, draft = (dense(rows[name], 40) for name in ("target", "draft"))
    rejection, coupled = (kept_share(rule, rows["target"], rows["draft"]) for rule in ("rejection", "coupled"))
    assert rejection == pytest.approx(np.minimum(target, draft).sum(), abs=1e-12)
    assert coupled == pytest.approx(brute_force(target, draft), abs=1e-12)
    assert coupled <= rejection + 1e-12
    for rule in ("rejection", "coupled"):
        assert kept_share(rule, rows["target"], rows["target"]) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_the_bias_of_drawing_again_is_the_chi_square_of_what_it_emits(seed: int) -> None:
    generator = np.random.default_rng(seed)
    target, draft = (generator.dirichlet(np.full(30, 0.5)) * (generator.random(30) < 0.7) for _ in range(2))
    target, draft = target / target.sum(), draft / draft.sum()
    emitted = np.minimum(target, draft) + (1 - np.minimum(target, draft).sum()) * target
    wanted = ((emitted - target)[target > 0] ** 2 / target[target > 0]).sum()
    ids = np.flatnonzero(draft)
    for row in (Distribution(draft, None), Distribution(draft[ids], ids)):
        assert redraw_bias(Distribution(target, None), row) == pytest.approx(wanted, abs=1e-12)


def test_where_target_and_draft_agree_and_where_the_target_is_certain_nothing_shows() -> None:
    for target, draft in ((row(0.5, 0.5), row(0.5, 0.5)), (row(0.0, 1.0), row(0.7, 0.3)), (row(0, 1), row(1, 0))):
        assert redraw_bias(target, draft) == pytest.approx(0)
    assert redraw_bias(row(0.5, 0.5), row(1.0, 0.0)) == pytest.approx(0.25)
