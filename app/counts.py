"""What was counted over the rounds of a turn, of a chat, or of a whole run of the program."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.origins import LOOKS
from engine.events import Origin, Round
from engine.stats import Answer


@dataclass(frozen=True)
class Counts:
    """Sums; two of them add up to those of both."""

    rounds: int = 0
    emitted: int = 0
    drafted: int = 0
    accepted: int = 0
    saved_ms: float | None = None
    """Net milliseconds won by drafting, or lost where negative; None: unknown."""
    target: int = 0
    lookup: int = 0
    model: int = 0
    exit: int = 0
    """Tokens by their origin."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            rounds=self.rounds + other.rounds,
            emitted=self.emitted + other.emitted,
            drafted=self.drafted + other.drafted,
            accepted=self.accepted + other.accepted,
            saved_ms=_sum(self.saved_ms, other.saved_ms),
            target=self.target + other.target,
            lookup=self.lookup + other.lookup,
            model=self.model + other.model,
            exit=self.exit + other.exit,
        )

    @classmethod
    def of_round(cls, one: Round) -> "Counts":
        """What one round counts, but for the origins of its tokens."""
        saved = None if one.plain_ms is None else one.plain_ms - one.ms
        return cls(rounds=1, emitted=one.emitted, drafted=one.drafted, accepted=one.accepted, saved_ms=saved)

    @classmethod
    def of_origins(cls, origins: Iterable[Origin]) -> "Counts":
        """Tokens of these origins, and nothing else."""
        given = list(origins)
        return cls(**{origin: given.count(origin) for origin in LOOKS})

    @classmethod
    def of_answer(cls, answer: Answer) -> "Counts":
        """What a whole answer counts: the engine's own figures; what no draft brought is the target's."""
        spec = answer.speculation
        kept = {source: count.accepted for source, count in spec.by_source.items() if source in LOOKS}
        return cls(
            rounds=spec.rounds,
            emitted=len(answer.ids),
            drafted=spec.drafted,
            accepted=spec.accepted,
            saved_ms=spec.saved_ms,
            target=max(0, len(answer.ids) - sum(kept.values())),
            **kept,
        )

    @property
    def acceptance(self) -> float | None:
        """Accepted / drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def per_round(self) -> float | None:
        """Tokens a round, plain rounds included."""
        return self.emitted / self.rounds if self.rounds else None

    def share(self, origin: Origin) -> float | None:
        """The part of the tokens with a known origin that has this one."""
        known = self.target + self.lookup + self.model + self.exit
        return getattr(self, origin) / known if known else None


def _sum(one: float | None, other: float | None) -> float | None:
    """The sum of what is known."""
    return other if one is None else one if other is None else one + other
