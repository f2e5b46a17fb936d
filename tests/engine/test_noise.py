"""Noise: a pure function of seed, position and token; uniform, independent, and a fair race."""

import itertools
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from engine.noise import FIRST, GAMMA, KEPT, SECOND, Noise, exponential
from engine.sampling import Distribution
from tests.engine.rows import steady

LEAST = 1e-5
"""A p-value below this at a fixed seed means a fault."""
GOLDEN = [1.1104337712306573, 0.5107522788914606, 0.27811697248881423]
GOLDEN_EDGE = 6.947367667937712
Floats = npt.NDArray[np.float64]


class Even(Noise):
    """Noise without noise: every token draws the same."""

    def at(self, position: int, ids: npt.NDArray[np.int64]) -> Floats:
        return np.ones(ids.size)


def uniform(noise: Floats) -> Floats:
    return np.exp(-noise)


# A pure function


@steady
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31), st.lists(st.integers(0, 999), min_size=1, unique=True))
def test_one_token_some_tokens_and_all_tokens_get_the_same_bits(seed: int, position: int, ids: list[int]) -> None:
    whole = Noise(seed).dense(position, 1000)
    ascending = np.array(sorted(ids))
    assert Noise(seed).at(position, ascending).tobytes() == whole[ascending].tobytes()
    assert Noise(seed).at(position, ascending[:1])[0] == whole[ascending[0]]
    assert Noise(seed).dense(position, 37).tobytes() == whole[:37].tobytes()


def test_neither_order_nor_what_was_asked_before_matters() -> None:
    wanted = {position: Noise(3).dense(position, 50).tobytes() for position in range(2 * KEPT)}
    noise = Noise(3)
    generator = np.random.default_rng(0)
    for position in generator.integers(0, 2 * KEPT, 300):
        assert noise.dense(int(position), 50).tobytes() == wanted[int(position)]
        other, size = (int(value) for value in generator.integers(1, 2 * KEPT, 2))
        assert noise.dense(other, size * 6).size == size * 6
        if generator.random() < 0.3:
            noise.settle(int(generator.integers(0, 2 * KEPT)))


def test_the_noise_of_a_seed_stays_the_same_from_version_to_version() -> None:
    assert Noise(7).at(12, np.array([0, 1, 151_935])) == pytest.approx(GOLDEN, rel=1e-13)
    assert Noise(2**63 - 1).at(2**31, np.array([5])) == pytest.approx([GOLDEN_EDGE], rel=1e-13)


def test_global_generators_are_neither_used_nor_disturbed() -> None:
    np.random.seed(1)
    before = np.random.random()
    np.random.seed(1)
    first = Noise(9).dense(0, 10).tobytes()
    assert np.random.random() == before
    assert Noise(9).dense(0, 10).tobytes() == first


# Uniform and independent


@pytest.mark.parametrize(("seed", "position"), [(0, 0), (0, 1), (1, 0), (2**63 - 1, 2**31)])
def test_the_noise_of_a_position_is_exponential(seed: int, position: int) -> None:
    noise = Noise(seed).dense(position, 151_936)
    assert stats.kstest(noise, "expon").pvalue > LEAST
    assert noise.min() > 0


def test_the_noise_of_a_token_is_exponential_over_positions_and_over_seeds() -> None:
    token = np.array([42])
    over_positions = [Noise(5).at(position, token)[0] for position in range(20_000)]
    over_seeds = [Noise(seed).at(5, token)[0] for seed in range(20_000)]
    assert stats.kstest(over_positions, "expon").pvalue > LEAST
    assert stats.kstest(over_seeds, "expon").pvalue > LEAST


def test_neighbours_are_independent() -> None:
    size = 100_000
    here = uniform(Noise(1).dense(10, size))
    neighbours = {
        "next token": np.roll(here, 1),
        "token at a power of two": np.roll(here, 4096),
        "next position": uniform(Noise(1).dense(11, size)),
        "position at a power of two": uniform(Noise(1).dense(10 + 4096, size)),
        "next seed": uniform(Noise(2).dense(10, size)),
        "seed and position swapped": uniform(Noise(10).dense(1, size)),
        "next position, next token": np.roll(uniform(Noise(1).dense(11, size)), 1),
    }
    for name, there in neighbours.items():
        assert abs(np.corrcoef(here, there)[0, 1]) < 4 / size**0.5, name
        table, _, _ = np.histogram2d(here, there, bins=16, range=[[0, 1], [0, 1]])
        assert stats.chisquare(table.ravel()).pvalue > LEAST, name


def test_every_bit_of_u_is_fair_and_none_tells_of_another() -> None:
    size, width = 50_000, 40  # the logarithm hides the bits below
    u = (uniform(Noise(4).dense(3, size)) * 2.0**width).astype(np.int64)
    bits = (u[:, None] >> np.arange(width)) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / size**0.5
    assert np.abs(np.corrcoef(bits.T) - np.eye(width)).max() < 5 / size**0.5


def counter_for(output: int) -> int:
    """The counter that the mixing turns into this output: each of its steps undone."""
    mask = 2**64 - 1

    def unshift(value: int, by: int) -> int:
        result = value
        for _ in range(64 // by + 1):
            result = value ^ (result >> by)
        return result

    value = unshift(output, 31) * pow(int(SECOND), -1, 2**64) & mask
    value = unshift(value, 27) * pow(int(FIRST), -1, 2**64) & mask
    return unshift(value, 30)


@pytest.mark.parametrize(
    ("output", "u"),
    [(0, 2.0**-53), (2**64 - 1, 1 - 2.0**-53), (1 << 63, 0.5), (3 << 62, 0.75), ((1 << 12) - 1, 2.0**-53)],
)
def test_u_keeps_53_bits_and_stays_strictly_inside_0_and_1(output: int, u: float) -> None:
    found = exponential(np.array([counter_for(output)], dtype=np.uint64))[0]
    assert 0 < found < np.inf
    assert found == -np.log(u)


def test_steps_between_tokens_are_odd_so_that_no_two_tokens_share_a_counter() -> None:
    assert int(GAMMA) % 2 == 1
    assert np.unique(Noise(0).dense(0, 151_936)).size == 151_936


# The race


@pytest.mark.parametrize("probs", [[0.5, 0.25, 0.15, 0.1], [0.97, 0.01, 0.01, 0.01], [0.25] * 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_race_draws_from_the_distribution(probs: list[float], sparse: bool) -> None:
    ids = np.array([3, 50, 700, 151_000]) if sparse else None
    found = Distribution(np.array(probs), ids)
    noise = Noise(11)
    winners = [noise.race(found, position) for position in range(20_000)]
    counts = [winners.count(found.token(index)) for index in range(4)]
    assert sum(counts) == len(winners)
    assert stats.chisquare(counts, np.array(probs) * len(winners)).pvalue > LEAST


def test_winners_of_neighbouring_positions_are_independent() -> None:
    noise, found = Noise(12), Distribution(np.array([0.5, 0.3, 0.2]), None)
    winners = [noise.race(found, position) for position in range(20_001)]
    table = np.zeros((3, 3))
    for pair in itertools.pairwise(winners):
        table[pair] += 1
    assert stats.chisquare(table.ravel(), np.outer(found.probs, found.probs).ravel() * 20_000).pvalue > LEAST


@steady
@given(st.lists(st.sampled_from([0.0, 5e-324, 1e-308, 1e-30, 0.2, 1.0]), min_size=1).filter(any), st.integers(0, 99))
def test_a_token_of_probability_0_never_wins(weights: list[float], position: int) -> None:
    probs = np.array(weights) / max(weights)
    for ids in (None, np.arange(probs.size) * 2):
        found = Distribution(probs, ids)
        assert found.prob(Noise(1).race(found, position)) > 0


def test_equal_tokens_go_by_the_lowest_id() -> None:
    assert Even(0).race(Distribution(np.array([0.2, 0.4, 0.4]), np.array([1, 5, 9])), 0) == 5


def test_a_race_among_some_tokens_is_the_race_among_all_with_the_rest_at_0() -> None:
    generator, noise = np.random.default_rng(2), Noise(2)
    for position in range(200):
        ids = np.sort(generator.choice(500, 20, replace=False))
        probs = generator.dirichlet(np.ones(20))
        full = np.zeros(500)
        full[ids] = probs
        assert noise.race(Distribution(probs, ids), position) == noise.race(Distribution(full, None), position)


# Shared, and bounded


def test_the_noise_of_a_position_is_computed_once_until_it_is_settled() -> None:
    noise = Noise(0)
    first = noise.dense(5, 100)
    noise.dense(6, 100)
    assert np.shares_memory(noise.dense(5, 100), first)
    assert np.shares_memory(noise.dense(5, 60), first)
    noise.settle(4)
    assert np.shares_memory(noise.dense(5, 100), first)
    noise.settle(5)
    assert not np.shares_memory(noise.dense(5, 100), first)


def test_the_lowest_positions_are_held_since_the_target_comes_to_them_first() -> None:
    noise = Noise(0)
    held = [noise.dense(position, 10) for position in range(20, 20 + KEPT + 30)]
    assert all(np.shares_memory(noise.dense(20 + i, 10), held[i]) for i in range(KEPT - 1))
    noise.dense(3, 10)
    assert np.shares_memory(noise.dense(20, 10), held[0])


def test_a_long_draft_does_not_hold_noise_for_every_position() -> None:
    size = 20_000
    noise = Noise(0)
    noise.dense(0, size)
    tracemalloc.start()
    try:
        for position in range(64):
            noise.dense(position, size)
        assert tracemalloc.get_traced_memory()[0] < (KEPT + 1) * size * 8
    finally:
        tracemalloc.stop()


def test_shared_noise_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Noise(0).dense(0, 4)[0] = 1
