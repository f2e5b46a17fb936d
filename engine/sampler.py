"""The sampling settings of one answer, applied to rows: each row sees the history that its position would have.

One invariant: what a position sees is a function of the committed ids and of the drafts before it; the tally of the
committed ids is only kept so that a long answer is not counted again for each row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from engine import narrow
from engine.config import Sampling
from engine.model import FloatArray
from engine.narrow import Candidates, Want
from engine.penalties import Used, counts_answer, looks_back
from engine.sampling import Distribution, after


class Sampler:
    """Turns rows into distributions for one answer that starts at `start`; `size` real ids, `eog` ends it."""

    def __init__(self, sampling: Sampling, size: int, eog: frozenset[int], start: int) -> None:
        self.eog = eog
        self.start = start
        self._sampling, self._size = sampling, size
        self._looks_back, self._counts_answer = looks_back(sampling), counts_answer(sampling)
        self._counted = start
        self._counts: Counter[int] = Counter()

    def __call__(self, row: FloatArray | Candidates, ids: Sequence[int], ahead: Sequence[int]) -> Distribution:
        """The distribution after `ids`, which only grow from call to call, and then `ahead`."""
        recent = self._recent(ids, ahead) if self._looks_back else frozenset[int]()
        used = Used(recent, self._tally(ids, ahead))
        if isinstance(row, Candidates):
            return narrow.after(row, self._size, self._sampling, used)
        return after(row, self._size, self._sampling, used)

    def want(self, ids: Sequence[int], ahead: Sequence[int]) -> Want | None:
        """What is enough of the rows after `ids` and after each beginning of `ahead`; None: whole rows."""
        touched = {*self._sampling.logit_bias, *self._tally(ids, ahead)}
        if self._looks_back:
            touched |= {*self._recent(ids, ()), *ahead}  # what leaves the window on the way counts as well
        named = tuple(token for token in touched if 0 <= token < self._size)
        count = narrow.wanted(self._sampling, self._size, len(named))
        return None if count is None else Want(count, named)

    def _recent(self, ids: Sequence[int], ahead: Sequence[int]) -> set[int]:
        back = self._sampling.repeat_last
        return {*ids[max(0, len(ids) + len(ahead) - back) :], *ahead[-back:]}

    def _tally(self, ids: Sequence[int], ahead: Sequence[int]) -> Mapping[int, int]:
        if not self._counts_answer:
            return {}
        self._counts.update(ids[self._counted :])
        self._counted = len(ids)
        return self._counts + Counter(ahead) if ahead else self._counts
