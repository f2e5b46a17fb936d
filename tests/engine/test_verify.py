"""Both rules without a model: over all chance, at their edges, greedy, and against rules known to be wrong."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given

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
from tests.engine.rounds import Game, Path, Prefix, Rows, error, every_outcome, joint, table_rows
from tests.engine.rows import logit_rows, samplings, steady

EXACT = 1e-12
V = 8


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


def as_is(probs: FloatArray) -> Distribution:
    return Distribution(probs, None)


def sparse(probs: FloatArray) -> Distribution:
    ids = np.flatnonzero(probs > 0.15)
    return Distribution(probs[ids] / probs[ids].sum(), ids)


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


# The coupled rule


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
    target, draft = (table_rows(rows, as_is) for rows in np.random.default_rng(5).dirichlet(np.ones(V), (2, 23)))
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
    assert sum(chance.keep(0.3) for _ in range(10_000)) == pytest.approx(3000, abs=4 * math.sqrt(10_000 * 0.3 * 0.7))


def test_the_walk_over_all_chance_is_itself_complete() -> None:
    def three(chance: Randomness) -> Prefix:
        return chance.draw(Distribution(np.array([0.2, 0.3, 0.5]), None)), int(chance.keep(0.25))

    found = every_outcome(three)
    assert found[2, 1] == pytest.approx(0.125)
    assert (len(found), sum(found.values())) == (6, pytest.approx(1))
    assert Path([]).keep(1.0)
