"""What every Model must do, and how each backend joins: one Case.  The tests are in test_contract.py."""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from engine.errors import CannotRewind, Interrupted
from engine.model import FloatArray, Model

Kind = Literal["dense", "sliding", "recurrent"]


Waiting = Callable[[Model], AbstractContextManager[None]]
"""While the context is open, a pass lasts until it is interrupted."""


@dataclass(frozen=True)
class Case:
    """One backend, in one kind."""

    name: str
    make: Callable[[Path], Model]
    """Makes the same model each time; the folder is for its files."""
    waiting: Waiting
    kind: Kind = "dense"
    reach: int | None = None
    """What Model.reach must be found to be."""
    shifts: bool = False
    """Whether Model.drop must work."""
    tolerance: float = 0.0
    """How far a logit may be off when the same ids were cut into other passes; 0: not a bit."""


def feed(model: Model, ids: Sequence[int], width: int) -> FloatArray:
    """Feed `ids` in passes of `width`; a copy of the last row."""
    row = np.zeros(0, np.float32)
    for start in range(0, len(ids), width):
        row = model.forward(ids[start : start + width], 1)[-1].copy()
    return row


def fresh_row(model: Model, ids: Sequence[int], cuts: Iterable[int] | None = None) -> FloatArray:
    """The row after `ids` from an empty cache, read in passes that end at `cuts` (else as wide as can be)."""
    model.rewind(0)
    ends = list(range(model.n_batch, len(ids), model.n_batch)) if cuts is None else list(cuts)
    row, start = np.zeros(0, np.float32), 0
    for end in [*ends, len(ids)]:
        if end > start:
            row = model.forward(list(ids[start:end]), 1)[-1].copy()
            start = end
    return row


def rewind_if_possible(model: Model, length: int) -> bool:
    """Rewind; whether that could be done.  A refusal must leave the length alone."""
    before = model.length
    try:
        model.rewind(length)
    except CannotRewind:
        assert model.length == before
        return False
    assert model.length == length
    return True


def expect_same(case: Case, row: FloatArray, reference: FloatArray) -> None:
    """Equal, or as near as another cut of the same ids may come."""
    if case.tolerance == 0:
        np.testing.assert_array_equal(row, reference)
    else:
        np.testing.assert_allclose(row, reference, rtol=0, atol=case.tolerance)


def interrupted_pass(model: Model, tokens: Sequence[int]) -> bool:
    """Run one pass while another thread interrupts again and again; whether it was cut short."""
    done, ready = threading.Event(), threading.Event()

    def insist() -> None:
        ready.set()
        while not done.wait(0.001):  # a pass in Python would hardly come to its turn
            model.interrupt()

    thread = threading.Thread(target=insist)
    thread.start()
    ready.wait()
    try:
        model.forward(tokens, 1)
    except Interrupted:
        return True
    finally:
        done.set()
        thread.join()
    return False


def some_ids(model: Model, count: int, seed: int = 0) -> list[int]:
    """Random ids of the model's vocabulary."""
    return np.random.default_rng(seed).integers(0, model.vocab.size, count).tolist()
