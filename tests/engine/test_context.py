"""The invariant of the context: each cache holds a prefix of the committed ids, whatever happened."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import Kind, ToyLM
from engine.context import Cache, Context, common_prefix
from engine.errors import CannotRewind, DecodeFailed, EngineError, Interrupted
from tests.fakes import FaultyModel

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=40)
KINDS: list[tuple[Kind, int]] = [("dense", 0), ("sliding", 0), ("recurrent", 0), ("recurrent", 3)]
Steps = list[tuple[str, int, int]]


def toy(kind: Kind = "dense", snapshots: int = 0, n_batch: int = 64) -> ToyLM:
    model = ToyLM(4, kind=kind)
    model.snapshots, model.n_batch = snapshots, n_batch
    return model


def next_row(context: Context) -> np.ndarray:
    """The target's row after the ids, as an answer would begin."""
    list(context.read(context.target))
    return context.advance(context.target, [], 1)[0].copy()


def expect_prefix(context: Context) -> None:
    for cache in context.caches:
        assert cache.model._cells[: cache.length] == context.ids[: cache.length]  # type: ignore[attr-defined]


@given(IDS, IDS)
def test_common_is_the_longest_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


@given(st.lists(IDS, min_size=1, max_size=5), st.sampled_from(KINDS))
def test_prompts_one_after_another_share_what_they_can(prompts: list[list[int]], kind: tuple[Kind, int]) -> None:
    model = toy(*kind)
    context = Context(model)
    for prompt in prompts:
        before = list(model._cells)
        shared = context.begin(prompt)
        assert shared < len(prompt)
        assert model.length <= shared
        assert model._cells == before[: model.length] == prompt[: model.length]
        list(context.read(context.target))
        assert model._cells == prompt[:-1]


def test_a_failed_pass_leaves_an_empty_cache_even_if_the_tokens_went_in() -> None:
    model = FaultyModel(ToyLM(4), at=1, after=True, error=lambda: DecodeFailed("broken"))
    cache = Cache(model)  # type: ignore[arg-type]
    cache.forward([1, 2], 0)
    with pytest.raises(DecodeFailed):
        cache.forward([3], 0)
    assert (cache.length, model.length) == (0, 0)


def test_bad_ids_change_nothing() -> None:
    cache = Cache(ToyLM(4))
    cache.forward([1, 2], 0)
    with pytest.raises(ValueError, match="out of range"):
        cache.forward([99], 0)
    assert cache.length == 2


STEP = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, 99), st.integers(1, 60)),
    st.tuples(st.just("round"), st.integers(1, 5), st.integers(0, 5)),
    st.tuples(st.sampled_from(["shift", "reread"]), st.integers(0, 30), st.integers(0, 40)),
    st.tuples(st.just("settle"), st.integers(0, 3), st.just(0)),
)


def play(context: Context, step: tuple[str, int, int]) -> None:
    """A prompt that shares a part with the ids, a round with drafts, a hole, or a cut."""
    name, a, b = step
    ids = context.ids
    if name == "begin":
        context.begin([*ids[: a % (len(ids) + 1)], *((a + i * i) % 4 for i in range(b))])
        for cache in context.caches:
            list(context.read(cache))
    elif name == "round" and ids:
        ahead = [(a + i) % 4 for i in range(a)]
        context.begin(list(ids))
        for cache in context.caches:
            list(context.read(cache))
            context.advance(cache, ahead, len(ahead) + 1)
        kept = min(a, b)
        context.commit([*ahead[:kept], (b + 1) % 4], kept)
    elif name == "settle":
        context.settle(max(0, len(ids) - a))
        context.rest()
    elif name in ("shift", "reread"):
        start = min(a, len(ids))
        context.forget(start, min(len(ids), start + b), shift=name == "shift")


@settings(max_examples=200)
@given(st.lists(STEP, max_size=12), st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_each_cache_holds_a_prefix_of_the_ids_and_answers_like_a_new_one(
    steps: Steps, kind: tuple[Kind, int], draft: tuple[Kind, int]
) -> None:
    context = Context(toy(*kind), toy(*draft))
    for step in steps:
        play(context, step)
        expect_prefix(context)
    context.begin([*context.ids, 1, 2])
    new = Context(toy(*kind))
    new.begin(context.ids)
    np.testing.assert_array_equal(next_row(context), next_row(new))


FAULTS = [Interrupted, DecodeFailed, RuntimeError, KeyboardInterrupt]


@settings(max_examples=200)
@given(
    st.lists(STEP, min_size=1, max_size=8),
    st.sampled_from(KINDS),
    st.integers(0, 7),
    st.sampled_from(["forward", "rewind", "drop"]),
    st.sampled_from(FAULTS),
    st.booleans(),
)
def test_whatever_fails_the_next_answer_is_that_of_a_new_model(
    steps: Steps, kind: tuple[Kind, int], at: int, fails: str, error: type[BaseException], after: bool
) -> None:
    """A pass, a rewind or a drop fails once, with its work done or not; an interrupted pass did nothing."""
    model = FaultyModel(toy(*kind, n_batch=10), error=lambda: error("fault"), after=after and error is not Interrupted)
    context = Context(model, FaultyModel(toy(n_batch=10)))  # type: ignore[arg-type]
    for number, step in enumerate(steps):
        if number == at % len(steps):
            model.at, model.breaks = (model.forwards, None) if fails == "forward" else (None, fails)
        with suppress(EngineError, RuntimeError, KeyboardInterrupt):
            play(context, step)
        model.at = model.breaks = None
        context.settle()  # as every answer ends
        expect_prefix(context)
    context.begin([*context.ids, 1, 2])
    new = Context(toy(*kind))
    new.begin(context.ids)
    np.testing.assert_array_equal(next_row(context), next_row(new))


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(5))
def test_a_prompt_that_failed_in_any_chunk_leaves_nothing_wrong_behind(
    at: int, error: type[BaseException], after: bool
) -> None:
    model = FaultyModel(toy(n_batch=8), at=at + 1, after=after and error is not Interrupted, error=lambda: error("x"))
    context = Context(model)  # type: ignore[arg-type]
    prompt = [i * i % 4 for i in range(41)]
    context.begin([*prompt[:3], 1])
    list(context.read(context.target))
    context.begin(prompt)
    with pytest.raises(error):
        list(context.read(context.target))
    assert context.target.length == (3 if at == 0 else 8 * at if error is Interrupted else 0) or not at
    context.begin([*prompt[:30], 2, 1])
    new = Context(toy())
    new.begin(context.ids)
    np.testing.assert_array_equal(next_row(context), next_row(new))


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize(("kind", "snapshots"), KINDS)
def test_what_is_forgotten_is_not_read_again_where_the_cache_can_shift(kind: Kind, snapshots: int, shift: bool) -> None:
    model = FaultyModel(toy(kind, snapshots))
    context = Context(model)  # type: ignore[arg-type]
    ids = [i * 7 % 4 for i in range(30)]
    context.begin(ids)
    list(context.read(context.target))
    context.forget(4, 10, shift)
    assert context.ids == ids[:4] + ids[10:]
    moved = shift and kind == "dense"
    assert context.target.length == (23 if moved else 4 if kind != "recurrent" else 0)
    assert context.holds_wide == moved


@pytest.mark.parametrize("error", [DecodeFailed, CannotRewind, RuntimeError])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("shift", [True, False])
def test_a_draft_that_cannot_forget_reads_again_alone(error: type[Exception], after: bool, shift: bool) -> None:
    draft = FaultyModel(toy(), error=lambda: error("x"), after=after and error is not CannotRewind)
    context = Context(toy(), draft)  # type: ignore[arg-type]
    ids = [i * 7 % 4 for i in range(30)]
    context.begin(ids)
    for cache in context.caches:
        list(context.read(cache))
    draft.breaks = "drop" if shift else "rewind"
    with suppress(RuntimeError):
        context.forget(4, 10, shift)
    assert context.target.length == (23 if shift else 4)
    assert context.holds_moved == shift
    assert context.draft is not None
    assert context.draft.length == (4 if shift and error is CannotRewind else 0)
    for cache in context.caches:
        list(context.read(cache))
        assert cache.model._cells == context.ids[:-1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("shift", [True, False])
def test_where_the_target_cannot_forget_both_caches_read_again(shift: bool) -> None:
    target = FaultyModel(toy(), error=lambda: DecodeFailed("x"))
    context = Context(target, toy())  # type: ignore[arg-type]
    context.begin([i * 7 % 4 for i in range(30)])
    for cache in context.caches:
        list(context.read(cache))
    target.breaks = "drop" if shift else "rewind"
    with pytest.raises(DecodeFailed):
        context.forget(4, 10, shift)
    assert [cache.length for cache in context.caches] == [0, 0]
    assert len(context.ids) == 24


def test_a_hole_in_what_was_not_read_costs_nothing() -> None:
    model = FaultyModel(toy())
    context = Context(model)  # type: ignore[arg-type]
    context.begin([1, 2, 3, 0, 1, 2])
    list(context.read(context.target))
    context.begin([1, 2, 3, 0, 1, 2, 2, 2, 2, 2])
    model.calls.clear()
    context.forget(7, 9)
    assert model.calls == []
    assert not context.holds_wide
    context.forget(4, 6)
    assert model.calls == [("rewind", 4)]
    assert not context.holds_wide
    assert context.ids == [1, 2, 3, 0, 2, 2]


def test_a_cache_that_shifted_counts_as_wide_until_it_is_read_anew_from_there() -> None:
    context = Context(toy())
    context.begin([i % 4 for i in range(20)])
    next_row(context)
    context.forget(5, 9)
    ids = list(context.ids)
    context.begin([*ids, 1])
    next_row(context)
    assert context.holds_wide
    context.begin([*ids[:5], 3, 3])
    assert not context.holds_wide
    next_row(context)
    assert context._wide == math.inf


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (0, 7), (7, 7)])
def test_a_hole_out_of_range_is_refused(start: int, end: int) -> None:
    context = Context(toy())
    context.begin([0, 1, 2, 3, 0, 1])
    with pytest.raises(ValueError, match="cannot forget"):
        context.forget(start, end)
    assert len(context.ids) == 6


@pytest.mark.parametrize(("kind", "snapshots"), KINDS)
def test_coming_to_rest_loses_nothing(kind: Kind, snapshots: int) -> None:
    context = Context(toy(kind, snapshots))
    context.begin([i % 4 for i in range(12)])
    list(context.read(context.target))
    context.settle(11)
    context.rest()
    assert context.target.length == (11 if kind == "recurrent" else 10)
