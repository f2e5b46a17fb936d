"""What can go wrong in the engine, as one tree; every message ends with what to do next.

EngineError
├── ConfigError          a setting outside its range
├── ModelError           one model and its file
│   ├── LoadFailed       the file cannot be opened, or not with these settings
│   ├── CannotRewind     the cache cannot go back to that length
│   ├── DecodeFailed     a pass over tokens failed
│   └── BadLogits        a row with NaN, +inf, or nothing that is possible
├── Interrupted          a running pass was told to stop
├── PairMismatch         draft and target do not fit together
├── PromptError          the prompt cannot become ids
│   ├── EmptyPrompt
│   ├── PromptTooLong
│   └── TemplateFailed   the model's chat template is broken, hostile or missing
└── HostDied             the engine's process is gone
"""


class EngineError(Exception):
    """Base of all errors a user can meet; its text is one line that says what to do next."""


class ConfigError(EngineError):
    """A setting is outside its range."""


class ModelError(EngineError):
    """A model or its file is at fault."""


class LoadFailed(ModelError):
    """The model cannot be loaded, or not with these settings."""


class CannotRewind(ModelError):
    """The cache cannot go back to the length asked for."""


class DecodeFailed(ModelError):
    """A pass over tokens failed; the cache is as the model's `length` says, or unknown."""


class BadLogits(ModelError):
    """A row of logits holds NaN, +inf, or no possible token."""


class Interrupted(EngineError):
    """A pass was interrupted; the cache holds what it held before that pass."""


class PairMismatch(EngineError):
    """Draft and target do not fit; the text names the first difference."""


class PromptError(EngineError):
    """The messages cannot be turned into a prompt."""


class EmptyPrompt(PromptError):
    """There is nothing to answer."""


class PromptTooLong(PromptError):
    """The prompt does not fit the context."""

    def __init__(self, tokens: int, n_ctx: int) -> None:
        super().__init__(
            f"the prompt has {tokens:,} tokens and the context holds {n_ctx:,}: "
            f"shorten it, or start with a larger --ctx"
        )
        self.tokens, self.n_ctx = tokens, n_ctx


class TemplateFailed(PromptError):
    """The chat template cannot be used."""


class HostDied(EngineError):
    """The engine's process ended; the text gives the signal and the last lines of its log."""
