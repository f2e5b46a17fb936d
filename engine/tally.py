"""Counts and clock readings of one answer while it runs; stats.py says what the figures mean."""

from collections import defaultdict
from dataclasses import dataclass, field

from engine.config import Rule
from engine.generate import RoundDone
from engine.planner import Planner
from engine.reasons import Reasons
from engine.stats import Receipt, Source, SourceCount, SpeculationStats, Timings


@dataclass(slots=True)
class Tally:
    """What happened so far."""

    started: float
    read_done: float | None = None
    prompt_seconds: float = 0.0
    prompt_read: int = 0
    first_end: float | None = None
    last_end: float | None = None
    first_tokens: int = 0
    rounds: int = 0
    refusals: int = 0
    sources: dict[Source, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    positions: list[list[int]] = field(default_factory=list)
    saved_ms: float | None = 0.0
    reasons: Reasons = field(default_factory=Reasons)

    def chunk(self, tokens: int, now: float) -> None:
        """Some more of the prompt was read by the target, up to `now`."""
        self.prompt_read += tokens
        self.prompt_seconds = now - self.started

    def round(self, done: RoundDone, now: float, plain_ms: float | None) -> None:
        """A round was committed at `now`, whose tokens would have taken `plain_ms` in single passes; None: unknown."""
        if self.saved_ms is not None:
            self.saved_ms = None if plain_ms is None else self.saved_ms + plain_ms - 1000 * done.seconds
        if self.first_end is None:
            self.first_end, self.first_tokens = now, len(done.tokens)
        self.last_end = now
        self.rounds += 1
        self.reasons.note(done.reason, done.source)
        if not done.sources:
            return
        self.refusals += done.accepted < done.drafted
        for at, source in enumerate(done.sources):
            self.sources[source][0] += 1
            self.sources[source][1] += at < done.accepted
        while len(self.positions) < done.drafted:
            self.positions.append([0, 0])
        for i in range(done.drafted):
            self.positions[i][0] += 1
            self.positions[i][1] += i < done.accepted

    def timings(self, load_s: float, emitted: int) -> Timings:
        """Seconds and speeds, for an answer of `emitted` tokens."""
        decode = None
        if self.first_end is not None and self.last_end is not None and self.last_end > self.first_end:
            decode = self.last_end - self.first_end
        return Timings(
            load_s=load_s,
            ttft_s=None if self.first_end is None else self.first_end - self.started,
            prompt_s=self.prompt_seconds,
            prompt_tps=_ratio(self.prompt_read, self.prompt_seconds) if self.prompt_read else None,
            decode_s=decode,
            decode_tps=None if decode is None else max(0, emitted - self.first_tokens) / decode,
        )

    def speculation(self, planner: Planner, width_limit: int | None, rule: Rule, emitted: int) -> SpeculationStats:
        """What drafting did, for an answer of `emitted` tokens."""
        drafted = sum(c[0] for c in self.sources.values())
        accepted = sum(c[1] for c in self.sources.values())
        return SpeculationStats(
            mode=planner.speculation.mode,
            length=planner.length,
            width_limit=width_limit,
            rule=rule,
            rounds=self.rounds,
            drafted=drafted,
            accepted=accepted,
            acceptance_rate=_ratio(accepted, drafted),
            acceptance_per_test=_ratio(accepted, accepted + self.refusals),
            mean_tokens_per_round=_ratio(emitted, self.rounds),
            by_source={name: SourceCount(drafted=c[0], accepted=c[1]) for name, c in self.sources.items()},
            by_position=[_ratio(kept, drafted) for drafted, kept in self.positions],
            plan=self.reasons.text,
            needed=self.reasons.about.needed,
            observed=self.reasons.about.observed,
            expected_gain=self.reasons.gain,
            saved_ms=self.saved_ms,
        )

    @property
    def drafted(self) -> int:
        """Tokens drafted so far."""
        return sum(c[0] for c in self.sources.values())


def receipt(prompt: int, reused: int, held: int) -> Receipt:
    """What a cache that had `reused` of the prompt's tokens at first, and holds `held` now, read of it."""
    return Receipt(reused=reused, read=max(0, min(prompt, held) - reused))


def _ratio(a: float, b: float) -> float | None:
    return a / b if b else None
