"""What a network of transformers can do here, found by trying it before it is used.

The one invariant: a network whose cache would not hold all that it remembers is refused, since a conversation could
then be answered from what was never said in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.backends.torch_cache import ConversationCache
from engine.backends.trial import PLAIN, Trial, nearer
from engine.early import LeavesEarly
from engine.errors import LoadFailed, ModelError
from engine.model import FloatArray

_AHEAD = PLAIN[:3]
"""Tokens that leave early in a trial, and are taken up."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a network may be used."""

    reach: int | None
    """See Model.reach."""
    singly: bool
    """Whether it must read a token at a time once it holds a state."""
    leaves: bool
    """Whether it can be left early."""


def try_out(name: str, model: LeavesEarly, trial: Trial, cache: ConversationCache) -> Found:
    """Try the network called `name`, whose cache is not empty then.  LoadFailed; ModelError where a pass fails."""
    try:
        reach = trial.reach(0, model.n_batch)
    except LoadFailed as error:
        raise LoadFailed(
            f"{name} holds damaged weights ({error}): fetch it again, or take --weights bf16 in place of fp16"
        ) from error
    if not cache.used or not trial.remembers():
        raise LoadFailed(f"{name} remembers what it has read in a way that is not known here: take another model")
    if not cache.whole:
        return Found(0, not trial.goes_on(), leaves=False)
    leaves = model.layers > 1 and all(_takes_up(model, layers) for layers in {1, model.layers - 1})
    return Found(reach, singly=False, leaves=leaves)


def _takes_up(model: LeavesEarly, layers: int) -> bool:
    """Whether what has left after so many layers has, in the end, the row of a whole pass."""
    alone, whole = (_rows(model, tokens) for tokens in (_AHEAD[-1:], _AHEAD))
    model.rewind(0)
    try:
        for token in _AHEAD:
            model.leave([token], 1, layers)
        taken_up = model.forward(_AHEAD, len(_AHEAD))
    except ModelError:
        return False
    return nearer(taken_up[-1], whole[-1], alone[-1])


def _rows(model: LeavesEarly, tokens: Sequence[int]) -> FloatArray:
    model.rewind(0)
    return model.forward(tokens, len(tokens)).copy()
