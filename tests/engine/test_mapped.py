"""A draft in other tokens is a Model: its cache is the spelling of what it was fed, its rows are mapped ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ScriptLM, ToyLM, ToyVocabulary
from engine.config import Sampling
from engine.errors import CannotRewind, DecodeFailed, Interrupted, LoadFailed
from engine.mapped import MappedModel
from engine.model import FloatArray
from engine.token_map import TokenMap
from tests.engine.loops import Loop, Parts, coupled
from tests.engine.rounds import error
from tests.engine.vocabularies import LETTERS, Babbler, Shuffled, every_byte, large, small, vocabulary
from tests.fakes import FaultyModel, engine_of, fixed, fresh, last, request

TARGET, DRAFT = large(), small()
ROOMY = Sampling(temperature=1, top_k=0, top_p=1, min_p=0)


def mapped(target: ToyVocabulary, inner: ToyLM) -> MappedModel:
    return MappedModel(inner, TokenMap(target, inner.vocab))


def spelled(model: MappedModel, ids: Sequence[int]) -> list[int]:
    """What the inner cache has to hold."""
    token_map = TokenMap(model.vocab, model.inner.vocab)
    out = [token for one in ids for token in token_map.spell(one)]
    bos = model.inner.vocab.bos
    return out if not out or bos is None or out[0] == bos else [bos, *out]


def cells(model: MappedModel) -> list[int]:
    assert isinstance(model.inner, ToyLM)
    return model.inner._cells


def row_after(model: MappedModel, ids: Sequence[int]) -> FloatArray:
    """The inner model's row after the spelling, mapped."""
    assert isinstance(model.inner, ToyLM)
    out = np.full(model.vocab.size, -np.inf, np.float32)
    TokenMap(model.vocab, model.inner.vocab).row(model.inner.row(spelled(model, ids)), out)
    return out


tokens = st.integers(0, TARGET.size - 1)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("feed"), st.lists(tokens, min_size=1, max_size=7), st.integers(0, 7)),
        st.tuples(st.just("rewind"), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("drop"), st.integers(0, 30), st.integers(0, 30)),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(steps=steps, draft=st.sampled_from([small, every_byte]), n_batch=st.sampled_from([7, 64]))
def test_the_inner_cache_is_the_spelling_of_the_ids_and_rows_are_mapped_from_it(
    steps: list[tuple[str, list[int] | int, int]], draft: type, n_batch: int
) -> None:
    model = mapped(TARGET, Babbler(draft(), n_batch=n_batch))
    ids: list[int] = []
    for kind, what, more in steps:
        if kind == "feed":
            assert isinstance(what, list)
            count = min(more, len(what))
            rows = model.forward(what, count).copy()
            ids += what
            for at, row in enumerate(rows, len(ids) - count + 1):
                np.testing.assert_array_equal(row, row_after(model, ids[:at]))
        elif kind == "rewind":
            del ids[what:]  # type: ignore[misc]
            model.rewind(len(ids))
        else:
            first, end = sorted((min(what, len(ids)), min(more, len(ids))))  # type: ignore[type-var]
            model.drop(first, end)
            del ids[first:end]  # type: ignore[misc]
        assert model.length == len(ids)
        assert cells(model) == spelled(model, ids)


def test_what_an_opening_token_stands_for_is_there_once_and_only_at_the_start() -> None:
    draft = small()
    model = mapped(TARGET, Babbler(draft))
    model.forward([40, 41], 0)
    assert cells(model)[0] == draft.bos
    assert cells(model).count(draft.bos) == 1
    own = mapped(every_byte(), Babbler(draft))  # a target that opens its prompts itself
    own.forward([every_byte().control["<s>"], 97], 0)
    assert cells(own) == [draft.bos, 0]


def test_the_context_counts_what_the_draft_needs() -> None:
    model = mapped(TARGET, Babbler(every_byte(), n_ctx=41))
    assert model.n_ctx == 41
    model.forward([0] * 10, 0)  # pairs of letters behind an opening token
    assert model.n_ctx == 10 + int((41 - 21) / 2.1)
    model.forward([0] * 9, 0)
    with pytest.raises(DecodeFailed, match=r"41 tokens is full.*--ctx if the draft was trained for one, else another"):
        model.forward([0, 0], 0)
    assert model.length == 19
    model.forward([0], 0)
    assert model.n_ctx == model.length
    model.rewind(0)
    assert model.n_ctx == 20


def test_going_back_behind_a_hole_is_exact() -> None:
    model = mapped(TARGET, Babbler(DRAFT))
    model.forward([0, 40, 1, 41, 2], 0)
    model.drop(1, 3)
    model.rewind(2)
    row = model.forward([3], 1)[0]
    assert cells(model) == spelled(model, [0, 41, 3])
    np.testing.assert_array_equal(row, row_after(model, [0, 41, 3]))
    assert not row.flags.writeable  # a stray write would stay in the rows to come


@pytest.mark.parametrize("at", range(4))
def test_an_empty_hole_is_none(at: int) -> None:
    model = mapped(TARGET, Babbler(DRAFT))
    model.forward([0, 40, 1], 0)
    model.drop(at, at)
    assert (model.length, cells(model)) == (3, spelled(model, [0, 40, 1]))


def test_refused_passes_change_nothing() -> None:
    model = mapped(TARGET, Babbler(DRAFT, n_batch=4))
    model.forward([0, 1], 0)
    for wrong, rows in (([], 0), ([0] * 5, 0), ([0], 2), ([-1], 0), ([TARGET.size], 0)):
        with pytest.raises(ValueError):
            model.forward(wrong, rows)
    with pytest.raises(ValueError):
        model.rewind(3)
    with pytest.raises(ValueError):
        model.drop(0, 3)
    assert (model.length, cells(model)) == (2, spelled(model, [0, 1]))


@pytest.mark.parametrize("at", range(2))
@pytest.mark.parametrize("after", [False, True])
def test_a_pass_that_fails_in_the_middle_leaves_the_tokens_before_it(at: int, after: bool) -> None:
    inner = FaultyModel(Babbler(DRAFT, n_batch=4), error=lambda: DecodeFailed("no"), after=after)
    model = MappedModel(inner, TokenMap(TARGET, DRAFT))  # type: ignore[arg-type]
    model.forward([0], 0)
    inner.at = inner.forwards + at
    with pytest.raises(DecodeFailed):
        model.forward([1, 2, 3, 4], 1)  # eight of the draft's tokens, in two passes
    assert model.length == 1
    assert inner.inner._cells == [DRAFT.bos, 0, 0]
    np.testing.assert_array_equal(model.forward([1], 1), mapped(TARGET, Babbler(DRAFT)).forward([0, 1], 1))


def test_an_interrupt_between_two_passes_is_seen() -> None:
    inner = Babbler(DRAFT, n_batch=4)
    model = mapped(TARGET, inner)
    model.forward([0], 0)
    inner.on_pass = lambda _: model._stopped.set()
    with pytest.raises(Interrupted):
        model.forward([1, 2, 3, 4], 1)
    inner.on_pass = None
    assert (model.length, len(cells(model))) == (1, 3)
    assert model.forward([1], 1).shape == (1, TARGET.size)


def test_a_draft_that_cannot_go_back_has_no_reach_and_is_empty_after_a_failure() -> None:
    inner = FaultyModel(Babbler(DRAFT, n_batch=4), error=lambda: DecodeFailed("no"))
    inner.inner.kind = "recurrent"
    model = MappedModel(inner, TokenMap(TARGET, DRAFT))  # type: ignore[arg-type]
    inner.inner.snapshots = 3
    assert model.reach == 0
    model.forward([0], 0)
    model.forward([1], 0)
    with pytest.raises(CannotRewind):
        model.rewind(1)
    inner.at = inner.forwards + 1
    with pytest.raises(DecodeFailed):
        model.forward([1, 2, 3, 4], 1)
    assert (model.length, inner.inner._cells) == (0, [])


def test_a_saved_cache_is_for_the_same_two_vocabularies(tmp_path: Path) -> None:
    model, path = mapped(TARGET, Babbler(DRAFT)), tmp_path / "cache"
    model.forward([0, 40, 3], 0)
    model.save(path)
    other = mapped(TARGET, Babbler(DRAFT))
    other.load(path)
    other.rewind(1)
    assert cells(other) == spelled(other, [0])
    with pytest.raises(LoadFailed, match="other models"):
        mapped(every_byte(), Babbler(DRAFT)).load(path)
    whole = path.read_bytes()
    for cut in (whole[:-1], whole[20:], whole[:-30] + whole[-29:]):
        path.write_bytes(cut)
        with pytest.raises(LoadFailed):
            other.load(path)
        assert (other.length, cells(other)) == (0, [])


def order(size: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(size).tolist()


@pytest.mark.parametrize("sampling", [Sampling(temperature=0), ROOMY, Sampling(temperature=1, seed=3)])
def test_the_same_model_in_other_ids_is_always_kept(sampling: Sampling) -> None:
    target = ToyLM(eog=[31])
    engine = engine_of(target, mapped(target.vocab, Shuffled(ToyLM(eog=[31]), order(32, 1))))
    answer = last(engine.answer_ids([3, 1, 4], request(sampling, fixed(4), max_tokens=60)))
    assert answer.speculation.drafted
    assert answer.speculation.acceptance_rate == 1.0


LINE = "abadcafefadedabedfaceddeadbeefabc"


def says(vocab: ToyVocabulary) -> ScriptLM:
    """A model that writes the rest of LINE in tokens of its own."""

    def script(ids: Sequence[int]) -> int:
        rest = LINE[len(b"".join(map(vocab.piece, ids))) :]
        return vocab.tokenize(rest)[0] if rest else min(vocab.eog)

    return ScriptLM(vocab, script)


def test_a_draft_that_says_the_same_in_other_tokens_is_kept_where_both_use_the_same() -> None:
    target = vocabulary([b"ded", b"bad", *LETTERS], ["<end>"], ["<end>"])
    engine = engine_of(says(target), mapped(target, says(every_byte())))
    answer = last(engine.answer_ids(target.tokenize("a"), request(speculation=fixed(4), max_tokens=60)))
    assert answer.text == LINE[1:]
    assert answer.stop_kind == "eos"
    words = [target.piece(token) for token in answer.ids]
    spec = answer.speculation
    refused = spec.accepted / (spec.acceptance_per_test or 1) - spec.accepted
    assert round(refused) <= words.count(b"bad") + words.count(b"ded")  # a letter is never refused
    assert spec.accepted > len(words) / 2


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    greedy=st.booleans(),
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    turns=st.lists(st.tuples(st.integers(0, 20), st.lists(tokens, min_size=1, max_size=8)), min_size=1, max_size=3),
)
def test_text_is_the_same_on_and_off_through_edits_and_changes_of_length(
    seed: int, greedy: bool, lengths: list[int], turns: list[tuple[int, list[int]]]
) -> None:
    sampling = Sampling(temperature=0 if greedy else 1.0, seed=seed, repeat_penalty=1.1)
    engine = engine_of(Babbler(TARGET, seed), mapped(TARGET, Babbler(DRAFT, seed, n_batch=16)))
    prompt: list[int] = []
    for number, (kept, more) in enumerate(turns):
        prompt = [*prompt[:kept], *more]
        asked = request(sampling, fixed(lengths[number % len(lengths)]), max_tokens=12)
        answer = last(engine.answer_ids(prompt, asked))
        assert answer.ids == fresh(prompt, asked, lambda: Babbler(TARGET, seed))
        draft = engine.context.draft
        assert draft is not None
        assert isinstance(draft.model, MappedModel)
        assert not draft.length or cells(draft.model) == spelled(draft.model, engine.context.ids[: draft.length])
        prompt = [*prompt, *answer.ids]


@pytest.mark.parametrize("n_ctx", [20, 33, 47, 60, 61])
def test_an_answer_goes_on_where_the_drafts_context_is_full(n_ctx: int) -> None:
    asked = request(speculation=fixed(3), max_tokens=50)
    engine = engine_of(Babbler(TARGET), mapped(TARGET, Babbler(every_byte(), n_ctx=n_ctx)))
    for prompt in ([40, 41, 42], [40, 41, 42, 0, 1, 2, 3], [0] * 40):
        answer = last(engine.answer_ids(prompt, asked))
        assert answer.ids == fresh(prompt, asked, lambda: Babbler(TARGET))
        assert answer.speculation.drafted or len(prompt) == 40


class Foreign(Babbler):
    """Sure of a token that the target has not."""

    def row(self, ids: Sequence[int]) -> FloatArray:
        out = np.full(self.vocab.size, -np.inf, np.float32)
        out[ord("z")] = 0
        return out


def test_an_answer_goes_on_without_a_draft_that_says_nothing_of_the_targets() -> None:
    asked = request(speculation=fixed(3), max_tokens=20)
    answer = last(engine_of(Babbler(TARGET), mapped(TARGET, Foreign(every_byte()))).answer_ids([40], asked))
    assert answer.ids == fresh([40], asked, lambda: Babbler(TARGET))
    assert "model" not in answer.speculation.by_source


@dataclass(frozen=True)
class Elsewhere(Loop):
    """The real loop with a draft that lacks one of the target's tokens, has others, and ends in two ways."""

    @cached_property
    def draft(self) -> MappedModel:  # type: ignore[override]
        theirs = vocabulary([b"c", b"x", b"a"], ["<s>", "<one>", "<two>"], ["<one>", "<two>"], "<s>")
        return mapped(self.target.vocab, Babbler(theirs, self.seed))


@pytest.mark.parametrize("drafted", [1, 2])
@pytest.mark.parametrize("eog", [(), (0,)])
@pytest.mark.parametrize("parts", [Parts(), Parts(rule=coupled)], ids=["rejection", "coupled"])
@pytest.mark.parametrize(
    "sampling", [ROOMY, Sampling(temperature=0.7, top_k=2, top_p=0.9, min_p=0.05, repeat_penalty=1.3)]
)
def test_whole_answers_have_the_targets_distribution_exactly(
    sampling: Sampling, parts: Parts, eog: tuple[int, ...], drafted: int
) -> None:
    loop = Elsewhere(sampling, drafted, eog=eog, parts=parts)
    assert error(loop.over_whole_runs(), loop.law()) < 1e-12
