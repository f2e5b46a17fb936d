"""What a benchmark tells: how far it is, each run, and the lines that `bench --json` prints."""

from engine.config import Frozen


class Working(Frozen, frozen=True, kw_only=True):
    """What is being done, and the share of the whole that is done, 0 to 1."""

    what: str
    share: float


class Run(Frozen, frozen=True, kw_only=True):
    """One answer to one prompt in one mode."""

    kind: str
    prompt: int
    temperature: float
    mode: str
    turn: int
    tps: float | None
    """Tokens per second of decoding; None of an answer of one round."""
    emitted: int
    rounds: int
    drafted: int
    accepted: int
    hindsight: float | None
    """See engine.experiments.hindsight; from this run's own text."""
    predicted: float | None
    """See engine.experiments.theory; from this run's own rounds."""
    plan: str


class Line(Frozen, frozen=True, kw_only=True):
    """One kind of text at one temperature in one mode; None is what is not defined."""

    kind: str
    temperature: float
    mode: str
    tps: float | None
    ratio: float | None
    """To off; by prompt the median of the turns, over prompts the geometric mean (engine.experiments.turns)."""
    low: float | None
    high: float | None
    acceptance_rate: float | None
    mean_tokens_per_round: float | None
    hindsight: float | None
    predicted: float | None
    plan: str


class Rivals(Frozen, frozen=True, kw_only=True):
    """Auto against the best fixed length, each half of the turns against the length that was best in the other half."""

    kind: str
    temperature: float
    best: list[str]
    """Which that was, by half."""
    ratio: float | None
    low: float | None
    high: float | None
