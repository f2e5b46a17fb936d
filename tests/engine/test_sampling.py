"""Sampling: the filter chain against a slow reference, ties, padding, faulty rows, and draws that never slip."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from engine.config import MAX_DRAFT, Sampling
from engine.errors import BadLogits, ConfigError
from engine.model import FloatArray
from engine.sampling import BLOCKS, FIRST_NUCLEUS, STRETCH, Distribution, distribution, one_hot
from tests.engine.rows import PLAIN, Borderline, dense, logit_rows, reference, samplings, steady

IDS = st.lists(st.integers(-2, 9), max_size=12)
UNDER_ONE = float(np.nextafter(1, 0))


def expected(row: FloatArray, size: int, sampling: Sampling, history: list[int], answer: list[int]) -> FloatArray:
    try:
        return np.array(reference(row, size, sampling, history, answer))
    except Borderline:
        assume(False)
        raise


def check_same(found: Distribution, wanted: FloatArray) -> None:
    probs = dense(found, wanted.size)
    assert found.ids is None or (found.probs > 0).all()
    assert ((probs > 0) == (wanted > 0)).all()
    np.testing.assert_allclose(probs, wanted, rtol=1e-9, atol=1e-15)


# The chain


@steady
@given(logit_rows(), samplings())
@example(np.zeros(4, np.float32), Sampling(temperature=1.0, top_k=0, top_p=0.5, min_p=0.0))
@example(np.array([0, 0, -math.inf], np.float32), Sampling(top_k=40, top_p=1.0, min_p=0.0))
def test_a_row_is_what_the_slow_reference_says(row: FloatArray, sampling: Sampling) -> None:
    found = distribution(row, row.size, sampling, [], [])
    check_same(found, expected(row, row.size, sampling, [], []))
    assert found.probs.sum() == pytest.approx(1, abs=1e-12)


@steady
@given(logit_rows(), samplings(penalties=True), IDS, IDS)
def test_bias_and_penalties_are_what_the_slow_reference_says(
    row: FloatArray, sampling: Sampling, prompt: list[int], answer: list[int]
) -> None:
    allowed = [token for token, value in enumerate(row) if sampling.logit_bias.get(token, 0.0) + value > -math.inf]
    assume(allowed)
    found = distribution(row, row.size, sampling, prompt + answer, answer)
    assume(np.abs(row[np.isfinite(row)]).max() < 1e38)  # beyond, the reference overflows
    check_same(found, expected(row, row.size, sampling, prompt + answer, answer))


@pytest.mark.parametrize("size", [BLOCKS - 1, BLOCKS, BLOCKS + 1, FIRST_NUCLEUS, FIRST_NUCLEUS + 1, 2000, 9001])
@pytest.mark.parametrize("shape", ["spread", "ties", "flat", "peaked", "impossible", "ascending", "one"])
def test_wide_rows_are_what_the_slow_reference_says(size: int, shape: str) -> None:
    row = wide(size, shape)
    for filters in (
        {},
        {"top_k": 0},
        {"top_k": 0, "top_p": 0.3},
        {"top_k": 0, "top_p": 0.999, "temperature": 3.0},
        {"top_k": 0, "top_p": 1.0},
        {"top_k": 0, "top_p": 1.0, "min_p": 0.0},
        {"top_k": size // 2, "min_p": 0.0},
        {"top_k": size // 2, "top_p": 1.0, "min_p": 0.0},
        {"top_k": size},
        {"top_k": size + 1},
        {"top_k": 1},
        {"temperature": 0.0},
    ):
        sampling = Sampling(**filters)
        check_same(distribution(row, size, sampling, [], []), np.array(reference(row, size, sampling)))


def wide(size: int, shape: str) -> FloatArray:
    generator = np.random.default_rng(size)
    row = generator.standard_normal(size) * 3
    if shape == "ties":
        row = np.round(row)
    elif shape == "flat":
        row = np.full(size, 2.5)
    elif shape == "peaked":
        row[generator.integers(size)] = 40
    elif shape == "impossible":
        row[generator.random(size) < 0.99] = -math.inf
        row[size // 3] = 1
    elif shape == "ascending":
        row = np.arange(size) * 0.01
    elif shape == "one":
        row[:] = -math.inf
        row[size - 1] = -7
    return row.astype(np.float32)


def test_equal_logits_go_by_the_lowest_id_in_each_filter() -> None:
    row = np.array([1, 3, 2, 3, 2, 2, 3], np.float32)

    def ids(**filters: float) -> list[int]:
        probs = dense(
            distribution(row, row.size, Sampling(**{"top_k": 0, "top_p": 1, "min_p": 0} | filters), [], []), 7
        )
        return [int(token) for token in np.flatnonzero(probs)]

    assert ids(temperature=0) == [1]
    assert ids(top_k=1) == [1]
    assert ids(top_k=2) == [1, 3]
    assert ids(top_k=4) == [1, 2, 3, 6]
    assert ids(top_k=5) == [1, 2, 3, 4, 6]
    assert ids(top_p=1e-6) == [1]
    assert ids(min_p=1) == [1, 3, 6]


def test_top_p_counts_what_top_k_left_and_keeps_the_token_that_crosses() -> None:
    row = np.log([0.4, 0.3, 0.2, 0.1]).astype(np.float32)

    def kept(**filters: float) -> int:
        settings = {"temperature": 1, "top_k": 0, "min_p": 0} | filters
        return int((dense(distribution(row, 4, Sampling(**settings), [], []), 4) > 0).sum())

    assert kept(top_p=0.39) == 1
    assert kept(top_p=0.41) == 2
    assert kept(top_p=0.69) == 2
    assert kept(top_p=0.71) == 3
    assert kept(top_p=0.56, top_k=2) == 1  # 0.4 / 0.7 is 0.571
    assert kept(top_p=0.58, top_k=2) == 2


def test_min_p_compares_with_the_largest_probability() -> None:
    row = np.log([0.5, 0.26, 0.24]).astype(np.float32)
    found = distribution(row, 3, Sampling(temperature=1, top_k=0, top_p=1, min_p=0.5), [], [])
    assert dense(found, 3) == pytest.approx([0.5 / 0.76, 0.26 / 0.76, 0])


@pytest.mark.parametrize("temperature", [0.0, 1e-320, 1e-300, 1e-3])
def test_a_temperature_near_zero_is_greedy(temperature: float) -> None:
    row = np.array([-3e38, 1, 3e38, 2], np.float32)
    found = distribution(row, 4, Sampling(temperature=temperature), [], [])
    assert (found.top, found.prob(2)) == (2, 1.0)


def test_a_huge_temperature_flattens_without_overflow() -> None:
    row = np.array([-3e38, -math.inf, 3e38], np.float32)
    found = distribution(row, 3, Sampling(temperature=1e300, min_p=0), [], [])
    assert dense(found, 3) == pytest.approx([0.5, 0, 0.5])


# Penalties


def test_the_repetition_penalty_looks_at_the_last_tokens_of_prompt_and_answer() -> None:
    row = np.array([2, -2, 2, -2, 2], np.float32)
    sampling = Sampling(temperature=1, top_k=0, top_p=1, min_p=0, repeat_penalty=2, repeat_last=3)
    found = distribution(row, 5, sampling, [4, 0, 1, 0], [])
    wanted = np.exp([1, -4, 2, -2, 2])
    assert dense(found, 5) == pytest.approx(wanted / wanted.sum())
    nobody = distribution(row, 5, Sampling(top_k=0, repeat_penalty=2, repeat_last=0), [4, 0, 1, 0], [])
    assert (nobody.probs == distribution(row, 5, Sampling(top_k=0), [], []).probs).all()


def test_frequency_counts_each_use_and_presence_one_and_both_look_at_the_answer_alone() -> None:
    sampling = Sampling(temperature=1, top_k=0, top_p=1, min_p=0, frequency_penalty=0.5, presence_penalty=-0.25)
    found = distribution(np.zeros(3, np.float32), 3, sampling, [2, 2, 0, 0, 1], [0, 0, 1])
    wanted = np.exp([-1 + 0.25, -0.5 + 0.25, 0])
    assert dense(found, 3) == pytest.approx(wanted / wanted.sum())


def test_bias_comes_before_the_penalties() -> None:
    sampling = Sampling(
        temperature=1, top_k=0, top_p=1, min_p=0, logit_bias={0: -5.0, 1: -math.inf, 99: 5.0}, repeat_penalty=2.0
    )
    found = distribution(np.array([2, 0, 0], np.float32), 3, sampling, [0], [])
    wanted = np.exp([-6, -math.inf, 0])
    assert dense(found, 3) == pytest.approx(wanted / wanted.sum())


def test_settings_beyond_float32_neither_forbid_a_token_nor_give_nan() -> None:
    sampling = Sampling(
        logit_bias={0: 1e300}, repeat_penalty=1e-300, frequency_penalty=-1e308, presence_penalty=1e308, min_p=0
    )
    found = distribution(np.array([1, -1, 0, -math.inf], np.float32), 4, sampling, [0, 1, 3], [0] * 9 + [1, 3])
    assert np.isfinite(found.probs).all()
    assert found.prob(3) == 0
    assert found.top == 0
    harsh = Sampling(repeat_penalty=1e308, frequency_penalty=1e308, top_k=0, min_p=0, temperature=1)
    assert distribution(np.array([-5, -5], np.float32), 2, harsh, [0, 1], [0, 1] * 9).probs.sum() == 1


@pytest.mark.parametrize("drafted", [2, 8, 48])
def test_a_drafted_position_sees_the_history_it_would_have_without_drafting(drafted: int) -> None:
    assert drafted <= MAX_DRAFT
    sampling = Sampling(temperature=0, repeat_penalty=1.3, frequency_penalty=2.0, presence_penalty=1.5)
    generator = np.random.default_rng(drafted)
    rows = generator.standard_normal((200, 12)).astype(np.float32)
    prompt = [3, 1, 4]

    def token(answer: list[int]) -> int:
        return distribution(rows[len(answer)], 12, sampling, prompt + answer, answer).top

    plain: list[int] = []
    while len(plain) < 150:
        plain.append(token(plain))
    answer: list[int] = []
    while len(answer) < 100:
        right = plain[len(answer) : len(answer) + drafted]
        draft = [known if generator.random() < 0.8 else int(generator.integers(12)) for known in right]
        kept = 0
        while kept < drafted and token(answer + draft[:kept]) == draft[kept]:
            kept += 1
        answer += [*draft[:kept], token(answer + draft[:kept])]
    assert answer == plain[: len(answer)]


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_repetition_penalty_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(ConfigError, match="repeat-penalty"):
        Sampling(repeat_penalty=bad)


# Rows


@steady
@given(logit_rows(2), samplings(), st.sampled_from([math.nan, math.inf, 3e38]), st.integers(1, 12))
def test_padding_has_no_mass_and_no_say(row: FloatArray, sampling: Sampling, junk: float, padding: int) -> None:
    padded = np.concatenate((row, np.full(padding, junk, np.float32)))
    found, wanted = (distribution(logits, row.size, sampling, [], []) for logits in (padded, row))
    assert (dense(found, row.size) == dense(wanted, row.size)).all()
    assert not any(found.prob(token) for token in range(row.size, padded.size))


@pytest.mark.parametrize("filters", [{}, {"top_k": 0}, {"top_k": 0, "top_p": 1.0, "min_p": 0.0}, {"temperature": 0}])
def test_a_row_depends_on_itself_alone_bit_for_bit(filters: dict[str, float]) -> None:
    sampling = Sampling(**filters, logit_bias={5: 1.0}, repeat_penalty=1.1)
    rows = np.random.default_rng(1).standard_normal((5, 3001)).astype(np.float32)
    alone = distribution(rows[3].copy(), 2900, sampling, [7, 8], [])
    odd = np.frombuffer(b"\0" * 4 + rows[3].tobytes(), np.float32, offset=4)
    for row in (rows[3], odd, np.asfortranarray(rows)[3]):
        found = distribution(row, 2900, sampling, [7, 8], [])
        assert found.probs.tobytes() == alone.probs.tobytes()
        assert (found.ids is None) == (alone.ids is None)
        assert found.ids is None or (found.ids == alone.ids).all()


@steady
@given(logit_rows(), samplings(penalties=True), IDS)
def test_the_inputs_are_left_as_they_are(row: FloatArray, sampling: Sampling, ids: list[int]) -> None:
    before, history = row.copy(), list(ids)
    row.flags.writeable = False
    assume(any(sampling.logit_bias.get(token, 0.0) + value > -math.inf for token, value in enumerate(row)))
    found = distribution(row, row.size, sampling, history, history)
    assert row.tobytes() == before.tobytes()
    assert history == ids
    assert not np.shares_memory(found.probs, row)


@pytest.mark.parametrize("size", [3, 700])
@pytest.mark.parametrize("bias", [{}, {1: -math.inf}, {2: 1.0}])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("bad", "name"), [(math.nan, "NaN"), (math.inf, r"\+inf")])
def test_a_row_with_a_fault_is_an_error_that_names_it(
    size: int, bias: dict[int, float], temperature: float, bad: float, name: str
) -> None:
    row = np.zeros(size, np.float32)
    row[1] = bad
    with pytest.raises(BadLogits, match=rf"{name} as the logit of token 1: .*verify"):
        distribution(row, size, Sampling(temperature=temperature, logit_bias=bias, repeat_penalty=2), [1], [])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_in_which_nothing_is_possible_is_an_error(temperature: float) -> None:
    nothing = np.full(5, -math.inf, np.float32)
    with pytest.raises(BadLogits, match="-inf as the logit of every token"):
        distribution(nothing, 5, Sampling(temperature=temperature), [], [])
    with pytest.raises(BadLogits, match="-inf as the logit of every token"):
        distribution(np.append(nothing, np.float32(1)), 5, Sampling(temperature=temperature), [], [])
    forbidden = Sampling(temperature=temperature, logit_bias={0: -math.inf, 1: -math.inf})
    with pytest.raises(BadLogits, match="the logit bias forbids"):
        distribution(np.zeros(2, np.float32), 2, forbidden, [], [])


@pytest.mark.parametrize("size", [0, 4])
def test_a_size_that_the_row_does_not_have_is_our_own_bug(size: int) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        distribution(np.zeros(3, np.float32), size, PLAIN, [], [])


# Distributions


def test_an_id_that_is_not_there_has_probability_0() -> None:
    for found in (Distribution(np.array([0.5, 0.5]), None), Distribution(np.array([0.5, 0.5]), np.array([0, 1]))):
        assert [found.prob(token) for token in (-1, -2, 0, 1, 2, 2**40)] == [0, 0, 0.5, 0.5, 0, 0]


def test_one_hot_is_certain() -> None:
    certain = one_hot(7)
    assert (certain.prob(7), certain.prob(6), certain.top) == (1, 0, 7)
    assert {certain.draw(u) for u in (0.0, 0.5, UNDER_ONE)} == {7}


@pytest.mark.parametrize("size", [1, 5, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH, 4000])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_evenly_spaced_draws_have_the_shares_of_the_distribution(size: int, share: float) -> None:
    generator = np.random.default_rng(size)
    probs = generator.random(size) * (generator.random(size) >= share)
    probs[size // 2] += 1
    probs /= probs.sum()
    draws = [Distribution(probs, None).draw((i + 0.5) / 5000) for i in range(5000)]
    assert draws == sorted(draws)
    counts = np.bincount(draws, minlength=size) / 5000
    assert np.abs(np.cumsum(counts) - np.cumsum(probs)).max() < 1.01 / 5000
    assert not counts[probs == 0].any()


@steady
@given(
    st.lists(st.sampled_from([0.0, 5e-324, 1e-200, 1e-17, 0.1, 0.7]), min_size=1, max_size=12).filter(any),
    st.integers(0, 2 * STRETCH),
    st.one_of(st.sampled_from([0.0, 5e-324, 1e-17, UNDER_ONE, 1.0]), st.floats(0, UNDER_ONE)),
)
def test_a_token_of_probability_0_is_never_drawn(weights: list[float], zeros: int, u: float) -> None:
    probs = np.concatenate((np.zeros(zeros), np.array(weights) / sum(weights), np.zeros(zeros)))
    assume(probs.sum() > 0)
    assert probs[Distribution(probs, None).draw(u)] > 0
    ids = np.arange(probs.size) * 3
    assert Distribution(probs, ids).prob(Distribution(probs, ids).draw(u)) > 0


def test_draws_between_stretches_slip_neither_before_nor_behind_them() -> None:
    for seed in range(40):
        probs = np.random.default_rng(seed).random((6, STRETCH)) ** 3
        probs[:, :9] = probs[:, -9:] = 0
        probs /= probs.sum()
        found = Distribution(probs.ravel(), None)
        for edge in np.cumsum(probs.sum(axis=1))[:-1]:
            for u in edge + np.arange(-8, 9) * 2.0**-54:
                assert found.prob(found.draw(float(u))) > 0


def test_no_finite_setting_overflows_into_nothing() -> None:
    huge = Sampling(
        temperature=1,
        top_k=0,
        top_p=1,
        min_p=0,
        repeat_penalty=1e300,
        frequency_penalty=-1e308,
        presence_penalty=-1e308,
    )
    row = np.array([-3e38, 1.0, 2.0], np.float32)
    found = distribution(row, 3, huge, [0, 1], [0])
    assert found.prob(0) == found.prob(1) > 0
    assert distribution(row, 3, huge, [0, 1], []).prob(0) == 0
