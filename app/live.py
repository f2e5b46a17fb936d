"""Figures of the answer being written, from the engine's own rounds: no clock of the window's takes part."""

from collections import deque
from dataclasses import dataclass, replace

from engine.config import Speculation
from engine.events import Round
from engine.stats import Answer, Source

WINDOW_MS = 2000.0
"""How far back "now" looks."""


@dataclass(frozen=True)
class Live:
    """What the status line shows while an answer is written; None is a figure that does not exist yet."""

    tps: float | None
    """Tokens a second over the last rounds."""
    acceptance: float | None
    """Accepted / drafted over the last rounds."""
    per_round: float | None
    """Tokens a round over the last rounds."""
    source: Source | None
    """Where the last draft came from."""
    context: int
    """Tokens of the conversation so far."""
    plan: str
    speculation: Speculation
    """The setting in force."""

    def ended(self, answer: Answer) -> "Live":
        """The same line for the whole answer."""
        spec = answer.speculation
        return replace(
            self,
            tps=answer.timings.decode_tps,
            acceptance=spec.acceptance_rate,
            per_round=spec.mean_tokens_per_round,
            plan=spec.plan,
        )


class Meter:
    """Keeps the rounds of the last two seconds and adds them up."""

    def __init__(self, window_ms: float = WINDOW_MS) -> None:
        self._window_ms = window_ms
        self._rounds: deque[Round] = deque()
        self._ms = 0.0
        self._source: Source | None = None

    def add(self, one: Round) -> Live:
        """Take in a round; the figures with it."""
        self._rounds.append(one)
        self._ms += one.ms
        while len(self._rounds) > 1 and self._ms - self._rounds[0].ms >= self._window_ms:
            self._ms -= self._rounds.popleft().ms
        if one.drafted:
            self._source = one.source
        elif one.speculation.mode == "off":
            self._source = None
        return self._live(one)

    def _live(self, last: Round) -> Live:
        drafted = sum(one.drafted for one in self._rounds)
        emitted = sum(one.emitted for one in self._rounds)
        return Live(
            tps=emitted / self._ms * 1000 if self._ms > 0 else None,
            acceptance=sum(one.accepted for one in self._rounds) / drafted if drafted else None,
            per_round=emitted / len(self._rounds),
            source=self._source,
            context=last.context,
            plan=last.plan,
            speculation=last.speculation,
        )
