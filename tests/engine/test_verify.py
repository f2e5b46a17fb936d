"""Losslessness of both rules: in closed form, over all chance, by counting, and against rules known to be wrong."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.config import Sampling
from engine.model import FloatArray
from engine.noise import Noise
from engine.sampling import Distribution, distribution, one_hot
from engine.verify import (
    Coupled,
    Generator,
    Outcome,
    Proposal,
    Randomness,
    Rejection,
    Rule,
    accept_probability,
    residual,
    verify,
)
from tests.engine.mutants import MUTANTS
from tests.engine.rounds import Game, Path, Prefix, Rows, every_outcome
from tests.engine.rows import PLAIN, dense, logit_rows, samplings, steady

EXACT = 1e-12
LEAST = 1e-4
"""A p-value below this at a fixed seed means a biased rule."""
ROUNDS = 200_000
SOME_ROUNDS = 12_000
V = 8


# In closed form


def emitted(target: Distribution, draft: Distribution, size: int) -> FloatArray:
    """The distribution of what the rejection rule emits at one position."""
    out = np.zeros(size)
    for token in range(size):
        if proposed := draft.prob(token):
            kept = accept_probability(token, target, draft)
            out[token] += proposed * kept
            out += proposed * (1 - kept) * dense(residual(target, draft, token), size)
    return out


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Distribution, Distribution, int]:
    """Two rows by any chains of filters, of sizes of their own."""
    rows = [draw(logit_rows(1, 12)) for _ in range(2)]
    if draw(st.booleans()):
        rows[1] = rows[0] + np.float32(draw(st.sampled_from([0.0, 1e-7, 0.5])))
    chains = [draw(samplings())] * 2 if draw(st.booleans()) else [draw(samplings()), draw(samplings())]
    target, draft = (distribution(row, row.size, chain, [], []) for row, chain in zip(rows, chains, strict=True))
    return target, draft, max(row.size for row in rows)


@settings(max_examples=400, deadline=None)
@given(pairs())
def test_rejection_emits_the_target_exactly_for_every_chain_of_filters(
    pair: tuple[Distribution, Distribution, int],
) -> None:
    target, draft, size = pair
    np.testing.assert_allclose(emitted(target, draft, size), dense(target, size), rtol=0, atol=EXACT)


@steady
@given(logit_rows(), samplings())
def test_a_one_hot_draft_is_lossless_for_every_token(row: FloatArray, sampling: Sampling) -> None:
    target = distribution(row, row.size, sampling, [], [])
    for token in range(-1, row.size + 1):
        kept = accept_probability(token, target, None)
        assert kept == pytest.approx(target.prob(token), abs=EXACT)
        out = (1 - kept) * dense(residual(target, None, token), row.size)
        if 0 <= token < row.size:
            out[token] += kept
        np.testing.assert_allclose(out, dense(target, row.size), rtol=0, atol=EXACT)


@steady
@given(pairs())
def test_a_residual_is_a_distribution_over_what_the_target_can_emit(
    pair: tuple[Distribution, Distribution, int],
) -> None:
    target, draft, size = pair
    for proposed in (draft, None):
        for token in (-1, *range(size), size, 2**40):
            assert 0 <= accept_probability(token, target, proposed) <= 1
            rest = dense(residual(target, proposed, token), size)
            assert rest.sum() == pytest.approx(1, abs=1e-9)
            assert (rest >= 0).all()
            assert not rest[dense(target, size) == 0].any()


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


# Edges (row A11)


class Fixed:
    """Randomness with a uniform draw that never changes."""

    def __init__(self, u: float) -> None:
        self.u = u

    def keep(self, probability: float) -> bool:
        return self.u < probability

    def draw(self, distribution: Distribution) -> int:
        return distribution.draw(self.u)


UNDER_ONE = float(np.nextafter(1, 0))


@steady
@given(logit_rows(), samplings())
def test_a_draft_equal_to_the_target_is_always_kept(row: FloatArray, sampling: Sampling) -> None:
    target, draft = (distribution(row, row.size, sampling, [], []) for _ in range(2))
    for token in range(row.size):
        if target.prob(token) > 0:
            assert accept_probability(token, target, draft) == 1
            assert Rejection(Fixed(UNDER_ONE)).judge(token, target, draft, 0) == token


@pytest.mark.parametrize("u", [0.0, 0.5, UNDER_ONE])
@pytest.mark.parametrize("token", [-1, 0, 1, 3, 4, 2**40])
def test_no_token_that_the_target_forbids_is_ever_emitted(u: float, token: int) -> None:
    target = Distribution(np.array([0.0, 0.4, 0.6, 0.0]), None)
    drafts = [
        None,
        target,
        Distribution(np.array([0.5, 0.0, 0.5, 0.0]), None),
        Distribution(np.array([0.0, 0.4, 0.6 - 1e-16, 1e-16]), None),
        Distribution(np.array([0.1, 0.9]), np.array([0, 6])),
        one_hot(0),
        one_hot(3),
    ]
    for certain in (target, one_hot(1)):
        for draft in drafts:
            assert certain.prob(Rejection(Fixed(u)).judge(token, certain, draft, 0)) > 0


def test_a_residual_without_mass_falls_back_to_the_target_and_not_to_a_uniform_row() -> None:
    target = Distribution(np.array([0.9, 0.1, 0.0]), None)
    above = Distribution(np.array([0.9, 0.1 + 1e-12, 0.0]), None)
    for draft in (target, above):
        assert residual(target, draft, 1).probs.tolist() == [0.9, 0.1, 0.0]
    assert residual(one_hot(4), None, 4).top == 4


def test_a_token_that_its_draft_could_not_have_drawn_is_judged_as_one_hot() -> None:
    target, draft = Distribution(np.array([0.3, 0.7]), None), Distribution(np.array([1.0, 0.0]), None)
    assert accept_probability(1, target, draft) == pytest.approx(0.7)
    assert residual(target, draft, 1).probs.tolist() == [1, 0]


def test_probabilities_are_compared_in_log_space_down_to_the_smallest() -> None:
    target, draft = Distribution(np.array([5e-324, 1.0]), None), Distribution(np.array([1e-310, 1.0]), None)
    assert accept_probability(0, target, draft) == pytest.approx(5e-324 / 1e-310, rel=1e-9)
    assert accept_probability(0, draft, target) == 1


# Over all chance


def table_rows(table: FloatArray, form: Callable[[FloatArray], Distribution]) -> Rows:
    """Rows that depend on the whole prefix."""

    @cache
    def row(prefix: Prefix) -> Distribution:
        index = 0
        for token in prefix:
            index = (index * 31 + token + 1) % len(table)
        return form(table[index])

    return row


def as_is(probs: FloatArray) -> Distribution:
    return Distribution(probs, None)


def sparse(probs: FloatArray) -> Distribution:
    ids = np.flatnonzero(probs > 0.15)
    return Distribution(probs[ids] / probs[ids].sum(), ids)


def joint(target: Rows, length: int, size: int) -> dict[Prefix, float]:
    """The target's own distribution of its first `length` tokens."""
    found: dict[Prefix, float] = {(): 1.0}
    for _ in range(length):
        found = {
            (*prefix, token): mass * target(prefix).prob(token)
            for prefix, mass in found.items()
            for token in range(size)
            if target(prefix).prob(token) > 0
        }
    return found


def error(found: dict[Prefix, float], wanted: dict[Prefix, float]) -> float:
    return max(abs(found.get(answer, 0) - wanted.get(answer, 0)) for answer in found | wanted)


FORMS = [as_is, sparse, lambda probs: one_hot(int(probs.argmax()))]


@pytest.mark.parametrize("drafted", [0, 1, 2, 3])
@pytest.mark.parametrize("target_form", FORMS)
@pytest.mark.parametrize("draft_form", FORMS)
def test_answers_have_the_targets_distribution_over_all_chance(
    drafted: int, target_form: Callable[[FloatArray], Distribution], draft_form: Callable[[FloatArray], Distribution]
) -> None:
    tables = np.random.default_rng(drafted).dirichlet(np.ones(3), (2, 17))
    target, draft = table_rows(tables[0], target_form), table_rows(tables[1], draft_form)
    found = every_outcome(lambda chance: Game(target, draft, drafted).play(Rejection(chance), 2))
    assert error(found, joint(target, 2, 3)) < EXACT


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_rules_show_over_all_chance(name: str) -> None:
    rule, submits = MUTANTS[name]
    tables = np.random.default_rng(1).dirichlet(np.ones(3), (2, 17))
    target, draft = table_rows(tables[0], as_is), table_rows(tables[1], as_is)
    found = every_outcome(lambda chance: Game(target, draft, 1, submits).play(rule(chance), 2))
    assert sum(found.values()) == pytest.approx(1)
    assert error(found, joint(target, 2, 3)) > 0.01


def test_a_token_dropped_for_its_own_probability_biases_as_the_design_says() -> None:
    row = Distribution(np.array([0.7, 0.2, 0.1]), None)
    rule, submits = MUTANTS["dropped by its own probability"]
    found = every_outcome(lambda chance: Game(lambda _: row, lambda _: row, 1, submits).play(rule(chance), 1))
    assert [found[token,] for token in range(3)] == pytest.approx([0.91, 0.06, 0.03])


def test_drafting_may_stop_by_what_came_before_and_by_the_row_itself() -> None:
    tables = np.random.default_rng(5).dirichlet(np.ones(3), (2, 17))
    target, draft = table_rows(tables[0], as_is), table_rows(tables[1], as_is)

    class Stops(Game):
        def _proposals(self, rule: Rule, answer: Prefix) -> list[Proposal]:
            proposals: list[Proposal] = []
            while len(proposals) < 3 and self.draft(answer).probs.max() > 0.5:
                token = rule.propose(self.draft(answer), len(answer))
                proposals.append(Proposal(token, self.draft(answer)))
                answer = (*answer, token)
            return proposals

    found = every_outcome(lambda chance: Stops(target, draft, 3).play(Rejection(chance), 2))
    assert error(found, joint(target, 2, 3)) < EXACT


# By counting (row A02)


def skewed(seed: int) -> tuple[Rows, Rows]:
    """A target and a draft over V tokens, unlike each other, with impossible tokens in both."""
    tables = np.random.default_rng(seed).dirichlet(np.full(V, 0.8), (2, 23)) + 0.01
    tables[0, :, 6] = tables[1, :, 5] = 0
    tables /= tables.sum(axis=2, keepdims=True)
    return table_rows(tables[0], as_is), table_rows(tables[1], as_is)


def count(game: Game, rule: Callable[[int], Rule], rounds: int) -> tuple[Counter[Prefix], int]:
    """Answers of two tokens, and how often the first drafted token was kept."""
    counts: Counter[Prefix] = Counter()
    kept = 0
    for index in range(rounds):
        counts[game.play(rule(index), 2)] += 1
        kept += game.outcomes[0].accepted > 0
    return counts, kept


def p_value(counts: Counter[Prefix], wanted: dict[Prefix, float]) -> float:
    """Chi-square against the expected shares; 0 where something impossible was emitted; rare answers are pooled."""
    total = counts.total()
    if any(answer not in wanted for answer in counts):
        return 0.0
    common = [answer for answer, mass in wanted.items() if mass * total >= 5]
    observed = [counts[answer] for answer in common]
    expected = [wanted[answer] * total for answer in common]
    if (rest := total - sum(expected)) > 1e-6 * total:
        observed.append(total - sum(observed))
        expected.append(rest)
    return float(stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue)


def firsts(counts: Counter[Prefix]) -> Counter[Prefix]:
    found: Counter[Prefix] = Counter()
    for answer, times in counts.items():
        found[answer[:1]] += times
    return found


def looks_lossless(game: Game, rule: Callable[[int], Rule], rounds: int) -> bool:
    counts, _ = count(game, rule, rounds)
    first, both = (joint(game.target, length, V) for length in (1, 2))
    return p_value(firsts(counts), first) > LEAST and p_value(counts, both) > LEAST


def within_4_sigma(kept: int, share: float, rounds: int) -> bool:
    return abs(kept - share * rounds) <= 4 * math.sqrt(share * (1 - share) * rounds)


def test_rejection_passes_the_count_at_200_000_rounds() -> None:
    target, draft = skewed(1)
    rule = Rejection(Generator(20, 0))
    game = Game(target, draft, 1)
    counts, kept = count(game, lambda _: rule, ROUNDS)
    assert p_value(firsts(counts), joint(target, 1, V)) > LEAST
    assert p_value(counts, joint(target, 2, V)) > LEAST
    assert within_4_sigma(kept, float(np.minimum(target(()).probs, draft(()).probs).sum()), ROUNDS)


@pytest.mark.parametrize("drafted", [1, 3])
def test_coupled_passes_the_count(drafted: int) -> None:
    target, draft = skewed(2)
    assert looks_lossless(Game(target, draft, drafted), lambda seed: Coupled(Noise(seed)), SOME_ROUNDS)


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_rules_fail_the_count(name: str) -> None:
    target, draft = skewed(1)
    wrong, submits = MUTANTS[name]
    rule = wrong(Generator(20, 0))
    assert not looks_lossless(Game(target, draft, 1, submits), lambda _: rule, SOME_ROUNDS)


def test_a_lookup_draft_passes_the_count_under_both_rules() -> None:
    target, _ = skewed(3)

    class Lookup(Game):
        def _proposals(self, rule: Rule, answer: Prefix) -> list[Proposal]:
            return [Proposal((len(answer) * 3 + 1) % V, None)]

    rejection = Rejection(Generator(1, 1))
    for rule in (lambda _: rejection, lambda seed: Coupled(Noise(seed))):
        game = Lookup(target, target, 1)
        assert looks_lossless(game, rule, SOME_ROUNDS)
        _, kept = count(game, rule, SOME_ROUNDS)
        assert within_4_sigma(kept, target(()).prob(1), SOME_ROUNDS)


def test_padded_vocabularies_of_different_widths_pass_the_count() -> None:
    real, generator = V, np.random.default_rng(7)
    logits = generator.standard_normal((2, 23, real + 16)).astype(np.float32) * 2
    logits[:, :, real:] = 30
    sampling = Sampling(temperature=0.9, top_k=0, top_p=1.0, min_p=0.0)
    target = table_rows(logits[0, :, : real + 4], lambda row: distribution(row, real, sampling, [], []))
    draft = table_rows(logits[1], lambda row: distribution(row, real, sampling, [], []))
    rule = Rejection(Generator(8, 0))
    assert looks_lossless(Game(target, draft, 1), lambda _: rule, SOME_ROUNDS)
    assert looks_lossless(Game(target, draft, 1), lambda seed: Coupled(Noise(seed)), SOME_ROUNDS)


def test_a_draft_with_more_tokens_than_the_target_stays_lossless() -> None:
    generator = np.random.default_rng(9)
    ours, theirs = generator.dirichlet(np.ones(V - 2), 23), generator.dirichlet(np.ones(V), 23)
    for target, draft in ((ours, theirs), (theirs, ours)):
        rule = Rejection(Generator(9, 0))
        game = Game(table_rows(target, as_is), table_rows(draft, as_is), 2)
        assert looks_lossless(game, lambda _, rule=rule: rule, SOME_ROUNDS // 3)
        assert looks_lossless(game, lambda seed: Coupled(Noise(seed)), SOME_ROUNDS // 3)


# The coupled rule


def agreement(target: FloatArray, draft: FloatArray) -> float:
    """How often two races over the same noise have the same winner (DESIGN 3.3)."""
    shared = [x for x in range(target.size) if target[x] > 0 and draft[x] > 0]
    return sum(1 / sum(np.maximum(target / target[x], draft / draft[x])) for x in shared)


@pytest.mark.parametrize("form", [as_is, sparse])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coupled_keeps_as_often_as_the_formula_says(seed: int, form: Callable[[FloatArray], Distribution]) -> None:
    target, draft = (form(row) for row in np.random.default_rng(seed).dirichlet(np.ones(V), 2))
    noise = Noise(seed)
    rounds = 6000
    kept = sum(noise.race(draft, position) == noise.race(target, position) for position in range(rounds))
    share = agreement(dense(target, V), dense(draft, V))
    assert within_4_sigma(kept, share, rounds)
    assert share <= np.minimum(dense(target, V), dense(draft, V)).sum() + EXACT


@pytest.mark.parametrize("form", [as_is, sparse])
def test_the_same_seed_gives_the_same_answer_whatever_is_drafted(form: Callable[[FloatArray], Distribution]) -> None:
    tables = np.random.default_rng(4).dirichlet(np.ones(V), (3, 23))
    target, near, far = (table_rows(table, form) for table in (tables[0], tables[:2].mean(axis=0), tables[2]))
    answers = {seed: Game(target, target, 0, start=17).play(Coupled(Noise(seed)), 40) for seed in range(20)}
    assert len(set(answers.values())) == len(answers)
    for seed, plain in answers.items():
        for draft in (target, near, far):
            for drafted in (1, 3, 8):
                assert Game(target, draft, drafted, start=17).play(Coupled(Noise(seed)), 40) == plain


def test_the_place_in_the_conversation_chooses_the_noise() -> None:
    target, draft = skewed(5)
    game = Game(target, draft, 2)
    answers = set()
    for start in range(20):
        game.start = start
        answers.add(game.play(Coupled(Noise(0)), 12))
    assert len(answers) == 20


def test_a_position_that_is_decided_is_no_longer_held() -> None:
    noise, row = Noise(0), Distribution(np.full(50, 0.02), None)
    rule = Coupled(noise)
    rule.propose(row, 4)
    held = noise.dense(4, 50)
    rule.judge(0, row, row, 4)
    assert not np.shares_memory(noise.dense(4, 50), held)


# Greedy (row A01, tier 1)


def greedy_rows(table: FloatArray) -> Rows:
    return table_rows(table, lambda row: distribution(row, row.size, Sampling(temperature=0), [], []))


def test_greedy_is_token_exact_for_both_rules_over_random_tables() -> None:
    generator = np.random.default_rng(6)
    for index in range(1000):
        tables = generator.integers(0, 6, (2, 11, 5)).astype(np.float32)
        target, draft = (greedy_rows(table) for table in tables)
        rule: Rule = Rejection(Generator(index, 0)) if index % 2 else Coupled(Noise(index))
        plain: Prefix = ()
        while len(plain) < 12:
            plain = (*plain, target(plain).top)
        assert Game(target, draft, index % 8 + 1).play(rule, 12) == plain


@pytest.mark.parametrize("rule", [Rejection(Generator(0, 0)), Coupled(Noise(0))])
def test_greedy_never_keeps_what_the_target_ranks_second(rule: Rule) -> None:
    greedy = Sampling(temperature=0)
    target = distribution(np.log([0.3, 0.5, 0.2]).astype(np.float32), 3, greedy, [], [])
    draft = distribution(np.log([0.9, 0.05, 0.05]).astype(np.float32), 3, greedy, [], [])
    for position in range(50):
        assert rule.propose(draft, position) == 0
        assert rule.judge(0, target, draft, position) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_equal_to_the_target_is_kept_whole(temperature: float) -> None:
    table = np.random.default_rng(8).standard_normal((23, V)).astype(np.float32)
    rows = table_rows(table, lambda row: distribution(row, V, Sampling(temperature=temperature), [], []))
    for rule in (Rejection(Generator(0, 0)), Coupled(Noise(0))):
        game = Game(rows, rows, 4)
        game.play(rule, 500)
        assert [outcome.accepted for outcome in game.outcomes] == [4] * 100


# What is asked for, and in which order


class Spy:
    """A rule that keeps a given number of tokens and notes what it was asked."""

    def __init__(self, keeps: int) -> None:
        self.keeps = keeps
        self.asked: list[tuple[str, int]] = []

    def propose(self, draft: Distribution, position: int) -> int:
        raise NotImplementedError

    def choose(self, target: Distribution, position: int) -> int:
        self.asked.append(("choose", position))
        return target.top

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        self.asked.append(("judge", position))
        return token if sum(what == "judge" for what, _ in self.asked) <= self.keeps else target.top


@pytest.mark.parametrize("drafted", [0, 1, 4])
def test_rows_are_asked_for_in_order_up_to_the_first_refusal(drafted: int) -> None:
    for keeps in range(drafted + 1):
        rows: list[int] = []

        def target(index: int, rows: list[int] = rows) -> Distribution:
            rows.append(index)
            return one_hot(100 + index)

        spy = Spy(keeps)
        outcome = verify(spy, target, [Proposal(i, None) for i in range(drafted)], 30)
        assert outcome == Outcome(keeps, 100 + keeps)
        assert rows == list(range(keeps + 1))
        last = "judge" if keeps < drafted else "choose"
        assert spy.asked == [*(("judge", 30 + i) for i in range(keeps)), (last, 30 + keeps)]


def test_the_draft_row_in_the_ratio_is_the_one_that_was_drawn_from() -> None:
    sampling = Sampling(temperature=0.7, top_k=3, top_p=0.9)
    table = np.random.default_rng(2).standard_normal((2, 23, V)).astype(np.float32) * 2
    target, draft = (table_rows(rows, lambda row: distribution(row, V, sampling, [], [])) for rows in table)
    drawn: list[Distribution] = []
    kept: list[float] = []

    class Noting(Generator):
        def keep(self, probability: float) -> bool:
            kept.append(probability)
            return super().keep(probability)

        def draw(self, distribution: Distribution) -> int:
            drawn.append(distribution)
            return super().draw(distribution)

    class Checked(Rejection):
        def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
            assert draft is not None
            assert any(draft is row for row in drawn)
            assert draft.probs.sum() == pytest.approx(1)
            assert draft.prob(token) > 0
            before = len(kept)
            emitted_token = super().judge(token, target, draft, position)
            assert kept[before:] == [pytest.approx(min(1, target.prob(token) / draft.prob(token)))]
            return emitted_token

    Game(target, draft, 3).play(Checked(Noting(3, 0)), 200)
    assert len(kept) > 50


# Randomness


def tokens(chance: Randomness) -> Sequence[int]:
    row = Distribution(np.full(1000, 0.001), None)
    return [chance.draw(row) for _ in range(20)]


def test_a_seed_and_a_stream_fix_the_draws_and_nothing_else_touches_them() -> None:
    first = tokens(Generator(1, 0))
    np.random.seed(0)
    assert tokens(Generator(1, 0)) == first
    assert tokens(Generator(1, 1)) != first
    assert tokens(Generator(2, 0)) != first
    assert tokens(Generator(2**63 - 1, 0)) != first


def test_keep_is_certain_at_1_and_impossible_at_0_and_fair_between() -> None:
    chance = Generator(5, 0)
    assert all(chance.keep(1.0) for _ in range(1000))
    assert not any(chance.keep(0.0) for _ in range(1000))
    assert within_4_sigma(sum(chance.keep(0.3) for _ in range(SOME_ROUNDS)), 0.3, SOME_ROUNDS)


def test_the_walk_over_all_chance_is_itself_complete() -> None:
    def three(chance: Randomness) -> Prefix:
        return chance.draw(Distribution(np.array([0.2, 0.3, 0.5]), None)), int(chance.keep(0.25))

    found = every_outcome(three)
    assert found[2, 1] == pytest.approx(0.125)
    assert (len(found), sum(found.values())) == (6, pytest.approx(1))
    assert Path([]).keep(1.0)
