"""A conversation that outgrows its context: its oldest whole turns leave, and the caches forget them in place.

Two invariants: which turns leave follows from the messages, the context and the room for an answer alone, so the same
conversation is always cut alike and one that goes on never gets a turn back; and neither the system prompt nor the
last question ever leaves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from engine.config import Message
from engine.context import common_prefix
from engine.errors import PromptError, PromptTooLong
from engine.prompt import Chat
from engine.templates import TemplateExhausted

SHARE = 4
"""An answer is promised one part in so many of the context, where it may be as long as that."""
_PROBE = Message(role="user", content="x")

Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ids to answer, and what of the conversation is not in them."""

    ids: Sequence[int]
    forgotten: int = 0
    """Messages after the system prompt that left."""
    turns: int = 0
    """The turns that they are."""
    hole: tuple[int, int] | None = None
    """Where, in what the caches are known to hold, the tokens stand that must leave: from the first to the second."""
    begun: int = 0
    """So many of the last ids are the answer's own beginning."""

    @property
    def start(self) -> int:
        """Where in the ids the answer begins."""
        return len(self.ids) - self.begun

    @property
    def beginning(self) -> Sequence[int]:
        """What of the answer is there already."""
        return self.ids[self.start :]

    def note(self, n_ctx: int) -> str:
        """A sentence for the user; empty where nothing left."""
        if not self.turns:
            return ""
        turns = f"{self.turns:,} turns" if self.turns > 1 else "turn"
        return f"the context of {n_ctx:,} tokens is full: the model no longer sees the first {turns}"


class Size(NamedTuple):
    """Tokens of one turn."""

    asked: int
    """Of its question."""
    whole: int
    """With its answer."""


class Talk(NamedTuple):
    """A conversation, as its template is told of it."""

    system: Messages
    turns: Sequence[Messages]
    thinking: bool | None

    @property
    def before(self) -> "Talk":
        """As it was when the last question but one was asked; there are two turns at least."""
        *older, asked, _ = self.turns
        return self._replace(turns=(*older, question(asked)))


class Horizon:
    """What a model still sees of conversations of any length.

    It remembers none: what left before the last question follows from the messages, too.
    """

    def __init__(self, chat: Chat, n_ctx: int) -> None:
        self._chat, self._n_ctx = chat, n_ctx
        self._added = lru_cache(maxsize=4096)(self._measure)

    def prompt(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        held: Sequence[int] = (),
        go_on: bool = False,
        thinking: bool | None = None,
    ) -> Prompt:
        """The prompt with as many of the last turns as fit beside an answer; `held` is what the caches hold ids of.

        `go_on`: the last message is the beginning of the answer, which stands behind the prompt and takes up room.
        Raises PromptTooLong where the system prompt and the last question alone do not fit, else as Chat.ids.
        """
        begun: list[int] = []
        if go_on:
            begun = self._chat.begun(messages[-1], thinking)
            messages = messages[:-1]
        talk = Talk(*split(messages), thinking)
        room = room_for(max_tokens, self._n_ctx)
        asked, ids = self._least(talk, room, self._cuts(talk, room))
        gone = asked
        if begun:  # no turn comes back for it
            gone, ids = self._least(talk, room + len(begun), range(asked, len(talk.turns)))
        if len(ids) + len(begun) >= self._n_ctx:
            raise PromptTooLong(len(ids) + len(begun), self._n_ctx)
        ids = [*ids, *begun]
        known = range(asked, gone) if go_on or not gone else [self._left_before(talk, room)]
        holes = (hole([*self._ids(talk, left), *begun], ids, held) for left in known)
        return Prompt(ids, sum(map(len, talk.turns[:gone])), gone, next(filter(None, holes), None), len(begun))

    def _least(self, talk: Talk, room: int, numbers: Iterable[int]) -> tuple[int, list[int]]:
        """The first number of turns whose leaving frees `room`, and the prompt without them; else the last number."""
        for gone in numbers:
            ids = self._ids(talk, gone)
            if 0 < len(ids) <= self._n_ctx - room:
                break
        return gone, ids

    def _left_before(self, talk: Talk, room: int) -> int:
        """How many had left when the question before was asked, if with as much room; else all is read again."""
        try:
            return self._least(talk.before, room, self._cuts(talk.before, room))[0]
        except PromptError:
            return 0

    def _cuts(self, talk: Talk, room: int) -> Iterator[int]:
        """How many turns may have to leave: none, else as many as `cut` says, else one more and so on."""
        yield 0
        if len(talk.turns) > 1:
            least = cut(self._head(talk), [self._size(turn) for turn in talk.turns], self._n_ctx, room)
            yield from range(max(1, least), len(talk.turns))

    def _ids(self, talk: Talk, gone: int) -> list[int]:
        """The prompt without the first turns; empty where the others are more than the template takes in at once."""
        turns = talk.turns[gone:]
        try:
            return self._chat.ids([*talk.system, *(message for turn in turns for message in turn)], talk.thinking)
        except TemplateExhausted:
            if len(turns) == 1:
                raise
            return []

    def _head(self, talk: Talk) -> int:
        """Tokens of a prompt beside its turns."""
        return len(self._chat.ids([*talk.system, _PROBE], talk.thinking)) - self._added((_PROBE,))

    def _size(self, turn: Messages) -> Size:
        return Size(self._added(question(turn)), self._added(turn))

    def _measure(self, messages: Messages) -> int:
        """Tokens that these messages add before a question; a whole context where the template cannot take them in."""
        try:
            return max(0, len(self._chat.ids([*messages, _PROBE])) - len(self._chat.ids([_PROBE])))
        except TemplateExhausted:
            return self._n_ctx


def room_for(max_tokens: int, n_ctx: int) -> int:
    """Tokens of the context that are kept free for an answer; 1 at least, as a full context can answer nothing."""
    return max(1, min(max_tokens, n_ctx // SHARE))


def split(messages: Sequence[Message]) -> tuple[Messages, list[Messages]]:
    """The system prompt and the turns: a user's message with all up to the next; what stands before is the first's."""
    start = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    asked = [at for at, message in enumerate(messages) if message.role == "user"]
    edges = [start, *asked[1:], len(messages)]
    return tuple(messages[:start]), [tuple(messages[a:b]) for a, b in pairwise(edges)]


def question(turn: Messages) -> Messages:
    """A turn up to the user's message; all of it where there is none."""
    return turn[: next((at for at, message in enumerate(turn, 1) if message.role == "user"), len(turn))]


def cut(head: int, turns: Sequence[Size], n_ctx: int, room: int) -> int:
    """How many of the oldest turns are gone when the last one asks.

    The conversation is played again: where a question does not fit beside the turns before it and the room for its
    answer, the oldest leave until those that stay take half of the place there is.  So a cut lasts for many turns.
    """
    gone = kept = 0
    for at, turn in enumerate(turns):
        place = n_ctx - room - head - turn.asked
        if kept > place:
            while gone < at and kept > place // 2:
                kept -= turns[gone].whole
                gone += 1
        kept += turn.whole
    return gone


def hole(before: Sequence[int], after: Sequence[int], held: Sequence[int]) -> tuple[int, int] | None:
    """The one stretch that must leave `before` to make `after`, where `held` has it and more of `before` behind it."""
    start = common_prefix(before, after)
    end = start + len(before) - len(after)
    if not start < end < common_prefix(before, held) or before[end:] != after[start:]:
        return None
    return start, end
