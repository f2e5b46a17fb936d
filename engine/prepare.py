"""Reading a prompt while its last message is still being typed, as far as it is sure.

The one invariant: a wrong guess costs nothing but the reading of what turned out otherwise, since what is sure is taken
over as every prompt is; so it is enough that guesses are nearly always right.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from engine.calibration import LEADS_PLAN
from engine.config import Message, Request
from engine.context import Cache, Context, common_prefix
from engine.drafters.lookup import LookupDrafter
from engine.errors import PromptError
from engine.experience import Experience
from engine.forget import Prompt
from engine.pair import Pair

PIECE = max(LEADS_PLAN.widths)
"""Tokens of a pass that reads ahead: the widest of which it was measured how far they change leads, so that verdicts on
greedy answers hold.  What an answer cuts short is lost, and so little is read again in no time."""
_OPEN = 32
"""The last characters of a text may still join with what is typed next, up to a blank among them."""
_MARKS = ("#", "~")
"""Texts that begin with different tokens."""

Prompts = Callable[[Request], Prompt]
"""The prompt that a request would get."""


class ReadingAhead:
    """Reads what will be asked of one engine; between its steps anything else may be done."""

    def __init__(
        self, pair: Pair, context: Context, lookup: LookupDrafter, experience: Experience, prompt: Prompts
    ) -> None:
        self._pair, self._context, self._lookup = pair, context, lookup
        self._experience, self._prompt = experience, prompt

    def steps(self, request: Request) -> Iterator[None]:
        """First a plan, then a pass a step.  Raises Interrupted and ModelError; what was read before stays.

        In strict exactness nothing is read: how a prompt is cut into passes would hang on how fast someone types.  With
        speculation off whole batches are read, as an answer reads them.
        """
        ids = [] if self._pair.exact == "strict" else self._sure(request)
        if len(ids) < 2:
            return
        yield  # whoever came while the plan was made is seen before anything is changed for it
        shared = common_prefix(self._context.ids, ids)
        if shared < len(ids):
            self._lookup.begin(ids, shared)
            self._context.begin(ids, ahead=True)
        plain = request.speculation.mode == "off" or not self._pair.can_draft
        for cache in self._readers(request, len(ids)):
            batch = cache.model.n_batch
            for _ in self._context.read_ahead(cache, len(ids) - 1, batch if plain else min(PIECE, batch)):
                yield

    def _sure(self, request: Request) -> Sequence[int]:
        """What its prompt surely begins with; nothing where there is none, or where turns have to leave for it."""

        def ids(wanted: Request) -> Sequence[int]:
            prompt = self._prompt(wanted)
            return () if prompt.hole else prompt.ids

        goes_back = all(cache.model.reach is None for cache in self._context.caches)
        try:
            return ids(request) if request.go_on else sure(request, ids, typed=goes_back)
        except PromptError:
            return ()  # whoever asks hears of it

    def _readers(self, request: Request, tokens: int) -> list[Cache]:
        """The target, and the draft model where it is likely to be run for the answer, by what is known of both."""
        mode = request.speculation.mode
        wanted = mode == "fixed"
        if mode == "auto":
            learned = self._experience
            needed = learned.needed("model", learned.costs.at(tokens))
            wanted = needed is not None and learned.acceptance.sampled("model", request.sampling.greedy) >= needed
        return self._context.caches if wanted and self._pair.can_draft else [self._context.target]


def sure(request: Request, ids: Callable[[Request], Sequence[int]], typed: bool = True) -> Sequence[int]:
    """The ids with which its prompt begins, however the last message goes on, if that is the user's.

    Where it is not, the user is about to write one.  Without `typed` all of it may still be changed, and the answer
    before it may be continued instead.  PromptError.
    """
    before, text = request.messages, ""
    if before and before[-1].role == "user":
        text, before = before[-1].content, before[:-1]

    def prompt(content: str) -> Sequence[int]:
        return ids(structs.replace(request, messages=(*before, Message(role="user", content=content))))

    one, other = map(prompt, _continuations(text if typed else ""))
    found = one[: common_prefix(one, other)]
    if not typed and before and before[-1].role == "assistant":
        found = found[: common_prefix(found, ids(structs.replace(request, messages=before, go_on=True)))]
    return found


def _continuations(text: str) -> tuple[str, str]:
    """Two messages that agree in what is sure of a text, and go on with different tokens."""
    if not text.strip():
        return _MARKS
    end = max((at for at, character in enumerate(text) if character.isspace()), default=0)
    end = max(end, len(text) - _OPEN)
    mark = next(mark for mark in _MARKS if not text[end:].lstrip().startswith(mark))
    return text, f"{text[:end]} {mark}"
