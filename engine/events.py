"""What the engine tells while it works: frozen, tagged, and the same in a process or over the pipe."""

from typing import Literal

from engine.config import Frozen, Speculation
from engine.stats import Answer, Source

Origin = Literal["target", "lookup", "model", "exit"]


class Event(Frozen, frozen=True, kw_only=True, tag=True):
    """Anything that the engine says."""


class Loading(Event, frozen=True, kw_only=True):
    """A model is being loaded or measured; `share` runs from 0 to 1."""

    what: str
    share: float


class Loaded(Event, frozen=True, kw_only=True):
    """The pair is ready."""

    target: str
    draft: str | None
    n_ctx: int
    device: str
    notes: list[str] = []
    """Sentences for the user: why a draft was refused, what strict exactness costs."""
    thinks: bool = False
    """Whether the target's chat template can be told to think or not (see Request.thinking)."""


class Reading(Event, frozen=True, kw_only=True):
    """The prompt is being read: `reused` tokens came from the cache, `done` of `total` are read."""

    model: Literal["target", "draft"]
    reused: int
    done: int
    total: int
    opening: str = ""
    """The tag by which the prompt opens a thought, in which the answer then begins; empty: none."""


class Refused(Frozen, frozen=True, kw_only=True):
    """A drafted token that the target did not keep."""

    text: str
    target: float
    """The chance that the target gave it, before temperature and filters."""
    draft: float | None
    """The chance that the draft gave it; None where it was copied."""


class TokenTrace(Frozen, frozen=True, kw_only=True):
    """Where one token of an answer came from, and what its chances were."""

    origin: Origin
    text: str
    """What the answer's text gained by it: the characters that begin in it; empty inside a character."""
    target: float
    """The chance that the target gave it, before temperature and filters."""
    draft: float | None = None
    """The chance that the draft gave it; None where it was copied, or is the target's own."""
    refused: Refused | None = None
    """The draft in whose place it stands."""


class Tokens(Event, frozen=True, kw_only=True):
    """What one round brought: new text (it may be empty while a character or a stop string is open).

    The ids hold until Finished, whose answer says which of them stay: a stop string may end in a later round than it
    began, and then its ids are taken back.
    """

    text: str
    ids: list[int]
    origins: list[Origin]
    trace: list[TokenTrace] = []
    """Where the request wants it, in order, each token once its text is settled: not inside a character, nor where a
    stop string may have begun.  So none is taken back, and those of all events are the answer's ids and its text."""


class Round(Event, frozen=True, kw_only=True):
    """The figures of one round."""

    source: Source | None
    drafted: int
    accepted: int
    emitted: int
    ms: float
    context: int
    """Tokens of the conversation so far."""
    plan: str
    speculation: Speculation
    """The setting in force in this round."""
    plain_ms: float | None = None
    """What the tokens that it brought would have taken without drafts, by what single passes cost; None: unknown."""
    needed: float | None = None
    observed: float | None = None
    """As in SpeculationStats, as they stand now."""


class Finished(Event, frozen=True, kw_only=True):
    """The last event of an answer."""

    answer: Answer


KeptOutcome = Literal["kept", "nothing to keep", "too large", "failed"]


class Kept(Event, frozen=True, kw_only=True):
    """The caches are in a folder, which now takes so many bytes."""

    bytes: int
    outcome: KeptOutcome = "kept"
    reason: str = ""
    """Why nothing was written, in a sentence; empty where all is there."""


class Resumed(Event, frozen=True, kw_only=True):
    """How many tokens each cache has taken up."""

    target: int
    draft: int | None
    """None: there is no draft model."""
    reason: str = ""
    """Why one of them has to read again, in a sentence; empty where none has to."""
    found: bool = True
    """Whether anything had been kept."""


class Failed(Event, frozen=True, kw_only=True):
    """A request or a load failed; `message` is one line for the user, `kind` the error's name."""

    kind: str
    message: str
    numbers: dict[str, int] = {}
    """What the error carries beside its text, such as the tokens of a prompt that is too long."""


AnswerEvent = Reading | Tokens | Round | Finished
HostEvent = Loading | Loaded | Reading | Tokens | Round | Finished | Kept | Resumed | Failed
