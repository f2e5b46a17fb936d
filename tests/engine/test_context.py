"""The invariant of the context: each cache holds a prefix of the committed ids, whatever happened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.context import Cache, Context, common_prefix, rewinds
from engine.errors import DecodeFailed
from tests.fakes import FaultyModel

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=40)


@given(IDS, IDS)
def test_common_is_the_longest_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


@given(st.lists(IDS, min_size=1, max_size=5), st.sampled_from(["dense", "sliding", "recurrent"]))
def test_prompts_one_after_another_share_what_they_can(prompts: list[list[int]], kind: str) -> None:
    model = ToyLM(4, kind=kind)  # type: ignore[arg-type]
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


@pytest.mark.parametrize(("kind", "can"), [("dense", True), ("sliding", True), ("recurrent", False)])
def test_rewinding_is_found_out_by_trying(kind: str, can: bool) -> None:
    model = ToyLM(4, kind=kind)  # type: ignore[arg-type]
    assert rewinds(model) is can
    assert model.length == 0
