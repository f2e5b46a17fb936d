"""What a Model that can be left early must do, and how each backend joins: one EarlyCase.

The tests are in test_early_contract.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.early import LeavesEarly
from engine.model import FloatArray
from tests.engine.backends.contract import Waiting, feed


@dataclass(frozen=True)
class EarlyCase:
    """One backend that leaves early."""

    name: str
    make: Callable[[Path], LeavesEarly]
    """Makes the same model each time; the folder is for its files."""
    waiting: Waiting
    tolerance: float = 0.0
    """How far a logit may be off when the same ids were cut into other passes; 0: not a bit."""

    def expect(self, rows: FloatArray, reference: FloatArray) -> None:
        """Equal, or as near as another cut of the same ids may come."""
        np.testing.assert_allclose(rows, reference, rtol=0, atol=self.tolerance)


def early_row(model: LeavesEarly, ids: Sequence[int], layers: int) -> FloatArray:
    """The row after `ids` by the first layers alone, from an empty cache; a copy."""
    model.rewind(0)
    feed(model, ids[:-1], 40)
    return model.leave(ids[-1:], 1, layers)[0].copy()


def whole_rows(model: LeavesEarly, ids: Sequence[int], tokens: Sequence[int]) -> FloatArray:
    """The rows of `tokens` after `ids` where nothing has left early; a copy."""
    model.rewind(0)
    feed(model, ids, 40)
    return model.forward(tokens, len(tokens)).copy()
