"""What tuning a draft tells: how far it is, each form as it was measured, and at last what is worth keeping."""

from engine.backends.llamacpp_quantize import Weights
from engine.config import Frozen


class Working(Frozen, frozen=True, kw_only=True):
    """What is being done, and the share of the whole that is done, 0 to 1."""

    what: str
    share: float


class DraftForm(Frozen, frozen=True):
    """One form of a draft; the default is the file as it is."""

    weights: Weights | None = None
    """The type of every matrix, the output layer's and the embedding's too; None: as it is."""
    without: tuple[int, ...] = ()
    """Layers that are left out."""
    tokens: int | None = None
    """How many tokens it is left with; None: all."""

    def __str__(self) -> str:
        parts: list[str] = [self.weights] if self.weights else []
        if self.without:
            parts.append(f"without layers {self.without[0]} to {self.without[-1]}")
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        return ", ".join(parts) or "as it is"


class Acceptance(Frozen, frozen=True, kw_only=True):
    """How often a drafted token would be kept, over the places of recorded answers."""

    greedy: float
    """Share of places at which the draft's first choice is the target's."""
    sampled: float
    """Mean of the sum of min(p, q) at a temperature of 0.8: what the rejection rule keeps."""

    @property
    def chance(self) -> float:
        """Of one token, both ways of answering counted alike."""
        return (self.greedy + self.sampled) / 2


class Measured(Frozen, frozen=True, kw_only=True):
    """One form on this machine, beside this target."""

    form: DraftForm
    bytes: int
    ms: float
    """Milliseconds of a pass over one token."""
    ms_two: float
    """Of a pass over two."""
    acceptance: Acceptance
    gain: float
    """Expected tokens per millisecond with the best length of drafts, relative to no drafts; below 1 none pays."""
    length: int
    """That length."""


class Failed(Frozen, frozen=True, kw_only=True):
    """A form that could not be made or opened."""

    form: DraftForm
    why: str


class Report(Frozen, frozen=True, kw_only=True):
    """The last event."""

    target: str
    draft: str
    target_ms: dict[int, float]
    """Milliseconds of the target's passes by width, behind the context below."""
    context: int
    """Tokens in the caches where passes were timed."""
    places: int
    """Tokens of recorded answers that acceptance was measured on."""
    original: Measured
    best: Measured | None
    """The form that is expected to gain most, timed in turns with the original; None: no form beats that."""
    needed: float | None
    """Acceptance from which on drafts of the better of the two pay; None: not even perfect ones do."""
    failed: list[Failed]

    @property
    def pays(self) -> bool:
        """Whether a draft model pays at all."""
        return (self.best or self.original).gain > 1

    def speed(self, measured: Measured) -> float:
        """Tokens per second that are expected with this form; the target alone makes 1000 / target_ms[1]."""
        return 1e3 * measured.gain / self.target_ms[1]
