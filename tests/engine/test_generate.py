"""The loop on toys: whatever is drafted, refused, cut, cancelled or broken, the text is the target's own."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ScriptLM, ToyLM, ToyModel, ToyVocabulary
from engine.config import Request, Sampling, Speculation
from engine.drafters import Offer
from engine.engine import Engine
from engine.errors import DecodeFailed, Interrupted
from engine.events import Round
from engine.planner import Drafting, Planner
from engine.reasons import Reason
from engine.verify import Generator
from tests.fakes import FaultyModel, engine_of, fixed, fresh, last, request, script_pair

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LETTERS = ToyVocabulary.letters(24, eog=[23])


def held(engine: Engine) -> None:
    """The invariant: each cache holds a prefix of the committed ids, never more."""
    for cache in engine.context.caches:
        inner = cache.model.inner if isinstance(cache.model, FaultyModel) else cache.model
        assert isinstance(inner, ToyModel)
        assert inner._cells == engine.context.ids[: inner.length]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 8),
    blur=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    prompt=st.lists(st.integers(0, 11), min_size=1, max_size=30),
    greedy=st.booleans(),
)
def test_drafting_never_changes_greedy_or_coupled_text(
    seed: int, length: int, blur: float, prompt: list[int], greedy: bool
) -> None:
    sampling = Sampling(temperature=0) if greedy else Sampling(temperature=1, seed=seed)
    off = request(sampling)
    want = fresh(prompt, off, lambda: ToyLM(12, seed=seed))
    for draft in (None, ToyLM(12, seed=seed, blur=blur)):
        engine = engine_of(ToyLM(12, seed=seed), draft)
        assert last(engine.answer_ids(prompt, request(sampling, fixed(length)))).ids == want
        held(engine)
    auto = engine_of(ToyLM(12, seed=seed), ToyLM(12, seed=seed, blur=blur))
    assert last(auto.answer_ids(prompt, request(sampling, Speculation()))).ids == want


class CopyThenSample(Drafting):
    """Copies so many tokens, and samples behind them."""

    copies = 0

    def next(self, offers: Sequence[Offer]) -> Offer | None:
        source = "model" if self.pieces else "lookup"
        offer = next((one for one in offers if one.source == source and source not in self._declined), None)
        return offer and replace(offer, length=min(offer.length, self.copies if offer.tokens else 1))


@pytest.mark.parametrize("copies", [3, 14, 15, 16, 50, *range(58, 63)])
@pytest.mark.parametrize("n_batch", [16, 64])
def test_a_draft_model_takes_what_was_copied_in_one_pass_or_is_not_asked(
    copies: int, n_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = count()

    def begin(planner: Planner, room: int, context: int) -> Drafting:
        drafting = CopyThenSample(planner.speculation, Reason(""), room if next(begun) % 7 == 6 else 0)
        drafting.copies = copies
        return drafting

    monkeypatch.setattr(Planner, "begin", begin)
    target, draft = (ScriptLM(LETTERS, lambda ids: ids[-9], n_batch=size) for size in (64, n_batch))
    engine = engine_of(target, draft)
    answer = last(engine.answer_ids([*range(9)] * 3, request(max_tokens=300)))
    assert answer.ids == [token % 9 for token in range(300)]
    assert answer.speculation.by_source["lookup"].drafted
    assert ("model" in answer.speculation.by_source) == (copies < n_batch)


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=1, top_p=1, min_p=0)])
def test_a_draft_equal_to_the_target_is_always_kept(length: int, sampling: Sampling) -> None:
    engine = engine_of(ToyLM(), ToyLM())
    answer = last(
        engine.answer_ids(PROMPT, request(sampling, fixed(length), max_tokens=60 // (length + 1) * (length + 1)))
    )
    assert answer.speculation.acceptance_rate == 1.0
    assert answer.speculation.mean_tokens_per_round == length + 1


def test_self_draft_stays_at_full_acceptance_for_500_tokens() -> None:
    answer = last(engine_of(ToyLM(), ToyLM()).answer_ids(PROMPT, request(None, fixed(4), max_tokens=500)))
    assert answer.speculation.acceptance_rate == 1.0


@pytest.mark.parametrize("length", range(1, 7))
def test_caches_are_trimmed_by_what_was_refused_and_no_more(length: int) -> None:
    for kept in range(length + 1):
        answer = list(range(20))
        pair = script_pair(answer, lambda i, n=kept, k=length: i % (n + 1) < n or n == k, LETTERS, len(PROMPT))
        target, draft = FaultyModel(pair[0]), FaultyModel(pair[1])
        engine = engine_of(target, draft)
        rounds = 0
        with closing(engine.answer_ids(PROMPT, request(None, fixed(length), max_tokens=20))) as events:
            for event in events:
                if not isinstance(event, Round) or event.drafted < length:
                    continue
                rounds += 1
                assert event.accepted == kept
                assert target.length == len(engine.context.ids) - 1
                behind = len(engine.context.ids) - draft.length
                # all kept: the last draft was never fed and comes with the next round's first pass
                assert behind == (2 if kept == length else 1)
                held(engine)
                if rounds == 3:
                    break
        assert rounds == 3 or kept == length


def test_rewinds_happen_only_after_refusals() -> None:
    pair = script_pair(list(range(16)), lambda _: True, LETTERS, len(PROMPT))
    target, draft = FaultyModel(pair[0]), FaultyModel(pair[1])
    last(engine_of(target, draft).answer_ids(PROMPT, request(None, fixed(3), max_tokens=16)))
    assert [call for call in target.calls + draft.calls if call[0] == "rewind" and call[1]] == []


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("at", range(6))
def test_an_end_inside_a_block_ends_the_answer_there(length: int, at: int) -> None:
    answer = [0, 1, 2, 3, 4, 5][:at]
    target, draft = script_pair(answer, lambda _: True, LETTERS, len(PROMPT))
    engine = engine_of(target, draft)
    result = last(engine.answer_ids(PROMPT, request(None, fixed(length))))
    assert (result.ids, result.finish_reason, result.stop_kind) == (answer, "stop", "eos")
    assert engine.context.ids == PROMPT + answer
    assert target.length == len(engine.context.ids)
    held(engine)


def test_a_draft_that_wants_to_end_is_refused_where_the_target_goes_on() -> None:
    target, draft = script_pair(list(range(10)), lambda i: i != 4, LETTERS, len(PROMPT))
    draft.script = lambda ids: 23 if len(ids) - len(PROMPT) == 4 else target.script(ids)
    assert last(engine_of(target, draft).answer_ids(PROMPT, request(None, fixed(3)))).ids == list(range(10))


@pytest.mark.parametrize("max_tokens", [0, 1, 3, 4, 5])
@pytest.mark.parametrize("length", [0, 3])
def test_max_tokens_is_kept_to_the_token(max_tokens: int, length: int) -> None:
    target, draft = script_pair(list(range(20)), lambda _: True, LETTERS, len(PROMPT))
    result = last(engine_of(target, draft).answer_ids(PROMPT, request(None, fixed(length), max_tokens=max_tokens)))
    assert (result.ids, result.finish_reason) == (list(range(max_tokens)), "length")


@pytest.mark.parametrize("length", [0, 2, 5])
def test_the_last_cells_of_the_context_are_used_and_no_more(length: int) -> None:
    target, draft = script_pair(list(range(20)), lambda _: True, LETTERS, len(PROMPT))
    target.n_ctx = draft.n_ctx = 16
    result = last(engine_of(target, draft).answer_ids(PROMPT, request(None, fixed(length))))
    assert (result.ids, result.finish_reason) == (list(range(8)), "context_full")


def schedule(seed: int) -> tuple[ToyLM, ToyLM]:
    return ToyLM(16, seed=seed), ToyLM(16, seed=seed, blur=0.4)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_closing_at_any_yield_leaves_a_context_that_goes_on_as_fresh(length: int) -> None:
    asked = request(None, fixed(length), max_tokens=10)
    total = len(list(engine_of(*schedule(5)).answer_ids(PROMPT, asked)))
    for cut in range(total):
        engine = engine_of(*schedule(5))
        with closing(engine.answer_ids(PROMPT, asked)) as events:
            for _ in range(cut + 1):
                next(events)
        held(engine)
        follow = [*engine.context.ids, 7, 7]
        assert last(engine.answer_ids(follow, asked)).ids == fresh(follow, asked, lambda: schedule(5)[0])


FAULTS = [DecodeFailed, RuntimeError, Interrupted, MemoryError]


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("side", ["target", "draft"])
@pytest.mark.parametrize("after", [False, True])
def test_a_pass_that_fails_anywhere_never_poisons_what_follows(
    error: type[BaseException], side: str, after: bool
) -> None:
    if error is Interrupted and after:
        return  # the protocol promises the old length there
    asked = request(None, fixed(2), max_tokens=9)
    prompt = [i % 16 for i in range(150)]
    for at in range(14):
        target, draft = schedule(9)
        faulty = FaultyModel(target if side == "target" else draft, after=after, error=lambda: error("broken"))
        engine = engine_of(*((faulty, draft) if side == "target" else (target, faulty)))
        faulty.at = at
        with suppress(error):
            assert last(engine.answer_ids(prompt, asked)).finish_reason in ("length", "cancelled")
        faulty.at = None
        held(engine)
        for follow in ([*engine.context.ids, 1], [*prompt[:40], 2, 2], prompt):
            assert last(engine.answer_ids(follow, asked)).ids == fresh(follow, asked, lambda: schedule(9)[0])
            held(engine)


@pytest.mark.parametrize("at", [3, 4, 5, 6])
def test_a_draft_that_failed_reads_nothing_more_of_this_answer(at: int) -> None:
    """Its cache is empty then: the whole conversation would be read for nothing."""
    draft = FaultyModel(ToyLM(24, blur=0.2), error=lambda: DecodeFailed("broken"))
    engine = engine_of(ToyLM(24), draft)
    draft.at = at
    answer = last(engine.answer_ids([i % 16 for i in range(150)], request(None, fixed(4))))
    assert any("broken" in note for note in answer.notes)
    assert draft.forwards == at + 1


def test_cancel_from_a_round_ends_as_cancelled_and_keeps_what_was_said() -> None:
    engine = engine_of(*schedule(3))
    events = engine.answer_ids(PROMPT, request(None, fixed(2), max_tokens=50))
    seen = []
    for event in events:
        seen.append(event)
        if isinstance(event, Round) and event.context > len(PROMPT) + 6:
            engine.cancel()
    answer = seen[-1].answer
    assert answer.finish_reason == "cancelled"
    assert 6 < len(answer.ids) < 50
    assert engine.context.ids == PROMPT + answer.ids
    held(engine)
    follow = [*engine.context.ids, 2]
    asked = request(None, fixed(2))
    assert last(engine.answer_ids(follow, asked)).ids == fresh(follow, asked, lambda: schedule(3)[0])


def test_conversations_that_change_are_answered_as_fresh() -> None:
    asked = request(Sampling(temperature=1, seed=4), fixed(3), max_tokens=8)
    engine = engine_of(*schedule(1))
    first = last(engine.answer_ids(PROMPT, asked)).ids
    longer = [*PROMPT, *first, 2, 3]
    other = [5, 5, 5]
    edited = [*PROMPT[:3], 9, 9]
    for prompt in (longer, longer, other, longer, edited, PROMPT, [*PROMPT, *first], other):
        assert last(engine.answer_ids(prompt, asked)).ids == fresh(prompt, asked, lambda: schedule(1)[0])
        held(engine)


@pytest.mark.parametrize("kind", ["sliding", "recurrent"])
def test_caches_that_cannot_go_back_still_answer_as_fresh(kind: str) -> None:
    asked = request(None, fixed(3), max_tokens=8)

    def make() -> ToyLM:
        return ToyLM(16, kind=kind, seed=2)  # type: ignore[arg-type]

    engine = engine_of(make(), ToyLM(16, seed=2, blur=0.3))
    first = last(engine.answer_ids(PROMPT, asked))
    assert first.ids == fresh(PROMPT, asked, make)
    for prompt in ([*PROMPT, *first.ids, 1], [*PROMPT[:4], 2], PROMPT):
        assert last(engine.answer_ids(prompt, asked)).ids == fresh(prompt, asked, make)
    if kind == "recurrent":
        assert first.speculation.drafted == 0
        assert any("speculation is off" in note for note in first.notes)


def test_a_draft_that_cannot_go_back_drafts_one_token_at_a_time_and_loses_nothing() -> None:
    draft = ToyLM(16, kind="recurrent", blur=0.3)
    engine = engine_of(ToyLM(16), draft)
    assert any("one token at a time" in note for note in engine.loaded.notes)
    passes: list[int] = []
    draft.on_pass = lambda tokens: passes.append(len(tokens))
    answer = last(engine.answer_ids(PROMPT, request(None, fixed(4), max_tokens=40)))
    assert answer.ids == fresh(PROMPT, request(max_tokens=40), lambda: ToyLM(16))
    assert 0 < answer.speculation.accepted < answer.speculation.drafted <= answer.speculation.rounds
    assert sum(passes) <= len(engine.context.ids)


class Switching:
    """Changes the speculation setting at each round."""

    def __init__(self, engine: Engine, lengths: Sequence[int]) -> None:
        self.engine, self.lengths = engine, lengths

    def run(self, prompt: Sequence[int], asked: Request) -> list[int]:
        ids: list[int] = []
        at = 0
        for event in self.engine.answer_ids(prompt, asked):
            if isinstance(event, Round):
                self.engine.set_speculation(fixed(self.lengths[at % len(self.lengths)]))
                at += 1
            elif event.__class__.__name__ == "Finished":
                ids = event.answer.ids  # type: ignore[union-attr]
        return ids


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=8), seed=st.integers(0, 99), greedy=st.booleans())
def test_switching_in_the_middle_of_an_answer_changes_no_token(lengths: list[int], seed: int, greedy: bool) -> None:
    sampling = Sampling(temperature=0) if greedy else Sampling(temperature=0.9, seed=seed)
    asked = request(sampling, fixed(lengths[-1]))
    assert Switching(engine_of(*schedule(seed)), lengths).run(PROMPT, asked) == fresh(
        PROMPT, asked, lambda: schedule(seed)[0]
    )


def test_strict_widths_clamp_a_fixed_length_and_say_so() -> None:
    engine = engine_of(*schedule(1), width_limit=3, exact="strict")
    answer = last(engine.answer_ids(PROMPT, request(None, fixed(6))))
    assert answer.speculation.length == 2
    assert len(answer.speculation.by_position) == 2
    assert any("cut to 2" in note for note in answer.notes)
    assert answer.verdict.kind == "identical"


@pytest.mark.parametrize("speculation", [fixed(4), Speculation()])
def test_a_group_of_one_never_drafts_and_says_so(speculation: Speculation) -> None:
    answer = last(engine_of(*schedule(1), width_limit=1, exact="strict").answer_ids(PROMPT, request(None, speculation)))
    assert answer.speculation.drafted == 0
    assert "bit for bit" in answer.speculation.plan


def test_the_same_seed_gives_the_same_ids_and_other_seeds_give_others() -> None:
    def ids(seed: int, rule: str) -> tuple[int, ...]:
        asked = request(Sampling(temperature=1, seed=seed), Speculation(mode="fixed", length=2, rule=rule))  # type: ignore[arg-type]
        return tuple(last(engine_of(*schedule(1)).answer_ids(PROMPT, asked)).ids)

    for rule in ("rejection", "coupled"):
        Generator(1, 1).draw  # other users of the library's generators  # noqa: B018
        assert ids(7, rule) == ids(7, rule)
        assert len({ids(seed, rule) for seed in range(20)}) >= 19


def test_reading_is_cut_at_multiples_of_the_batch_and_the_last_id_opens_the_first_round() -> None:
    target = FaultyModel(ToyLM(16))
    target.inner.n_batch = 10
    prompt = [i % 16 for i in range(25)]
    engine = engine_of(target)
    last(engine.answer_ids(prompt, request(max_tokens=1)))
    assert [len(call[1]) for call in target.calls if call[0] == "forward"] == [10, 10, 4, 1]  # type: ignore[arg-type]
