"""How far llama.cpp's memories go back and what they shift: what it does wrongly is refused, whatever it says."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from engine.backends.llamacpp import LlamaCppModel
from engine.backends.llamacpp_library import lib
from engine.context import Context
from engine.errors import CannotRewind, DecodeFailed, Interrupted
from tests.engine.backends.contract import feed, fresh_row, rewind_if_possible, some_ids

IDS = list(range(40, 60))
Open = Callable[..., LlamaCppModel]


class Failing:
    """Stands in for llama_decode: at call `at` does the work or not, then returns `code` once."""

    def __init__(self, code: int, works: bool, at: int = 0) -> None:
        self.code, self.works, self.at, self.real = code, works, at, lib.llama_decode

    def __call__(self, context: int, batch: object) -> int:
        self.at -= 1
        if self.at >= 0:
            return int(self.real(context, batch))
        if self.works:
            self.real(context, batch)
        code, self.code, self.works = self.code, 0, True
        return code


@pytest.mark.parametrize("works", [False, True])
@pytest.mark.parametrize(
    ("code", "error"), [(1, DecodeFailed), (2, Interrupted), (-1, DecodeFailed), (-2, DecodeFailed), (-3, DecodeFailed)]
)
@pytest.mark.parametrize("name", ["llama", "gemma", "mamba", "qwen35"])
def test_after_a_failure_the_length_is_true(
    load: Open, monkeypatch: pytest.MonkeyPatch, name: str, code: int, error: type[Exception], works: bool
) -> None:
    model, other = load(name), load(name)
    model.forward(IDS, 0)
    monkeypatch.setattr(lib, "llama_decode", Failing(code, works))
    with pytest.raises(error) as caught:
        model.forward([1, 2, 3], 1)
    monkeypatch.undo()
    assert "\n" not in str(caught.value)
    lost = name in ("mamba", "qwen35") and (works or code not in (1, -1))
    assert model.length == (0 if lost else len(IDS))
    held = IDS[: model.length]
    np.testing.assert_allclose(model.forward([7], 1)[0], fresh_row(other, [*held, 7], [len(held)]), atol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_a_window_is_never_rewound_too_far(load: Open, tmp_path: Path, whole: bool) -> None:
    """Also after a load, which brings back no more than the window."""
    model, other = (load("gemma", n_batch=64, swa_full=whole) for _ in range(2))
    ids = some_ids(model, 400)
    rewound: list[int] = []

    def refill() -> None:
        model.rewind(0)
        for start in range(0, 400, 64):
            model.forward(ids[start : start + 64], 0)

    refill()
    model.save(tmp_path / "cache")
    for loaded in (False, True):
        for length in (399, 385, 384, 380, *range(170, 140, -3), 40, 3):
            model.load(tmp_path / "cache") if loaded else refill()
            if rewind_if_possible(model, length):
                rewound.append(length)
                row = model.forward([7], 1)[0].copy()
                np.testing.assert_allclose(row, fresh_row(other, [*ids[:length], 7]), atol=0.08)
    assert rewound.count(399) == rewound.count(384) == 1
    assert rewound.count(3) == int(whole)


@pytest.mark.parametrize("works", [False, True])
@pytest.mark.parametrize("name", ["llama", "mamba", "qwen35"])
def test_a_prompt_that_failed_in_any_chunk_leaves_nothing_wrong_behind(load: Open, name: str, works: bool) -> None:
    """The next prompt, which shares the first chunks, is answered as by a new model."""
    model, other = (load(name, n_batch=32) for _ in range(2))
    prompt = some_ids(model, 120)
    again = [*prompt[:90], *IDS]
    wanted = fresh_row(other, again, [32, 64, 96, len(again) - 1])
    context = Context(model)
    for code, at in product((1, 2, -1, -3), range(4)):
        context.begin([*prompt[:10], 7])
        list(context.read(context.target))
        context.begin(prompt)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lib, "llama_decode", Failing(code, works, at))
            with pytest.raises((DecodeFailed, Interrupted)):
                list(context.read(context.target))
        context.begin(again)
        assert context.target.length <= 90
        list(context.read(context.target))
        np.testing.assert_allclose(context.advance(context.target, [], 1)[0], wanted, atol=1e-3)


def shifted(model: LlamaCppModel, ids: list[int], holes: int) -> list[int]:
    """Read `ids` and make some holes; the ids that are left."""
    model.rewind(0)
    for start in range(0, len(ids), 100):
        model.forward(ids[start : start + 100], 0)
    for _ in range(holes):
        model.drop(10, 110)
        ids = ids[:10] + ids[110:]
    return ids


@pytest.mark.parametrize("holes", [1, 3])
@pytest.mark.parametrize("flash", ["on", "off"])
def test_a_shift_turns_keys_to_where_they_now_stand(load: Open, tmp_path: Path, holes: int, flash: str) -> None:
    """With one layer nothing was seen of what is gone, so it shows; also in a cache that is saved at once."""
    model, other = (load("flat", n_ctx=1024, flash_attention=flash) for _ in range(2))
    ids = shifted(model, some_ids(model, 600), holes)
    wanted = fresh_row(other, [*ids, 3])
    model.save(tmp_path / "cache")
    np.testing.assert_allclose(model.forward([3], 1)[0], wanted, atol=0.08)
    other.load(tmp_path / "cache")
    np.testing.assert_allclose(other.forward([3], 1)[0], wanted, atol=0.08)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("yarn", {}),
        ("factor", {}),
        ("unturned", {}),
        ("windows", {}),
        ("gemma", {"swa_full": False, "n_batch": 64}),
        ("llama", {"kv": "q8_0"}),
        ("llama", {"kv": "q4_0"}),
        ("qwen35", {}),
        ("mamba", {}),
    ],
)
def test_what_llama_cpp_shifts_wrongly_or_dies_of_is_refused(load: Open, name: str, options: dict[str, object]) -> None:
    model = load(name, **options)
    assert not model.shifts
    feed(model, some_ids(model, 200), 50)
    with pytest.raises(CannotRewind, match="read again"):
        model.drop(10, 110)
    assert model.length == 200


def test_a_library_that_only_says_that_it_shifts_is_found_out(load: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    model, other = load(), load()
    monkeypatch.setattr(lib, "llama_memory_seq_add", lambda *_: None)
    assert not model.try_shift()
    np.testing.assert_allclose(model.forward(IDS, 1)[0], fresh_row(other, IDS), atol=1e-5)


def test_nothing_shifts_that_was_not_tried(load: Open) -> None:
    model = load()
    model.shifts = False
    feed(model, some_ids(model, 100), 50)
    with pytest.raises(CannotRewind, match="read again"):
        model.drop(10, 50)
    assert (model.try_shift(), model.length) == (True, 0)


def test_a_window_that_is_not_whole_does_not_shift(load: Open, tmp_path: Path) -> None:
    model = load("gemma")
    shifted(model, some_ids(model, 400), 1)
    model.save(tmp_path / "cache")
    model.load(tmp_path / "cache")
    with pytest.raises(CannotRewind):
        model.drop(10, 110)
    assert model.length == 300


def test_a_shift_cannot_be_stopped_half_way(load: Open) -> None:
    model, other = load("flat", n_ctx=1024), load("flat", n_ctx=1024)
    ids = shifted(model, some_ids(model, 600), 0)
    stop, model._abort = model._abort, lib.ggml_abort_callback(lambda _data: True)
    model._set_abort(model._abort)
    with pytest.raises(Interrupted):
        model.forward([3], 0)
    model.drop(10, 310)
    with pytest.raises(Interrupted):
        model.forward([3], 0)
    model._abort = stop
    model._set_abort(stop)
    np.testing.assert_allclose(model.forward([3], 1)[0], fresh_row(other, [*ids[:10], *ids[310:], 3]), atol=0.08)


@pytest.mark.parametrize("works", [False, True])
def test_a_shift_that_failed_leaves_an_empty_cache(load: Open, monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    model = load()
    model.forward(some_ids(model, 200), 0)
    monkeypatch.setattr(lib, "llama_decode", Failing(-3, works))
    with pytest.raises(DecodeFailed):
        model.drop(10, 110)
    assert model.length == 0


@pytest.mark.parametrize("lie", [lambda *_: True, lambda *_: False])
@pytest.mark.parametrize("name", ["llama", "mamba", "qwen35"])
def test_a_library_that_only_says_that_it_goes_back_is_found_out(
    load: Open, monkeypatch: pytest.MonkeyPatch, name: str, lie: Callable[..., bool]
) -> None:
    monkeypatch.setattr(lib, "llama_memory_seq_rm", lie)
    assert load(name).reach == 0


def test_more_snapshots_are_more_reach_and_never_boundless(load: Open) -> None:
    """llama.cpp then agrees to all that the trial asks for, and is right in a part of it."""
    assert [load("qwen35", snapshots=count).reach for count in (0, 1, 8, 16)] == [0, 1, 8, 16]


def test_a_snapshot_that_is_wrong_bounds_the_reach(load: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here those of three tokens and more are taken for those of two."""
    real = lib.llama_memory_seq_rm

    def remove(memory: object, sequence: int, start: int, end: int) -> bool:
        return bool(real(memory, sequence, max(start, held(memory) - 2), end))

    def held(memory: object) -> int:
        return int(lib.llama_memory_seq_pos_max(memory, 0)) + 1

    monkeypatch.setattr(lib, "llama_memory_seq_rm", remove)
    assert load("qwen35").reach == 2


def test_a_recurrent_model_says_that_it_cannot_go_back(load: Open) -> None:
    model = load("mamba")
    model.forward(IDS, 0)
    with pytest.raises(CannotRewind, match="read again"):
        model.rewind(5)
    assert model.length == len(IDS)
