"""A replayed model gives the rows of the real one, each computed once, however its passes are cut."""

from pathlib import Path

import numpy as np
import pytest

from engine.backends.toy import Kind, ToyLM
from engine.errors import CannotRewind, DecodeFailed, LoadFailed, ModelError
from engine.experiments.replay import Replayed, Rows, noise


def real_row(ids: list[int]) -> np.ndarray:
    return ToyLM(32).forward(ids, 1)[0].copy()


@pytest.mark.parametrize("kind", ["dense", "recurrent"])
def test_rows_are_the_real_ones_after_any_walk(kind: Kind) -> None:
    generator = np.random.default_rng(1)
    model = Replayed(Rows(ToyLM(32, kind=kind)))
    ids: list[int] = []
    for _ in range(150):
        if ids and generator.random() < 0.4:
            length = int(generator.integers(0, len(ids) + 1))
            model.rewind(length)
            del ids[length:]
        tokens = generator.integers(0, 3, generator.integers(1, 5)).tolist()
        rows = model.forward(tokens, int(generator.integers(0, len(tokens) + 1)))
        ids += tokens
        assert model.length == len(ids)
        for back, row in enumerate(rows[::-1]):
            np.testing.assert_array_equal(row, real_row(ids[: len(ids) - back]))


def test_a_row_is_computed_once() -> None:
    rows = Rows(ToyLM(32))
    first, second = Replayed(rows), Replayed(rows)
    first.forward([1, 2, 3], 0)
    assert rows.passes == 0
    first.forward([4, 5], 2)
    assert rows.passes == 1
    second.forward([1, 2, 3, 4], 1)
    second.forward([5], 1)
    first.rewind(3)
    first.forward([4, 5], 2)
    assert rows.passes == 1
    first.forward([6], 1)
    rows.after([1, 2, 3, 4, 5, 6])
    assert rows.passes == 2


def test_the_pass_is_made_as_it_was_asked_for() -> None:
    real = ToyLM(32)
    passes: list[list[int]] = []
    real.on_pass = lambda tokens: passes.append(list(tokens))
    model = Replayed(Rows(real))
    model.forward(list(range(5)), 0)
    model.forward([7, 8, 9], 3)
    assert passes == [list(range(5)), [7, 8, 9]]
    model.rewind(5)
    model.forward([7, 9], 2)
    assert passes[2:] == [[7, 9]]


def test_a_row_that_differs_in_another_pass_stays_what_it_was_first() -> None:
    real = ToyLM(32)
    model = Replayed(Rows(real))
    before = model.forward([1, 2], 2).copy()
    real.seed = 5
    model.rewind(0)
    after = model.forward([1, 2, 3], 3)
    np.testing.assert_array_equal(after[:2], before)
    assert (after[2] != real_row([1, 2, 3])).any()


def test_what_is_forgotten_is_computed_again() -> None:
    rows = Rows(ToyLM(32))
    rows.after([1, 2])
    rows.after([3])
    rows.forget({(3,)})
    rows.after([3])
    assert rows.passes == 2
    rows.after([1, 2])
    assert rows.passes == 3


def test_noise_makes_another_model_of_the_same_rows() -> None:
    rows = Rows(ToyLM(32))
    plain, blurred = Replayed(rows), Replayed(rows, noise(3, 32, 1.5))
    ours, theirs = plain.forward([1, 2], 2).copy(), blurred.forward([1, 2], 2).copy()
    assert rows.passes == 1
    for row in range(2):
        np.testing.assert_allclose(theirs[row] - ours[row], noise(3, 32, 1.5), atol=1e-5)
    assert 1 < noise(3, 32, 1.5).std() < 2
    np.testing.assert_array_equal(blurred.row_after([1, 2]), theirs[1])
    assert (noise(4, 32, 1.5) != noise(3, 32, 1.5)).any()


def test_it_refuses_what_a_model_refuses(tmp_path: Path) -> None:
    model = Replayed(Rows(ToyLM(8, n_ctx=10)))
    model.forward([1, 2], 1)
    for tokens, rows in (([], 0), ([8], 1), ([-1], 1), ([1], 2), ([1] * 65, 0)):
        with pytest.raises(ValueError):
            model.forward(tokens, rows)
    with pytest.raises(DecodeFailed):
        model.forward([0] * 9, 0)
    with pytest.raises(ValueError):
        model.rewind(3)
    with pytest.raises(CannotRewind):
        model.drop(0, 1)
    with pytest.raises(ModelError):
        model.save(tmp_path / "x")
    assert model.length == 2
    with pytest.raises(LoadFailed):
        model.load(tmp_path / "x")
    assert model.length == 0
