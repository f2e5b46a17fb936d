"""What a benchmark runs: kinds of text, temperatures, and the ways to draft that take turns."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from engine.config import Rule, Sampling, Speculation
from engine.errors import ConfigError
from engine.experiments.bench_prompts import KINDS

SEED = 7
"""The same draws in all modes: by the coupled rule the same text too, and a copied draft loses nothing by that rule."""
SEEDED = Sampling(seed=SEED)
OFF, AUTO = "off", "auto"


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a benchmark does."""

    kinds: Sequence[str] = tuple(KINDS)
    temperatures: Sequence[float] = (0.0, 0.8)
    turns: int = 2
    lengths: Sequence[int] = (3,)
    """Fixed lengths, beside off and auto."""
    tokens: int | None = None
    """Most tokens of each answer; None: what fits its kind."""
    sampling: Sampling = SEEDED
    """Filters, penalties and the seed; the temperature is that of the run."""
    rule: Rule | None = None

    def __post_init__(self) -> None:
        """ConfigError where something is out of range."""
        if self.turns < 1:
            raise ConfigError(f"turns must be at least 1, not {self.turns}")
        if self.tokens is not None and self.tokens < 2:
            raise ConfigError(f"tokens must be at least 2, or there is nothing to time, not {self.tokens}")
        for temperature in self.temperatures:
            self.at(temperature)
        assert self.modes

    @property
    def modes(self) -> list[Speculation]:
        """Off first, then the fixed lengths, auto last."""
        fixed = [Speculation(mode="fixed", length=length, rule=self.rule) for length in self.lengths]
        return [Speculation(mode="off", rule=self.rule), *fixed, Speculation(rule=self.rule)]

    def most(self, kind: str) -> int:
        """Most tokens of an answer of this kind."""
        return KINDS[kind].tokens if self.tokens is None else self.tokens

    def at(self, temperature: float) -> Sampling:
        """How tokens are drawn at this temperature."""
        return replace(self.sampling, temperature=temperature)

    @property
    def work(self) -> int:
        """Tokens of all answers, at most."""
        prompts = sum(self.most(kind) * len(KINDS[kind].prompts) for kind in self.kinds)
        return prompts * len(self.temperatures) * self.turns * len(self.modes)


def name(speculation: Speculation) -> str:
    """How a mode is called: off, auto, or fixed with its length."""
    return f"fixed {speculation.length}" if speculation.mode == "fixed" else speculation.mode
