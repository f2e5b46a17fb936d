"""Random conversations: what is asked, edited, asked again and broken off, all from one seed."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from engine.backends.toy import EarlyLM, Kind, ToyLM
from engine.config import Request, Sampling, Speculation
from engine.engine import Engine
from engine.events import Finished, Round, Tokens
from engine.stats import Answer
from tests.fakes import engine_of, fixed, last

CUT_WITHIN = 30
"""A conversation is broken off at one of so many first yields."""
LEAST_TURNS = 3
LONG = 100
"""A prompt of more tokens is edited before it is asked."""


@dataclass
class Talk:
    """A pair and the settings of one conversation."""

    seed: int
    sampling: Sampling
    stop: tuple[str, ...]
    size: int
    eog: tuple[int, ...]
    kind: Kind
    n_ctx: int
    blur: float | None
    """How far the draft is from the target; None: no draft model."""
    exit_layers: int | None
    """After how many of its 8 layers the target is left; None: never."""
    library: list[list[int]] | None
    """What the user was told in earlier conversations; None: nothing is kept."""
    known: dict[tuple[tuple[int, ...], int], Answer] = field(default_factory=dict)
    """What fresh engines have answered, by prompt and most tokens."""

    @classmethod
    def of(cls, seed: int) -> "Talk":
        """Greedy for even seeds, coupled for odd ones."""
        chance = random.Random(seed)
        size = chance.randint(5, 12)
        letters = "abcdefghijkl"[:size]
        return cls(
            seed,
            sampling=_sampling(chance, None if seed % 2 == 0 else seed),
            stop=tuple(
                "".join(chance.choices(letters, k=chance.randint(1, 3))) for _ in range(chance.choice([0, 0, 2]))
            ),
            size=size,
            eog=chance.choice([(), (size - 1,)]),
            kind="sliding" if chance.random() < 0.05 else "dense",
            n_ctx=20 if chance.random() < 0.1 else 200,
            blur=chance.choice([None, 0.1, 0.3, 0.6]),
            exit_layers=None if seed % 3 else 4 + seed % 4,
            library=None if seed % 4 > 1 else _library(seed, size),
        )

    @property
    def closes(self) -> bool:
        """Whether it is broken off by closing the generator; else by a cancel."""
        return self.seed % 4 < 2

    def engine(self) -> Engine:
        """A new engine over the pair."""
        target = EarlyLM(self.size, self.n_ctx, self.kind, seed=self.seed, eog=self.eog)
        target.n_batch = 8
        draft = None
        if self.blur is not None:
            draft = ToyLM(self.size, self.n_ctx - 4, seed=self.seed, blur=self.blur, eog=self.eog)
        return engine_of(target, draft, self.library, exit_layers=self.exit_layers)

    def request(self, max_tokens: int, speculation: Speculation) -> Request:
        """A request of this conversation."""
        return Request(
            messages=(),
            sampling=self.sampling,
            speculation=speculation,
            max_tokens=max_tokens,
            stop=self.stop,
        )

    def fresh(self, prompt: Sequence[int], max_tokens: int) -> Answer:
        """What a new engine with empty caches and no draft answers."""
        key = tuple(prompt), max_tokens
        if key not in self.known:
            engine = engine_of(self.engine().pair.target)
            self.known[key] = last(engine.answer_ids(prompt, self.request(max_tokens, fixed(0))))
        return self.known[key]


@dataclass(frozen=True)
class Turn:
    """One turn: all of it, or what there was when it was broken off."""

    prompt: list[int]
    max_tokens: int
    answer: Answer | None
    """None where the generator was closed."""
    broken: bool
    """Whether it was closed or cancelled, if only at its end."""
    text: str
    """What the events showed."""
    held: list[int]
    """The context afterwards."""


class Conversation:
    """Plays a talk on one engine, with another draft length each round, broken off at yield number `cut`."""

    def __init__(self, talk: Talk, cut: int | None) -> None:
        self.talk, self.engine = talk, talk.engine()
        self.yields = 0
        self._cut = cut
        self._chance = random.Random(talk.seed + 1)

    @property
    def broken(self) -> bool:
        """Whether a turn was broken off."""
        return self._cut is not None and self.yields > self._cut

    def turns(self) -> Iterator[Turn]:
        """At least three, and two after the one that was broken off."""
        prompt = self._ids(1, 12)
        number = after = 0
        while number < LEAST_TURNS or (self._cut is not None and after < 2):
            turn = self._turn(prompt, self._chance.randint(1, 9))
            yield turn
            number, after = number + 1, after + self.broken
            prompt = self._next(turn.prompt, turn.held[len(turn.prompt) :])[: self.talk.n_ctx - 1]

    def _turn(self, prompt: list[int], max_tokens: int) -> Turn:
        text, answer, before = "", None, self.broken
        with closing(self.engine.answer_ids(prompt, self.talk.request(max_tokens, self._speculation()))) as events:
            for event in events:
                if isinstance(event, Tokens):
                    text += event.text
                elif isinstance(event, Round):
                    self.engine.set_speculation(self._speculation())
                elif isinstance(event, Finished):
                    answer = event.answer
                self.yields += 1
                if self._cut is not None and self.yields == self._cut + 1:
                    if self.talk.closes:
                        answer = None
                        break
                    self.engine.cancel()
        return Turn(prompt, max_tokens, answer, self.broken and not before, text, list(self.engine.context.ids))

    def _speculation(self) -> Speculation:
        length = self._chance.randint(-1, 6)
        return Speculation() if length < 0 else fixed(length)

    def _next(self, prompt: list[int], said: list[int]) -> list[int]:
        """Go on, edit an earlier message, ask again, or go on from a part of the answer."""
        move = "edit" if len(prompt) > LONG else self._chance.choice(["on", "on", "edit", "again", "part"])
        if move == "again":
            return prompt
        if move == "edit":
            return [*prompt[: self._chance.randint(0, len(prompt) - 1)], *self._ids(1, 5)]
        kept = said if move == "on" else said[: self._chance.randint(0, len(said))]
        return [*prompt, *kept, *self._ids(1, 5)]

    def _ids(self, least: int, most: int) -> list[int]:
        return [self._chance.randrange(self.talk.size) for _ in range(self._chance.randint(least, most))]


def _library(seed: int, size: int) -> list[list[int]]:
    """A few answers of anybody's."""
    chance = random.Random(seed)
    return [chance.choices(range(size), k=chance.randint(16, 60)) for _ in range(3)]


def _sampling(chance: random.Random, seed: int | None) -> Sampling:
    """Any settings; greedy without a seed."""
    penalized = chance.random() < 0.5
    return Sampling(
        temperature=0.0 if seed is None else chance.choice([0.5, 1.0, 1.6]),
        seed=seed,
        top_k=chance.choice([0, 3, 40]),
        top_p=chance.choice([0.8, 0.95, 1.0]),
        min_p=chance.choice([0.0, 0.05, 0.3]),
        repeat_penalty=chance.choice([0.8, 1.3, 2.0]) if penalized else 1.0,
        repeat_last=chance.choice([3, 64]),
        frequency_penalty=chance.choice([0.0, 2.0, -1.0]) if penalized else 0.0,
        presence_penalty=chance.choice([0.0, 1.5]) if penalized else 0.0,
        logit_bias={0: -float("inf"), 2: 1.5} if chance.random() < 0.2 else {},
    )
