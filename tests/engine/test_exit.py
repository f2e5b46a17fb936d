"""Early exit: what the first layers are asked, what the whole target takes up, and what stays when something fails."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import EarlyLM, ToyLM
from engine.config import Sampling, Speculation
from engine.context import Context
from engine.costs import Costs, DraftCost
from engine.drafters import Offer
from engine.drafters.exit import ExitDrafter
from engine.early import leaves_early
from engine.engine import Engine
from engine.errors import DecodeFailed, Interrupted
from engine.events import Round, Tokens
from engine.model import FloatArray
from engine.sampler import Sampler
from engine.verify import Generator, Rejection
from tests.fakes import FakeClock, FaultyModel, engine_of, fixed, fresh, last, request

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LONG = [i % 16 for i in range(150)]


def leaving(target: object, layers: int = 6, **options: object) -> Engine:
    """An engine whose target drafts for itself with the first of its 8 layers, and by lookup."""
    return engine_of(target, exit_layers=layers, **options)


def held(engine: Engine) -> None:
    """The invariant: the cache holds a prefix of the committed ids, never more."""
    model = engine.context.target.model
    inner = model.inner if isinstance(model, FaultyModel) else model
    assert inner._cells == engine.context.ids[: inner.length]  # type: ignore[attr-defined]


class Asked(EarlyLM):
    """Notes after which ids it was asked for early rows."""

    def __init__(self, size: int = 16, n_ctx: int = 4096) -> None:
        super().__init__(size, n_ctx)
        self.asked: list[list[int]] = []

    def early_row(self, ids: Sequence[int], layers: int) -> FloatArray:
        self.asked.append(list(ids))
        return super().early_row(ids, layers)


# What is asked, and what is taken up


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 6), layers=st.integers(1, 7), greedy=st.booleans(), seed=st.integers(0, 99))
def test_each_draft_follows_the_ids_and_the_drafts_before_it(length: int, layers: int, greedy: bool, seed: int) -> None:
    target = Asked()
    engine = leaving(target, layers)
    before, rounds, left = list(PROMPT), 0, 0
    sampling = Sampling(temperature=0) if greedy else Sampling(temperature=1, seed=seed)
    for event in engine.answer_ids(PROMPT, request(sampling, fixed(length), max_tokens=40)):
        if isinstance(event, Round):
            asked, target.asked = target.asked, []
            assert [len(ids) for ids in asked] == list(range(len(before), len(before) + event.drafted))
            for ids, longer in pairwise([before, *asked]):
                assert longer[: len(ids)] == ids
            before, rounds, left = list(engine.context.ids), rounds + 1, left + len(asked)
    assert rounds > 1
    assert target.taken == left  # the verifying passes ran none of it again


def test_the_first_layers_read_the_last_id_and_each_draft_but_the_last() -> None:
    target = FaultyModel(EarlyLM(16))
    engine = leaving(target)
    for event in engine.answer_ids(PROMPT, request(None, fixed(3), max_tokens=20)):
        if not isinstance(event, Round):
            continue
        if event.drafted == 3:
            *_, first, second, third, verifying = target.calls
            assert [call[0] for call in (first, second, third, verifying)] == ["leave"] * 3 + ["forward"]
            left = [token for call in (first, second, third) for token in call[1]]  # type: ignore[attr-defined]
            assert left == verifying[1][:3]  # type: ignore[index]
            assert len(verifying[1]) == 4  # type: ignore[arg-type]
            break
        target.calls.clear()
    else:
        raise AssertionError("nothing was drafted")


def test_nothing_is_read_twice() -> None:
    target = FaultyModel(EarlyLM(16))
    engine = leaving(target)
    fed: list[int] = []
    prompt = LONG
    for turn in range(3):
        target.calls.clear()
        answer = last(engine.answer_ids(prompt, request(None, fixed(3), max_tokens=30)))
        passes = [len(call[1]) for call in target.calls if call[0] == "forward"]  # type: ignore[arg-type]
        left = sum(len(call[1]) for call in target.calls if call[0] == "leave")  # type: ignore[arg-type]
        spec = answer.speculation
        assert answer.cache.target.reused == (0 if turn == 0 else len(prompt) - 3 - 1)
        assert answer.cache.target.read == len(prompt) - answer.cache.target.reused
        assert answer.cache.draft is None
        # reading, and in each round the last id with its drafts
        assert sum(passes) == len(prompt) - 1 - answer.cache.target.reused + spec.rounds + spec.drafted
        assert left == spec.drafted == spec.by_source["exit"].drafted
        fed += answer.ids
        prompt = [*prompt, *answer.ids, 7, turn, 7]


def test_kept_drafts_are_said_to_be_of_this_origin() -> None:
    engine = leaving(EarlyLM(16), 7)
    origins: list[str] = []
    answer = None
    for event in engine.answer_ids(PROMPT, request(None, fixed(4), max_tokens=40)):
        if isinstance(event, Tokens):
            origins += event.origins
        elif isinstance(event, Round):
            assert event.source in ("exit", None)
        else:
            answer = getattr(event, "answer", None)
    assert answer is not None
    kept = answer.speculation.by_source["exit"].accepted
    assert 0 < kept < answer.speculation.drafted
    assert origins.count("exit") == kept


def test_more_layers_are_right_more_often() -> None:
    def kept(layers: int) -> float:
        rate = last(leaving(EarlyLM(16), layers).answer_ids(PROMPT, request(None, fixed(2), max_tokens=200)))
        return rate.speculation.acceptance_per_test or 0.0

    assert kept(2) < kept(5) < kept(7)


# The text


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 8),
    layers=st.integers(1, 7),
    prompt=st.lists(st.integers(0, 11), min_size=1, max_size=30),
    greedy=st.booleans(),
    draft=st.booleans(),
    kind=st.sampled_from(["dense", "sliding"]),
)
def test_leaving_early_never_changes_greedy_or_coupled_text(
    seed: int, length: int, layers: int, prompt: list[int], greedy: bool, draft: bool, kind: str
) -> None:
    sampling = Sampling(temperature=0) if greedy else Sampling(temperature=1, seed=seed)

    def make() -> EarlyLM:
        return EarlyLM(12, kind=kind, seed=seed)  # type: ignore[arg-type]

    want = fresh(prompt, request(sampling), make)
    for speculation in (fixed(length), Speculation()):
        other = ToyLM(12, seed=seed, blur=0.4) if draft else None
        engine = engine_of(make(), other, exit_layers=layers)
        assert last(engine.answer_ids(prompt, request(sampling, speculation))).ids == want
        held(engine)


@pytest.mark.parametrize("length", [1, 2, 5, 15, 40])
def test_the_last_cells_of_the_context_are_used_and_no_more(length: int) -> None:
    target = EarlyLM(12, n_ctx=24)
    target.n_batch = 8
    engine = leaving(target)
    result = last(engine.answer_ids(PROMPT, request(None, fixed(length), max_tokens=50)))
    assert (len(result.ids), result.finish_reason) == (16, "context_full")
    assert result.ids == fresh(PROMPT, request(max_tokens=16), lambda: EarlyLM(12))
    assert result.speculation.drafted > 0


def test_a_cache_that_can_go_back_a_little_bounds_the_drafts() -> None:
    target = EarlyLM(12, kind="recurrent")
    target.snapshots = 2
    answer = last(leaving(target).answer_ids(PROMPT, request(None, fixed(6), max_tokens=30)))
    assert len(answer.speculation.by_position) == 2
    assert answer.ids == fresh(PROMPT, request(max_tokens=30), lambda: EarlyLM(12))


# The drafter alone


def drafter(target: EarlyLM, ids: Sequence[int], stopped: bool = False) -> ExitDrafter:
    """After the ids, of which all but the last are read."""
    context = Context(target, exit_layers=4)
    context.begin(ids)
    for _ in context.read(context.target):
        pass
    sampler = Sampler(Sampling(temperature=0), target.vocab.size, target.vocab.eog, len(ids))
    return ExitDrafter(context, Rejection(Generator(0, 0)), sampler, lambda: stopped)


@given(
    n_ctx=st.integers(9, 40), n_batch=st.integers(2, 12), reach=st.none() | st.integers(1, 9), limit=st.integers(0, 64)
)
def test_an_offer_fits_the_verifying_pass(n_ctx: int, n_batch: int, reach: int | None, limit: int) -> None:
    target = EarlyLM(12, n_ctx=n_ctx, kind="dense" if reach is None else "recurrent")
    target.n_batch, target.snapshots = n_batch, reach or 0
    most = min(limit, n_ctx - len(PROMPT), n_batch - 1, limit if reach is None else reach)
    assert drafter(target, PROMPT).offer(PROMPT, limit) == (Offer("exit", most) if most else None)


def test_nothing_is_proposed_after_an_end() -> None:
    target = EarlyLM(12, eog=range(12))
    assert len(drafter(target, PROMPT).propose(5)) == 1


def test_a_target_that_is_not_left_early_is_our_own_mistake() -> None:
    assert not leaves_early(ToyLM(12))
    with pytest.raises(ValueError, match="not left early"):
        Context(ToyLM(12), exit_layers=4).leave([])
    with pytest.raises(ValueError, match="not left early"):
        ExitDrafter(Context(EarlyLM(12)), Rejection(Generator(0, 0)), Sampler(Sampling(), 12, frozenset(), 0), bool)


def test_a_stopped_answer_proposes_nothing() -> None:
    with pytest.raises(Interrupted):
        drafter(EarlyLM(12), PROMPT, stopped=True).propose(3)


def test_a_run_that_was_never_verified_is_forgotten_by_the_next() -> None:
    target = Asked(12)
    proposing = drafter(target, PROMPT)
    first = [proposal.token for proposal in proposing.propose(4)]
    asked, target.asked = target.asked, []
    assert [proposal.token for proposal in proposing.propose(4)] == first
    assert target.asked == asked
    assert target.length == len(PROMPT) - 1


def test_what_others_drafted_before_it_leaves_as_well() -> None:
    """A copied draft may come first, or between two of its own."""
    target = EarlyLM(12)
    proposing, ids = drafter(target, PROMPT), list(PROMPT)
    for ahead in ([3, 4], [3, 4, 5], [3, 4, 5, 6, 7, 8], [3], [3, 9], [3, 9], []):
        np.testing.assert_array_equal(proposing.row(ahead), target.early_row([*ids, *ahead], 4))
        assert target.length == len(PROMPT) - 1


# What fails

FAULTS = [DecodeFailed, RuntimeError, Interrupted, MemoryError]


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("broken", [False, True])
def test_a_pass_that_fails_anywhere_never_poisons_what_follows(
    error: type[BaseException], after: bool, broken: bool
) -> None:
    """Whichever pass it is, an early or a whole one; `broken`: the cache cannot even forget what is ahead."""
    if error is Interrupted and (after or broken):
        return  # the protocol promises the old length there
    asked = request(None, fixed(3), max_tokens=9)
    for at in range(14):
        faulty = FaultyModel(EarlyLM(16, seed=9), after=after, error=lambda: error("broken"))
        engine = leaving(faulty)
        faulty.at = at
        steps = engine.answer_ids(LONG, asked)
        with suppress(error):
            for _ in steps:
                if broken and faulty.forwards == at:
                    faulty.breaks = "rewind"
        faulty.at = faulty.breaks = None
        engine.context.settle()
        held(engine)
        for follow in ([*engine.context.ids, 1], [*LONG[:40], 2, 2], LONG):
            assert last(engine.answer_ids(follow, asked)).ids == fresh(follow, asked, lambda: EarlyLM(16, seed=9))
            held(engine)


@pytest.mark.parametrize("error", FAULTS)
def test_a_cache_that_cannot_forget_what_is_ahead_counts_as_empty(error: type[BaseException]) -> None:
    target = FaultyModel(EarlyLM(16), error=lambda: error("broken"))
    context = Context(target, exit_layers=4)  # type: ignore[arg-type]
    context.begin(PROMPT)
    for _ in context.read(context.target):
        pass
    target.breaks = "rewind"
    with pytest.raises(error):
        context.leave([])
    assert (context.target.length, target.length) == (0, len(PROMPT) - 1)
    row = context.advance(context.target, [], 1)[0]
    np.testing.assert_array_equal(row, EarlyLM(16).row(PROMPT))


@pytest.mark.parametrize("at", range(3, 12))
@pytest.mark.parametrize("broken", [False, True])
def test_where_leaving_fails_the_whole_target_goes_on_alone(at: int, broken: bool) -> None:
    """The text is the target's; what the cache held is not read again unless it was lost."""
    target = FailsEarly(at, broken)
    engine = leaving(target, 7)
    answer = last(engine.answer_ids(LONG, request(None, fixed(3), max_tokens=24)))
    assert answer.ids == fresh(LONG, request(), lambda: EarlyLM(16))
    assert [note for note in answer.notes if note.startswith("early exit failed and was left out")]
    assert target.lost == 0 or broken
    held(engine)


class FailsEarly(EarlyLM):
    """Its early pass number `at` fails, and all after it; where `broken` the next rewind fails as well."""

    def __init__(self, at: int, broken: bool) -> None:
        super().__init__(16)
        self.at, self.broken, self.count, self.lost = at, broken, 0, 0

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        self.count += 1
        if self.count > self.at:
            super().leave(tokens, rows, layers)
            raise DecodeFailed("out of memory: take a smaller --ctx")
        return super().leave(tokens, rows, layers)

    def rewind(self, length: int) -> None:
        if self.count > self.at and self.broken:
            self.broken = False
            raise DecodeFailed("out of memory")
        self.lost += length == 0 and self.length > 0
        super().rewind(length)


@pytest.mark.parametrize("number", range(12))
def test_a_cancel_between_two_early_passes_keeps_what_was_said(number: int) -> None:
    target = EarlyLM(16, seed=3)
    engine = leaving(target)
    passes = 0

    def stop(tokens: Sequence[int]) -> None:
        nonlocal passes
        passes += 1
        if passes == number + 2:
            engine.cancel()

    target.on_pass = stop
    asked = request(None, fixed(3), max_tokens=50)
    answer = last(engine.answer_ids(PROMPT, asked))
    target.on_pass = None
    assert answer.finish_reason == "cancelled"
    assert engine.context.ids == PROMPT + answer.ids
    held(engine)
    for follow in ([*engine.context.ids, 2], PROMPT):
        assert last(engine.answer_ids(follow, asked)).ids == fresh(follow, asked, lambda: EarlyLM(16, seed=3))


# What it costs


def test_auto_leaves_early_where_that_pays_and_not_where_it_does_not() -> None:
    """The clock charges early passes by the layers that ran, and whole ones for what was not taken up."""

    def drafted(early_ms: float) -> int:
        target = Timed(early_ms)
        engine = leaving(target, 7)
        engine._clock = target.clock
        answer = last(engine.answer_ids(PROMPT, request(None, Speculation(), max_tokens=300)))
        assert answer.ids == fresh(PROMPT, request(max_tokens=300), lambda: EarlyLM(16))
        return answer.speculation.by_source["exit"].drafted if "exit" in answer.speculation.by_source else 0

    assert drafted(0.05) > 100
    assert drafted(5.0) < 40


class Timed(EarlyLM):
    """One millisecond a whole pass, however wide, and so many for an early one."""

    def __init__(self, early_ms: float) -> None:
        super().__init__(16)
        self.clock, self.early_ms = FakeClock(), early_ms

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        self.clock.now += self.early_ms / 1000
        return super().leave(tokens, rows, layers)

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        self.clock.now += 0.001
        return super().forward(tokens, rows)


def test_what_was_measured_of_an_exit_reaches_the_planner() -> None:
    costs = Costs(lambda width, _: 10.0 * width, {"exit": DraftCost(5.0, 1.0)})
    engine = leaving(EarlyLM(16), exit_agreement=0.05, costs=costs)
    engine._clock = FakeClock()
    answer = last(engine.answer_ids(PROMPT, request(None, Speculation(), max_tokens=24)))
    assert "early exit: too slow to pay here, has 0.05" in answer.speculation.plan


def test_an_early_row_is_no_row_of_the_target() -> None:
    """Or the tests above would show nothing."""
    model = EarlyLM(16)
    assert np.abs(model.early_row(PROMPT, 4) - model.row(PROMPT)).max() > 0.5
