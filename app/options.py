"""The settings of one conversation, or of one answer, as a layer above the program's own.

A value that exists is a value in range, and None says nothing: one answer's options go over its conversation's, and
those over the settings.  What is kept of them is JSON that names only what was said.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace

from app import layers
from app.errors import SettingsError
from app.settings import Settings, Thinking
from engine import stats
from engine.config import Message, Request, Rule

WARMER = 0.3
"""How much warmer "again, warmer" is."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What may differ from one conversation, or one answer, to the next; ConfigError where a value is out of range."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    thinking: Thinking | None = None
    spec: str | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        self.over(Settings()).check()

    def over(self, settings: Settings) -> Settings:
        """The settings with these above them."""
        return replace(settings, **self.said())

    def merge(self, lower: "Options") -> "Options":
        """These where they say something, `lower` elsewhere."""
        return Options(**{**lower.said(), **self.said()})

    def said(self) -> dict[str, object]:
        """What is said, by name: this is what the store keeps."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of_json(cls, table: Mapping[str, object]) -> "Options":
        """Options that were kept; what is unknown here, or not possible, says nothing."""
        said = dict[str, object]()
        for name in NAMES:
            if table.get(name) is not None:
                with suppress(SettingsError):
                    said[name] = layers.value(name, table[name])
        return cls(**said)

    @classmethod
    def of_settings(cls, settings: Settings) -> "Options":
        """What settings say of these things."""
        return cls(**{name: getattr(settings, name) for name in NAMES})

    @classmethod
    def warmer(cls, last: stats.Settings) -> "Options":
        """For one more answer: bolder than the last one was."""
        return cls(temperature=round(last.temperature + WARMER, 2))

    @classmethod
    def same_seed(cls, last: stats.Answer) -> "Options":
        """For one more answer: the draws of the last one, by the rule that it was drawn by."""
        return cls(seed=last.settings.seed, rule=last.speculation.rule)


NAMES = tuple(field.name for field in fields(Options))
"""The settings that options may hold."""


def request(settings: Settings, options: Options, messages: tuple[Message, ...], system: str) -> Request:
    """A conversation to answer: its options above the settings, and its own system prompt, empty for none."""
    return replace(options.over(settings), system=system or None).request(messages)
