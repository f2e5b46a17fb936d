"""The sampling settings of one answer, applied to rows: each row sees the history that its position would have."""

from collections.abc import Sequence

from engine.config import Sampling
from engine.model import FloatArray
from engine.sampling import Distribution, distribution


class Sampler:
    """Turns rows into distributions for one answer that starts at `start`; `size` real ids, `eog` ends it."""

    def __init__(self, sampling: Sampling, size: int, eog: frozenset[int], start: int) -> None:
        self.eog = eog
        self.start = start
        self._sampling, self._size = sampling, size
        self._looks_back = sampling.repeat_penalty != 1 and sampling.repeat_last > 0
        self._counts = sampling.frequency_penalty != 0 or sampling.presence_penalty != 0

    def __call__(self, row: FloatArray, ids: Sequence[int], ahead: Sequence[int]) -> Distribution:
        """The distribution after `ids` and then `ahead`; only the history that a penalty needs is copied."""
        history = [*ids[-self._sampling.repeat_last :], *ahead] if self._looks_back else ()
        answer = [*ids[self.start :], *ahead] if self._counts else ()
        return distribution(row, self._size, self._sampling, history, answer)
