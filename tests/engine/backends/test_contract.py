"""One suite for every backend: a Model's rows are a function of the ids in its cache, and its length never lies."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.llamacpp_library import lib
from engine.backends.toy import ToyLM, ToyModel, ToyVocabulary
from engine.engines import missing_package
from engine.errors import CannotRewind, DecodeFailed, LoadFailed
from engine.mapped import MappedModel
from engine.model import Model
from engine.token_map import TokenMap
from tests.engine.backends.contract import (
    Case,
    Kind,
    expect_same,
    feed,
    fresh_row,
    interrupted_pass,
    rewind_if_possible,
    some_ids,
)
from tests.tiny_gguf import Tiny, write_gemma, write_llama, write_mamba, write_qwen35

CONTEXT = 640
NOISE = 0.08
"""Logits of the tiny models have a standard deviation of 3; the cache is rounded to 16 bits."""


def _toy(kind: Kind, snapshots: int = 0) -> Case:
    def make(_folder: Path) -> Model:
        model = ToyLM(vocab_size=32, n_ctx=CONTEXT, kind=kind)
        model.snapshots = snapshots
        return model

    reach = snapshots if kind == "recurrent" else None
    return Case(f"toy-{kind}-{snapshots}", make, _toy_waits, kind, reach, shifts=kind == "dense")


@contextmanager
def _toy_waits(model: Model) -> Iterator[None]:
    assert isinstance(model, ToyModel)
    model.on_pass = lambda _tokens: model.wait(60)
    yield
    model.on_pass = None


def _llama(
    name: str,
    write: Callable[[Path], Path] = write_llama,
    kind: Kind = "dense",
    reach: int | None = None,
    tolerance: float = NOISE,
    **options: object,
) -> Case:
    def make(folder: Path) -> Model:
        path = folder / "model.gguf"
        if not path.exists():
            write(path)
        chosen = {"n_ctx": CONTEXT, "n_batch": 128, "threads": 1, **options}
        model = LlamaCppModel(LlamaCppOptions(path=path, **chosen))
        model.try_shift()
        return model

    shifts = kind == "dense" and options.get("kv", "f16") == "f16" and "yarn" not in name
    return Case(name, make, _llama_waits, kind, reach, shifts, tolerance)


@contextmanager
def _llama_waits(model: Model) -> Iterator[None]:
    assert isinstance(model, LlamaCppModel)

    deadline = time.monotonic() + 60

    def wait(_data: object) -> bool:
        while model._flag[0] == b"\0" and time.monotonic() < deadline:
            pass
        return bool(model._flag[0] != b"\0")

    callback = lib.ggml_abort_callback(wait)
    if model.reach is None:
        model._set_abort(callback)
    yield
    if model.reach is None:
        model._set_abort(model._abort)


def _mapped(case: Case) -> Case:
    """The backend as a draft whose tokens are those of another vocabulary: here in another order, or bytes alone."""

    def make(folder: Path) -> Model:
        inner = case.make(folder)
        pieces = [inner.vocab.piece(token) for token in range(inner.vocab.size)][::-1]
        single = pieces if isinstance(inner, ToyModel) else [bytes([byte]) for byte in range(256)]
        return MappedModel(inner, TokenMap(ToyVocabulary(single), inner.vocab))

    @contextmanager
    def waiting(model: Model) -> Iterator[None]:
        assert isinstance(model, MappedModel)
        with case.waiting(model.inner):
            yield

    reach = None if case.reach is None else 0
    return replace(case, name=f"mapped-{case.name}", make=make, waiting=waiting, reach=reach)


def _torch() -> list[Case]:
    """None without the extra."""
    if missing_package():
        return []
    from tests.engine.backends.torch_cases import CASES

    return [*CASES, _mapped(CASES[0])]


CASES = [
    *map(_toy, ("dense", "sliding", "recurrent")),
    _toy("recurrent", 3),
    _llama("llama"),
    _llama("llama-padded", lambda path: write_llama(path, Tiny(padding=13))),
    _llama("llama-yarn", lambda path: write_llama(path, Tiny(yarn=True))),
    _llama("llama-flash", flash_attention="on"),
    _llama("llama-q8_0", tolerance=2 * NOISE, kv="q8_0"),
    _llama("gemma-whole", write_gemma),
    _llama("gemma-window", write_gemma, "sliding", n_batch=64, swa_full=False),
    _llama("mamba", write_mamba, "recurrent", 0),
    _llama("qwen35", write_qwen35, "recurrent", 4),
    _llama("qwen35-one", write_qwen35, "recurrent", 1, snapshots=1),
    *map(_mapped, (_toy("dense"), _toy("sliding"), _toy("recurrent"), _llama("llama"))),
    *_torch(),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def folder(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(case.name)


@pytest.fixture(scope="module")
def models(case: Case, folder: Path) -> Iterator[tuple[Model, Model]]:
    both = case.make(folder), case.make(folder)
    yield both
    for model in both:
        model.close()


@pytest.fixture
def model(models: tuple[Model, Model]) -> Model:
    models[0].rewind(0)
    return models[0]


@pytest.fixture
def other(models: tuple[Model, Model]) -> Model:
    """The same model once more."""
    models[1].rewind(0)
    return models[1]


many = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
passes = st.lists(st.tuples(st.lists(st.integers(0, 31), min_size=1, max_size=40), st.integers(0, 40)), max_size=10)


@many
@given(schedule=passes, probe=st.integers(0, 31))
def test_a_row_is_a_function_of_the_cached_ids(
    case: Case, models: tuple[Model, Model], schedule: list[tuple[list[int], int]], probe: int
) -> None:
    model, other = models
    model.rewind(0)
    ids: list[int] = []
    for tokens, dropped in schedule:
        model.forward(tokens, min(len(tokens), 2))
        ids += tokens
        length = max(1, len(ids) - dropped)
        if rewind_if_possible(model, length):
            del ids[length:]
        assert model.length == len(ids)
    row = model.forward([probe], 1)[0]
    expect_same(case, row, fresh_row(other, [*ids, probe]))


@many
@given(schedule=passes, probe=st.integers(0, 31))
def test_equal_cuts_give_equal_bits(
    models: tuple[Model, Model], schedule: list[tuple[list[int], int]], probe: int
) -> None:
    model, other = models
    model.rewind(0)
    ids: list[int] = []
    cuts: list[int] = []
    for tokens, dropped in schedule:
        model.forward(tokens, 0)
        ids += tokens
        cuts.append(len(ids))
        place = max(0, len(cuts) - 1 - dropped % 3)
        if rewind_if_possible(model, cuts[place]):
            del cuts[place + 1 :]
            del ids[cuts[-1] :]
    row = model.forward([probe], 1)[0]
    np.testing.assert_array_equal(row, fresh_row(other, [*ids, probe], cuts))


def test_rows_are_float32_and_as_many_as_wanted(case: Case, model: Model) -> None:
    ids = some_ids(model, 7)
    every = model.forward(ids, 7).copy()
    assert every.dtype == np.float32
    assert every.shape[0] == 7
    assert every.shape[1] >= model.vocab.size
    assert np.isfinite(every[:, : model.vocab.size]).all()
    for rows in (0, 1, 3):
        model.rewind(0)
        got = model.forward(ids, rows)
        assert got.shape == (rows, every.shape[1])
        expect_same(case, got, every[7 - rows :])


def test_every_token_in_the_cache_counts(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 12)
    row = fresh_row(model, ids)
    for place in (0, 5, 10) if case.kind == "dense" else (8, 10):
        changed = [*ids]
        changed[place] = (ids[place] + 1) % model.vocab.size
        assert np.abs(fresh_row(other, changed) - row).max() > 2 * case.tolerance


def test_length_counts_the_tokens(model: Model) -> None:
    assert model.length == 0
    for count in (1, 5, 2):
        before = model.length
        model.forward(some_ids(model, count), 1)
        assert model.length == before + count


def test_a_pass_that_cannot_be_is_refused_and_changes_nothing(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 5)
    model.forward(ids, 0)
    refused = [([], 0), ([1], 2), ([1], -1), ([-1], 1), ([model.vocab.size], 1), ([1, 2**40], 1), ([-(2**31)], 0)]
    for tokens, rows in [*refused, ([1] * (model.n_batch + 1), 1)]:
        with pytest.raises(ValueError):
            model.forward(tokens, rows)
        assert model.length == 5
    expect_same(case, model.forward([3], 1)[0], fresh_row(other, [*ids, 3]))


def test_a_full_context_is_refused_and_changes_nothing(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, CONTEXT)
    for start in range(0, CONTEXT - 3, model.n_batch):
        model.forward(ids[start : min(start + model.n_batch, CONTEXT - 3)], 0)
    with pytest.raises(DecodeFailed, match=f"{CONTEXT}.*full.*--ctx"):
        model.forward([1] * 4, 1)
    assert model.length == CONTEXT - 3
    expect_same(case, model.forward(ids[-3:], 1)[0], fresh_row(other, ids))
    with pytest.raises(DecodeFailed):
        model.forward([1], 1)
    assert model.length == CONTEXT


def test_an_interrupted_pass_leaves_the_old_cache(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 20)
    model.forward(ids, 0)
    wide = some_ids(model, model.n_batch, seed=1)
    with case.waiting(model):
        cut_short = interrupted_pass(model, wide)
    assert cut_short or case.kind == "recurrent"
    assert model.length == (20 if cut_short else 20 + len(wide))
    held = ids if cut_short else ids + wide
    expect_same(case, model.forward([3], 1)[0], fresh_row(other, [*held, 3]))


def test_an_interrupt_without_a_pass_does_nothing(model: Model) -> None:
    model.interrupt()
    assert model.forward([1, 2], 1).shape[0] == 1
    assert model.length == 2


def test_rewind_to_0_always_clears(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 30)
    for _ in range(2):
        model.forward(some_ids(model, 50, seed=2), 0)
        model.rewind(0)
        assert model.length == 0
        expect_same(case, feed(model, ids, 30), fresh_row(other, ids))
        model.rewind(0)
    model.rewind(0)
    assert model.length == 0


def test_rewind_to_the_present_does_nothing(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 9)
    model.forward(ids, 0)
    model.rewind(9)
    expect_same(case, model.forward([3], 1)[0], fresh_row(other, [*ids, 3]))


@pytest.mark.parametrize("length", [-1, 10])
def test_rewind_out_of_range_is_refused(model: Model, length: int) -> None:
    model.forward(some_ids(model, 9), 0)
    with pytest.raises(ValueError):
        model.rewind(length)
    assert model.length == 9


def test_a_cache_that_cannot_go_back_says_so_and_stays_as_it_is(case: Case, model: Model, other: Model) -> None:
    ids = some_ids(model, 600)
    for start in range(0, 600, model.n_batch):
        model.forward(ids[start : start + model.n_batch], 0)
    can = rewind_if_possible(model, 20)
    assert can == (case.kind == "dense")
    if not can:
        with pytest.raises(CannotRewind):
            model.rewind(20)
        assert model.length == 600
    held = ids[:20] if can else ids
    expect_same(case, model.forward([3], 1)[0], fresh_row(other, [*held, 3]))


def test_the_reach_is_true(case: Case, model: Model, other: Model) -> None:
    """What can be taken back is gone without a trace; all else is refused, since a state would stay as it is."""
    ids, refused = some_ids(model, 30), some_ids(model, 9, seed=1)
    assert model.reach == case.reach
    for back in range(1, 9):
        for kept in (1, 2, 20):
            model.rewind(0)
            model.forward(ids[kept:], 0)
            model.forward([*ids[:kept], *refused[:back]], 0)
            can = rewind_if_possible(model, model.length - back)
            assert can == (case.reach is None or back <= case.reach)
            if can:
                row = model.forward([3], 1)[0]
                expect_same(case, row, fresh_row(other, [*ids[kept:], *ids[:kept], 3]))


@pytest.mark.parametrize("passes", [[3, 1], [1], [1, 1, 1], [2, 2], [6, 3]])
def test_going_back_over_whole_passes_or_twice_is_right_or_refused(
    case: Case, model: Model, other: Model, passes: list[int]
) -> None:
    ids = some_ids(model, 30)
    for steps in ([1], [2], [sum(passes)], [passes[-1]], [1, 1], [2, 1]):
        model.rewind(0)
        model.forward(ids[: 30 - sum(passes)], 0)
        for width in passes:
            model.forward(ids[model.length : model.length + width], 0)
        done = [rewind_if_possible(model, model.length - step) for step in steps]
        assert all(done) if case.reach is None else done.count(True) <= 1
        held = ids[: model.length]
        expect_same(case, model.forward([3], 1)[0], fresh_row(other, [*held, 3]))


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 40), (10, 70), (99, 100), (5, 5), (100, 120), (0, 120)])
def test_a_hole_closes_or_the_cache_stays_as_it_is(
    case: Case, model: Model, other: Model, tmp_path: Path, start: int, end: int
) -> None:
    ids = some_ids(model, 120)
    feed(model, ids, 50)
    try:
        model.drop(start, end)
    except CannotRewind:
        assert not case.shifts
        assert model.length == 120
    else:
        del ids[start:end]
    assert model.length == len(ids)
    model.save(tmp_path / "cache")
    other.load(tmp_path / "cache")
    wanted = model.forward([3, 4], 2).copy()
    np.testing.assert_allclose(other.forward([3, 4], 2), wanted, rtol=0, atol=case.tolerance / 10)
    if not case.shifts or not start < end < 120 or not case.tolerance:
        expect_same(case, wanted, np.stack([fresh_row(other, [*ids, 3]), fresh_row(other, [*ids, 3, 4])]))


def test_a_hole_out_of_range_is_refused(model: Model) -> None:
    model.forward([1, 2, 3], 0)
    for start, end in ((-1, 2), (2, 1), (1, 4), (4, 4)):
        with pytest.raises(ValueError):
            model.drop(start, end)
    assert model.length == 3


@pytest.mark.parametrize("length", [0, 1, 300])
def test_a_saved_cache_goes_on_as_if_it_had_never_left(
    case: Case, model: Model, other: Model, tmp_path: Path, length: int
) -> None:
    ids = some_ids(model, length)
    feed(model, ids, 60)
    model.save(tmp_path / "cache")
    other.forward([5, 6, 7], 0)
    other.load(tmp_path / "cache")
    assert other.length == model.length == length
    wanted = model.forward([3, 4], 2).copy()
    np.testing.assert_array_equal(other.forward([3, 4], 2), wanted)


@pytest.mark.parametrize("back", [0, 1, 3])
@pytest.mark.parametrize("further", [1, 2, 5])
def test_a_loaded_cache_goes_back_rightly_or_not_at_all(
    case: Case, model: Model, other: Model, tmp_path: Path, back: int, further: int
) -> None:
    """Saved where a pass ended, or where a part of it was taken back."""
    ids = some_ids(model, 60)
    feed(model, ids, 10)
    rewind_if_possible(model, 60 - back)
    model.save(tmp_path / "cache")
    other.forward([5, 6, 7, 8, 9, 10], 0)
    other.load(tmp_path / "cache")
    done = rewind_if_possible(other, other.length - further)
    assert done or case.kind != "dense" or case.name == "gemma-whole"  # of whose windows no more was saved
    held = ids[: other.length]
    expect_same(case, other.forward([3], 1)[0], fresh_row(model, [*held, 3]))


@pytest.mark.parametrize("content", [None, b"", b"no cache at all"])
def test_a_file_that_is_no_cache_leaves_the_model_empty(model: Model, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "cache"
    if content is not None:
        path.write_bytes(content)
    model.forward([1, 2, 3], 0)
    with pytest.raises(LoadFailed):
        model.load(path)
    assert model.length == 0
    assert model.forward([1], 1).shape[0] == 1


@pytest.mark.parametrize("off", [-1, 0, 1])
@pytest.mark.parametrize("times", [1, 2])
def test_prompts_around_the_batch_size(case: Case, model: Model, other: Model, times: int, off: int) -> None:
    ids = some_ids(model, times * model.n_batch + off)
    row = feed(model, ids, model.n_batch)
    assert model.length == len(ids)
    expect_same(case, row, feed(other, ids, 1))


def test_closing_twice(case: Case, folder: Path) -> None:
    model = case.make(folder)
    model.forward([1, 2], 1)
    model.close()
    model.close()
    model.interrupt()
    assert model.n_ctx == CONTEXT


def test_the_vocabulary_knows_its_ids(model: Model, other: Model) -> None:
    vocab = model.vocab
    for token in (-1, vocab.size, 2**40):
        with pytest.raises(IndexError):
            vocab.piece(token)
    assert all(isinstance(vocab.piece(token), bytes) for token in range(vocab.size))
    assert all(vocab.piece(token) == b"" for token in vocab.control.values())
    assert all(0 <= token < vocab.size for token in (*vocab.eog, *vocab.control.values()))
    assert vocab.fingerprint == other.vocab.fingerprint


@many
@given(text=st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=30))
def test_text_comes_back_from_its_ids(models: tuple[Model, Model], text: str) -> None:
    vocab = models[0].vocab
    letters = "".join(c for c in text if vocab.tokenize(c))
    named = letters + "".join(vocab.control)
    for plain in (letters, named) if vocab.control else (letters,):
        ids = vocab.tokenize(plain)
        assert not set(ids) & set(vocab.control.values())
        assert b"".join(map(vocab.piece, ids)).decode() == plain
