"""What a network of transformers can do here, found by trying it before it is used.

The one invariant: a network whose cache would not hold all that it remembers is refused, since a conversation could
then be answered from what was never said in it.
"""

from dataclasses import dataclass

from engine.backends.torch_cache import ConversationCache
from engine.backends.trial import Trial, alike
from engine.early import LeavesEarly
from engine.errors import LoadFailed, ModelError

_AHEAD = (3, 4, 5)
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
    """Whether the rows of what has left after so many layers are, in the end, those of a whole pass."""
    model.rewind(0)
    whole = model.forward(_AHEAD, len(_AHEAD)).copy()
    model.rewind(0)
    try:
        for token in _AHEAD:
            model.leave([token], 1, layers)
        return alike(model.forward(_AHEAD, len(_AHEAD)), whole)
    except ModelError:
        return False
