"""The real loop, put together from its parts and played over all chance: exact distributions of whole answers.

Two ways.  `over_whole_runs` walks every path of choices through all rounds.  `round_by_round` walks the choices of one
round from each state that rounds lead to, and adds up what leads to the same state; every state is reached by playing
the rounds before it, so what is carried from round to round is really carried.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from engine.backends.toy import EarlyLM
from engine.config import Sampling, Speculation
from engine.context import Context
from engine.drafters import Drafter, Offer, Submits, always
from engine.drafters.exit import ExitDrafter
from engine.drafters.lookup import LookupDrafter
from engine.drafters.model import ModelDrafter
from engine.generate import Answering, RoundDone, rounds
from engine.model import FloatArray
from engine.planner import Drafting, FixedDrafting, Planner
from engine.reasons import Reason
from engine.sampler import Sampler
from engine.sampling import Distribution
from engine.stats import Source
from engine.verify import Coupled, Rejection, Rule
from tests.engine.rounds import Path, Prefix, every_outcome, every_path
from tests.engine.rows import reference
from tests.engine.simplex import TriangleNoise

END = -1
"""Stands in an answer for the end-of-generation token."""
SAID = (0, 1, 2, 0, 1, 1, 2, 2, 0, 1)
"""The prompt of vocabularies that have these ids; whatever is answered, lookup finds something in it."""


Known = dict[tuple[bytes, Prefix, Prefix], Distribution]


EXIT_LAYERS = 4
"""Of 8: the early row is half the target's own."""


class Remembering(EarlyLM):
    """An EarlyLM that works out each row once; its padding, if any, is what the model likes best."""

    def __init__(self, size: int, seed: int, blur: float = 0.0, eog: Sequence[int] = (), padding: int = 0) -> None:
        super().__init__(size, seed=seed, blur=blur, eog=eog)
        self.padding = padding
        self._known: dict[Prefix, FloatArray] = {}
        self._known_early: dict[Prefix, FloatArray] = {}

    def row(self, ids: Sequence[int]) -> FloatArray:
        key = tuple(ids)
        if key not in self._known:
            self._known[key] = super().row(ids)
        return self._known[key]

    def early_row(self, ids: Sequence[int], layers: int) -> FloatArray:
        key = (layers, *ids)
        if key not in self._known_early:
            self._known_early[key] = super().early_row(ids, layers)
        return self._known_early[key]

    def _filled(self, rows: Sequence[FloatArray]) -> FloatArray:
        out = super()._filled(rows)
        out[:, self.vocab.size :] = 99
        return out


class RememberingSampler(Sampler):
    """A sampler that is asked once for equal arguments."""

    def __init__(self, sampler: Sampler, known: Known) -> None:
        self.eog, self.start = sampler.eog, sampler.start
        self._sampler, self._known = sampler, known

    def __call__(self, row: FloatArray, ids: Sequence[int], ahead: Sequence[int]) -> Distribution:
        key = (row.tobytes(), tuple(ids), tuple(ahead))
        if key not in self._known:
            self._known[key] = self._sampler(row, ids, ahead)
        return self._known[key]


class Fixed(Planner):
    """The real planner at a fixed length."""

    def __init__(self, path: Path, context: Context, most: int) -> None:
        super().__init__(Speculation(mode="fixed", length=most))
        self.path, self.context, self.most = path, context, most


class ByChance(Drafting):
    """Source and length of each piece are choices of the path; to draft no more is one of them."""

    def __init__(self, planner: Fixed, room: int) -> None:
        super().__init__(planner.speculation, Reason(""), room)
        self._path = planner.path

    def next(self, offers: Sequence[Offer]) -> Offer | None:
        mine = [offer for offer in offers if offer.source not in self._declined]
        options: list[Offer | None] = [None]
        options += [replace(offer, length=n) for offer in mine for n in range(1, offer.length + 1) if offer.tokens]
        options += [replace(offer, length=1) for offer in mine if not offer.tokens]
        return self._path.branch([(option, 1 / len(options)) for option in options])


class Chancy(Fixed):
    """Chained drafts of all kinds."""

    def begin(self, room: int, context: int) -> Drafting:
        return ByChance(self, min(room, self.most))


class ByIds(Fixed):
    """The length of each round is a function of the ids before it."""

    def begin(self, room: int, context: int) -> Drafting:
        return FixedDrafting(self.speculation, Reason(""), min(room, sum(self.context.ids) % (self.most + 1)))


class Submitting(Planner):
    """A planner whose drafting asks `submits` as well."""

    def __init__(self, planner: Planner, submits: Submits) -> None:
        super().__init__(planner.speculation)
        self.begin, self.observe = self._begin, planner.observe  # type: ignore[method-assign]
        self._planner, self._asked = planner, submits

    def _begin(self, room: int, context: int) -> Drafting:
        drafting = self._planner.begin(room, context)
        drafting.submits = self._asked  # type: ignore[method-assign]
        return drafting


def coupled(path: Path) -> Rule:
    """The coupled rule over noise that is a choice of the path; three tokens at most."""
    return Coupled(TriangleNoise(path))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Parts:
    """What the loop is made of; the defaults are the real ones."""

    rule: Callable[[Path], Rule] = Rejection
    context: type[Context] = Context
    sampler: type[Sampler] = Sampler
    drafter: type[ModelDrafter] = ModelDrafter
    exit: type[ExitDrafter] = ExitDrafter
    planner: Callable[[Path, Context, int], Planner] = Fixed


class State(NamedTuple):
    """Where a round has led to; equal states go on alike."""

    answer: Prefix
    done: bool
    held: tuple[int, ...]
    """The length of each cache."""


class Reached(NamedTuple):
    """The probability of a state, and one way there: its decisions, and how many rounds they make."""

    mass: float
    way: list[int]
    rounds: int


@dataclass(frozen=True)
class Loop:
    """An answer of `room` tokens (of drafted + 2, where not said) to a prompt, over a vocabulary of `size`."""

    sampling: Sampling
    drafted: int
    sources: tuple[Source, ...] = ("model",)
    size: int = 3
    eog: tuple[int, ...] = ()
    padding: tuple[int, int] = (0, 0)
    """Columns beyond the real ids: the target's, the draft's."""
    room: int = 0
    seed: int = 0
    blur: float = 0.6
    submits: Submits = always
    parts: Parts = Parts()
    remembers: bool = True
    """Whether the sampler is asked once for equal arguments, which saves half of the time."""
    tests: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How often a round has drafted so many tokens and kept so many of them, over all paths."""

    @cached_property
    def target(self) -> Remembering:
        return Remembering(self.size, self.seed, eog=self.eog, padding=self.padding[0])

    @cached_property
    def draft(self) -> Remembering:
        return Remembering(self.size, self.seed, self.blur, self.eog, self.padding[1])

    @cached_property
    def _known(self) -> Known:
        return {}

    @cached_property
    def prompt(self) -> Prefix:
        """What is answered."""
        return tuple(token % self.size for token in SAID)

    @property
    def tokens(self) -> int:
        """The most tokens that the answer may have."""
        return self.room or self.drafted + 2

    def law(self) -> dict[Prefix, float]:
        """The target's own distribution of answers, by the rows of the slow reference."""
        found: dict[Prefix, float] = {}
        going = {(): 1.0}
        for _ in range(self.tokens):
            longer: dict[Prefix, float] = {}
            for answer, mass in going.items():
                ids = (*self.prompt, *answer)
                row = reference(self.target.row(ids).tolist(), self.size, self.sampling, ids, answer)
                for token, probability in enumerate(row):
                    if probability > 0:
                        ended = token in self.eog
                        here, key = found if ended else longer, (*answer, END if ended else token)
                        here[key] = here.get(key, 0.0) + mass * probability
            going = longer
        return found | going

    def over_whole_runs(self) -> dict[Prefix, float]:
        """The distribution of answers, over every path through all rounds."""
        return every_outcome(lambda path: self.play(path).answer)

    def round_by_round(self) -> dict[Prefix, float]:
        """The distribution of answers, from the distribution of each round."""
        found: dict[Prefix, float] = {}
        reached: list[dict[State, Reached]] = [{} for _ in range(self.tokens + 2)]
        reached[0][State((), False, ())] = Reached(1.0, [], 0)
        for states in reached:  # by the length of the answer: what comes later leads to none of them
            for state, (mass, way, played) in states.items():
                if state.done:
                    found[state.answer] = found.get(state.answer, 0.0) + mass
                    continue
                for path, after in every_path(lambda path, n=played + 1: self.play(path, n), way):
                    before = reached[len(after.answer)].get(after, Reached(0.0, path.decisions, played + 1))
                    reached[len(after.answer)][after] = before._replace(mass=before.mass + mass * path.weight)
        return found

    def play(self, path: Path, most: int | None = None) -> State:
        """The state after `most` rounds (None: after the last)."""
        context = self.parts.context(self.target, self.draft, EXIT_LAYERS)
        state = State((), False, ())
        with closing(self._rounds(path, context)) as steps:
            for number, step in enumerate(steps, 1):
                answer = tuple(context.ids[len(self.prompt) :])
                ended = (END,) if step.end == "eos" else ()
                state = State((*answer, *ended), step.end is not None, tuple(c.length for c in context.caches))
                if number == most:
                    break
        return state

    def _rounds(self, path: Path, context: Context) -> Iterator[RoundDone]:
        lookup = LookupDrafter(frozenset(self.eog))
        lookup.begin(self.prompt, context.begin(self.prompt))
        for _ in context.read(context.target):
            pass
        rule = self.parts.rule(path)
        sampler = self.parts.sampler(self.sampling, self.size, frozenset(self.eog), len(self.prompt))
        if self.remembers:
            sampler = RememberingSampler(sampler, self._known)
        ahead = [make(context, rule, sampler, lambda: False) for make in (self.parts.drafter, self.parts.exit)]
        drafters: list[Drafter] = [d for d in (lookup, *ahead) if d.source in self.sources]
        planner = self.parts.planner(path, context, self.drafted)
        if self.submits is not always:
            planner = Submitting(planner, self.submits)
        for step in rounds(Answering(context, drafters, planner, rule, sampler, self.tokens, lambda: 0.0)):
            if isinstance(step, RoundDone):
                self.tests[step.drafted, step.accepted] += 1
                yield step
