"""Leaving a model early: what its first layers and its own head say before the rest of it has run.

No second Model: the first layers' cache is the model's own.  The one invariant: what left early is ahead of the cache
and no part of it, so `length` and all rows of `forward` are as if nothing had ever left.  (Elhoushi et al. 2024.)
"""

from collections.abc import Sequence
from typing import Protocol, TypeGuard

from engine.model import FloatArray, Model


class LeavesEarly(Model, Protocol):
    """A Model that also answers after its first layers."""

    @property
    def layers(self) -> int:
        """How many it has; fewer than 2: there is no early exit."""
        ...

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        """Rows of `tokens` after the first `layers` layers and the head, float32 [rows, vocab] as forward's.

        They stand behind the cache and behind what left before in this run; `length` stays.  The next `forward` takes
        up what is ahead where it begins with those tokens, and runs the other layers alone for them.  Any other
        `forward`, any `rewind`, `drop` or `load`, and a `leave` after another number of layers forget it.  Errors as
        forward's; what the cache holds is then as it was.
        """
        ...


def leaves_early(model: Model) -> TypeGuard[LeavesEarly]:
    """Whether a model can be left early."""
    return getattr(model, "layers", 0) > 1 and hasattr(model, "leave")
