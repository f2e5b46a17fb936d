"""Recorded answers played again under any plan, with passes that take the time that a cost table says.

The loop, the planner and the drafters are the real ones; the models only know what was said, and a clock of their own
moves with each pass.  So planners are compared in seconds, on machines that need not be there.  One invariant: what is
said is the recording, whatever is drafted, so that only time can differ.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
from msgspec.structs import replace as altered

from engine.backends.toy import ToyVocabulary
from engine.bounds import check_drop, check_pass, check_rewind, check_room
from engine.config import Frozen, Sampling, Speculation
from engine.context import Context
from engine.costs import Costs, Surface
from engine.drafters import Drafter
from engine.drafters.lookup import LookupDrafter
from engine.drafters.model import ModelDrafter
from engine.errors import ModelError
from engine.experience import Experience
from engine.generate import Answering, RoundDone, rounds
from engine.model import FloatArray
from engine.planner import Planner
from engine.sampler import Sampler
from engine.verify import Generator, Rejection

Agrees = Callable[[int], bool]
"""Whether the draft model says at this place of the answer what the target says."""


class Recording(Frozen, frozen=True, kw_only=True):
    """An answer that was given: ids of the prompt and of the answer."""

    kind: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    size: int = 0
    """Ids are below it; 0: as they were recorded."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a plan made of a recording."""

    ms: float
    """From the end of the first round to the end of the last."""
    tokens: int
    """That came in this time."""
    rounds: list[RoundDone]

    @property
    def pace(self) -> float:
        """Tokens per millisecond."""
        return self.tokens / self.ms


@dataclass(slots=True)
class Clock:
    """Moves only when it is told to."""

    ms: float = 0.0

    def __call__(self) -> float:
        """Seconds."""
        return self.ms / 1000


@dataclass
class Knowing:
    """A Model that knows what is said: its row after n ids holds the id that comes next, or another one."""

    said: Sequence[int]
    size: int
    takes: Callable[[int, int], None]
    """Told each pass: its width, and how many tokens the cache holds."""
    agrees: Agrees = field(default=lambda _: True)
    length: int = 0
    n_batch: int = 512
    reach: int | None = None

    def __post_init__(self) -> None:
        self.vocab = ToyVocabulary([b"x"] * self.size)
        self.n_ctx = len(self.said) + 128

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward."""
        check_pass(tokens, rows, self.n_batch, self.size)
        check_room(self.length, len(tokens), self.n_ctx)
        if rows:  # reading is not counted
            self.takes(len(tokens), self.length)
        self.length += len(tokens)
        out = np.zeros((rows, self.size), np.float32)
        for row in range(rows):
            place = self.length - rows + row + 1
            right = self.said[place] if place < len(self.said) else 0
            out[row, right if self.agrees(place) else (right + 1) % self.size] = 9.0
        return out

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        check_rewind(self.length, length)
        self.length = length

    def drop(self, start: int, end: int) -> None:
        """See Model.drop."""
        check_drop(self.length, start, end)
        self.length -= end - start

    def interrupt(self) -> None:
        """Passes take no real time."""

    def save(self, path: Path) -> None:
        """Never."""
        raise ModelError(f"a rehearsal has nothing to save to {path.name}")

    def load(self, path: Path) -> None:
        """Never."""
        raise ModelError(f"a rehearsal cannot take over {path.name}")

    def close(self) -> None:
        """Nothing to free."""


def narrowed(*recordings: Recording) -> list[Recording]:
    """The recordings with their ids counted through, which makes rows small; alike in all, as experience needs it."""
    ids = chain.from_iterable((*one.prompt, *one.answer) for one in recordings)
    names = {token: at for at, token in enumerate(dict.fromkeys(ids))}

    def named(tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(names[token] for token in tokens)

    size = max(2, len(names))
    return [altered(one, prompt=named(one.prompt), answer=named(one.answer), size=size) for one in recordings]


def rehearse(
    recording: Recording,
    speculation: Speculation,
    costs: Costs,
    experience: Experience | None = None,
    agrees: Agrees | None = None,
    truth: Surface | None = None,
) -> Rehearsed:
    """Play a recording under a setting; with `agrees` there is a draft model, whose tokens take what `costs` says.

    `experience` goes on from before where it is given; `truth` is what target passes really take, where the planner is
    to begin with wrong costs.
    """
    if not recording.size:
        [recording] = narrowed(recording)
    size = recording.size
    said, clock = (*recording.prompt, *recording.answer), Clock()
    takes, draft_ms = truth or costs.target, costs.drafts["model"].ms if agrees else 0.0

    def target_takes(width: int, held: int) -> None:
        clock.ms += takes(width, held)

    def draft_takes(width: int, _held: int) -> None:
        clock.ms += draft_ms * (1 + 0.05 * (width - 1))

    target = Knowing(said, size, target_takes)
    draft = Knowing(said, size, draft_takes, agrees) if agrees else None
    context = Context(target, draft)
    context.begin(recording.prompt)
    for cache in context.caches:
        for _ in context.read(cache):
            pass
    sampler = Sampler(Sampling(temperature=0), size, frozenset(), len(recording.prompt))
    rule = Rejection(Generator(0, 0))
    drafters: list[Drafter] = [LookupDrafter(frozenset())]
    if draft:
        drafters.append(ModelDrafter(context, rule, sampler, lambda: False))
    planner = Planner(speculation, experience or Experience(costs))
    answering = Answering(context, drafters, planner, rule, sampler, len(recording.answer), clock)
    return _timed(answering, clock)


def _timed(answering: Answering, clock: Clock) -> Rehearsed:
    done: list[RoundDone] = []
    first = 0.0
    with closing(rounds(answering)) as steps:
        for step in steps:
            if isinstance(step, RoundDone):
                done.append(step)
                first = first or clock.ms
    tokens = sum(len(step.tokens) for step in done[1:])
    return Rehearsed(clock.ms - first, tokens, done)


def fastest(found: Sequence[Rehearsed]) -> Rehearsed:
    """The one of the most tokens per millisecond."""
    return max(found, key=lambda one: one.pace)


def without_draft(costs: Costs) -> Costs:
    """The same machine with no draft model."""
    return replace(costs, drafts={})
