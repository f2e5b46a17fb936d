"""The committed ids of a conversation, and the caches that follow them.

The one invariant: `context.ids[:cache.length]` is what each cache holds.  A cache that lags is fed what it lacks just
before it is used; one that ran ahead (drafts) is rewound by `commit` or `settle`.  Before a cache is changed it is
marked unknown; if the change fails it is cleared, never guessed.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from engine.config import Frozen
from engine.early import leaves_early
from engine.errors import CannotRewind, Interrupted, ModelError
from engine.model import FloatArray, Model
from engine.narrow import NarrowRows, Narrows, Want

T = TypeVar("T")
Wants = Callable[[Sequence[int], Sequence[int]], Want | None]
"""Asked with the ids and with what is read ahead: what is enough of the rows; None: whole rows."""


class Marks(Frozen, frozen=True):
    """From which token on the target's cache is not as a prompt and single passes leave it; None: nowhere."""

    wide: int | None = None
    """What a wide pass wrote, or was read after it."""
    moved: int | None = None
    """What a shift moved, or was read after it."""
    ahead: int | None = None
    """Whole batches that were read ahead of a prompt that may turn out otherwise."""


class Cache:
    """One model and what is known of its cache."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.narrow = model if isinstance(model, Narrows) and model.narrows else None
        """The model, where it is better asked for narrow rows."""
        self._known = True

    @property
    def length(self) -> int:
        """Tokens that surely are in the cache."""
        return self.model.length if self._known else 0

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """The model's forward; a failure other than Interrupted leaves the cache empty."""
        return self._pass(lambda: self.model.forward(tokens, rows))

    def forward_narrow(self, tokens: Sequence[int], rows: int, want: Want) -> NarrowRows:
        """As `forward`, of a model that narrows."""
        assert self.narrow is not None
        model = self.narrow
        return self._pass(lambda: model.forward_narrow(tokens, rows, want.count, want.named))

    def _pass(self, forward: Callable[[], T]) -> T:
        if not self._known:
            self.clear()
        self._known = False
        try:
            out = forward()
        except (Interrupted, ValueError):
            self._known = True
            raise
        except BaseException:
            self.clear()
            raise
        self._known = True
        return out

    def rewind(self, length: int) -> None:
        """Keep at most `length` tokens: exactly so many where the model can, else none."""
        if length >= self.length:
            return
        try:
            self.model.rewind(length)
        except CannotRewind:
            self.clear()
        except BaseException:
            self._known = False
            raise

    def drop(self, start: int, end: int, shift: bool) -> bool:
        """Forget the tokens from `start` to `end`: whether those after them moved up, else they are gone as well."""
        moved = False
        if shift and end < self.length:
            self._known = False
            with contextlib.suppress(CannotRewind):
                self.model.drop(start, end)
                moved = True
            self._known = True
        if not moved:
            self.rewind(start)
        return moved

    def load(self, path: Path) -> None:
        """Take over a saved cache; LoadFailed leaves it empty."""
        self._known = False
        self.model.load(path)
        self._known = True

    def forget_ahead(self) -> None:
        """Forget what left the model early; what the cache holds stays as it is."""
        length, self._known = self.length, False
        self.model.rewind(length)
        self._known = True

    def doubt(self) -> None:
        """Count on nothing in the cache: it is cleared before it is used again."""
        self._known = False

    def clear(self) -> None:
        """Empty the cache; a model that cannot even do that stays unknown."""
        self._known = False
        self.model.rewind(0)
        self._known = True


class Context:
    """The ids of one conversation with the caches of its target and, if there is one, its draft.

    `exit_layers`: after how many of its layers the target is left where it drafts for itself; None: nowhere.
    """

    def __init__(self, target: Model, draft: Model | None = None, exit_layers: int | None = None) -> None:
        self.target = Cache(target)
        self.draft = Cache(draft) if draft else None
        self.exit_layers = exit_layers
        self.ids: list[int] = []
        self._wide = self._moved = math.inf
        self._ahead = math.inf
        """From where on the target's cache holds whole batches that were read ahead."""
        self._left: tuple[int, list[int]] = 0, []
        """What left the target early in this round, and how many tokens its cache held then."""

    @property
    def caches(self) -> list[Cache]:
        """Target first."""
        return [self.target, self.draft] if self.draft else [self.target]

    def begin(self, prompt: Sequence[int], ahead: bool = False) -> int:
        """Take over a prompt, keep what the caches share with it, and return the length of what is shared.

        The last prompt token is never kept: its row opens the answer.  Nor is a part of a batch that was read ahead:
        it is read as if it had not been.  `ahead`: the prompt is still a guess, and more of it may be read ahead.
        """
        shared = min(common_prefix(self.ids, prompt), len(prompt) - 1)
        for cache in self.caches:
            cache.rewind(self._border(cache, shared))
        if not ahead or self.target.length <= self._ahead:
            self._ahead = math.inf
        if not self.holds_wide:
            self._wide = math.inf
        if not self.holds_moved:
            self._moved = math.inf
        self.ids, self._left = list(prompt), (0, [])
        return shared

    def _border(self, cache: Cache, length: int) -> int:
        """The most tokens up to `length` that end no batch of what was read ahead before its end."""
        if cache is self.target and self._ahead < length < cache.length:
            return max(int(self._ahead), length - length % cache.model.n_batch)
        return length

    def hold(self, ids: Sequence[int] = (), marks: Marks | None = None) -> None:
        """Take over ids of which no cache holds anything yet, and the marks of what the target's cache will hold."""
        self.settle(0)
        self.ids, self._left = list(ids), (0, [])
        at = structs.astuple(marks or Marks())
        self._wide, self._moved, self._ahead = (math.inf if mark is None else mark for mark in at)

    @property
    def marks(self) -> Marks:
        """Where what `holds_wide` and what `holds_moved` tells of begins in the target's cache, and what is ahead."""
        return Marks(*(None if math.isinf(mark) else int(mark) for mark in (self._wide, self._moved, self._ahead)))

    @property
    def holds_wide(self) -> bool:
        """Whether the target's cache holds what a pass over drafts wrote or a shift moved, or was read after it."""
        return self.target.length > self._wide

    @property
    def holds_moved(self) -> bool:
        """Whether it holds what a shift moved, or was read after it."""
        return self.target.length > self._moved

    def read(self, cache: Cache) -> Iterator[int]:
        """Feed a cache all but the last id, in chunks that end at multiples of its batch; yields tokens held so far."""
        return self._feed(cache, len(self.ids) - 1, cache.model.n_batch)

    def read_ahead(self, cache: Cache, end: int, piece: int) -> Iterator[int]:
        """As `read`, for the ids before `end` alone, in chunks that end at multiples of `piece`.

        The last of them ends anywhere unless `piece` is the whole batch: then only whole batches are read, and `begin`
        goes back to a border of theirs, so that all is as if `read` had done it.  Else the target's cache counts as
        `holds_wide`: chunks of another size are passes of another width.
        """
        batch = cache.model.n_batch
        if piece >= batch:
            if cache is self.target:
                self._ahead = min(self._ahead, cache.length)
            return self._feed(cache, end - end % batch, batch)
        if cache is self.target and cache.length < end:
            self._wide = min(self._wide, cache.length)
        return self._feed(cache, end, piece)

    def _feed(self, cache: Cache, end: int, chunk: int) -> Iterator[int]:
        while cache.length < end:
            start = cache.length
            stop = min(end, start - start % chunk + chunk)
            cache.forward(self.ids[start:stop], 0)
            yield cache.length

    def advance(self, cache: Cache, ahead: Sequence[int], rows: int) -> FloatArray:
        """Feed a cache what it lacks of the ids and then `ahead`; the last `rows` rows of logits."""
        return cache.forward(self._lacking(cache, ahead), rows)

    def advance_for(self, wants: Wants, cache: Cache, ahead: Sequence[int], rows: int) -> FloatArray | NarrowRows:
        """As `advance`; narrow rows where the model narrows and they are enough by `wants`."""
        want = wants(self.ids, ahead) if cache.narrow else None
        if want is None:
            return self.advance(cache, ahead, rows)
        return cache.forward_narrow(self._lacking(cache, ahead), rows, want)

    def _lacking(self, cache: Cache, ahead: Sequence[int]) -> list[int]:
        """What a cache lacks of the ids, and then `ahead`."""
        if ahead and cache is self.target:
            self._wide = min(self._wide, cache.length)
        beyond = cache.length - len(self.ids)
        return [*self.ids[cache.length :], *ahead] if beyond < 0 else list(ahead[beyond:])

    def leave(self, ahead: Sequence[int]) -> FloatArray:
        """The target's early row, [1, vocab], after the ids and then `ahead`; its cache stays as it is.

        What did not leave yet does so now, whoever drafted it; without `ahead` a run begins.  The ids but the last have
        been read.  Whatever fails, the cache holds what it held.
        """
        target = self.target
        if not leaves_early(target.model) or self.exit_layers is None:
            raise ValueError("the target is not left early")
        ids, (held, left) = [*self.ids[target.length :], *ahead], self._left
        if not ahead or held != target.length or left != ids[:-1][: len(left)]:
            target.forget_ahead()  # of a run that was never verified
            left = []
        self._left = 0, []
        try:
            row = target.model.leave(ids[len(left) :], 1, self.exit_layers)
            self._left = target.length, ids
            return row
        except BaseException:
            with contextlib.suppress(ModelError):  # then it counts as empty
                target.forget_ahead()
            raise

    def commit(self, tokens: Sequence[int], fed: int) -> None:
        """Append the round's tokens, of which the first `fed` are drafts that the caches may hold."""
        for cache in self.caches:
            cache.rewind(len(self.ids) + fed)
        self.ids.extend(tokens)

    def settle(self, length: int | None = None) -> None:
        """Cut the ids to `length` (None: as they are) and rewind whatever ran past them."""
        if length is not None:
            del self.ids[length:]
        for cache in self.caches:
            cache.rewind(len(self.ids))

    def forget(self, start: int, end: int, shift: bool = True) -> None:
        """Take the ids from `start` to `end` out of the conversation, and out of each cache.

        With `shift` the caches keep what they read after them, where they can: near to a fresh reading, so the target's
        counts as `holds_moved` from `start` on.  Else a cache keeps what stands before `start` and reads the rest
        again, which is exact.  A cache that fails counts as empty; a ModelError of the target's is raised.
        """
        if not 0 <= start <= end <= len(self.ids):
            raise ValueError(f"cannot forget {start} to {end} of {len(self.ids)} ids")
        if start == end:
            return
        del self.ids[start:end]
        try:
            shifted = self.target.drop(start, end, shift)
        except BaseException:
            if self.draft:
                self.draft.doubt()  # it holds what is forgotten
            raise
        if shifted:
            self._wide, self._moved = min(self._wide, start), min(self._moved, start)
        if self.draft:
            with contextlib.suppress(ModelError):  # then it counts as empty, and reads again
                self.draft.drop(start, end, shift)

    def rest(self) -> None:
        """Leave the target one token behind the ids, as every round does, so that what comes next reads alike.

        One that can go back only a little stays as it is, rather than lose everything.
        """
        if self.target.model.reach is None:
            self.target.rewind(max(0, len(self.ids) - 1))


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix, by halving: slices compare at the speed of C."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if list(a[low:middle]) == list(b[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low
