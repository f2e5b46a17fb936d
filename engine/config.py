"""Frozen settings of the engine; each checks itself, so a value that exists is a value in range."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from engine.errors import ConfigError

Rule = Literal["rejection", "coupled"]
Mode = Literal["auto", "off", "fixed"]
Exactness = Literal["normal", "strict"]
Backend = Literal["auto", "llamacpp", "torch", "demo"]
CacheType = Literal["f16", "q8_0", "q4_0"]
FlashAttention = Literal["auto", "on", "off"]
Weights = Literal["auto", "nf4", "int8", "bf16", "fp16", "fp32"]

MAX_DRAFT = 64
"""The longest draft that can be asked for."""


class Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record that never changes; it travels as msgpack and prints as JSON."""


def _check(ok: bool, message: str) -> None:
    if not ok:
        raise ConfigError(message)


def _finite(name: str, value: float) -> None:
    _check(math.isfinite(value), f"{name} must be a finite number, not {value}")


class Sampling(Frozen, frozen=True, kw_only=True):
    """How a row of logits becomes a distribution (DESIGN order: bias, penalties, temperature, top-k, top-p, min-p)."""

    temperature: float = 0.7
    """0 is greedy; above 1 flattens."""
    top_k: int = 40
    """Keep the k most likely tokens; 0 keeps all."""
    top_p: float = 0.95
    """Keep the most likely tokens up to this mass; 1 keeps all."""
    min_p: float = 0.05
    """Drop tokens under this share of the most likely one; 0 drops none."""
    repeat_penalty: float = 1.0
    """Divides positive and multiplies negative logits of recent tokens; 1 does nothing."""
    repeat_last: int = 64
    """How many tokens of prompt and answer the repetition penalty looks back on."""
    frequency_penalty: float = 0.0
    """Taken from a token's logit for each time the answer has used it."""
    presence_penalty: float = 0.0
    """Taken once from the logit of a token that the answer has used."""
    logit_bias: Mapping[int, float] = {}
    """Added to the logits of these ids; -inf forbids."""
    seed: int | None = None
    """Fixes the draws; None takes one from the system."""

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty"):
            _finite(name.replace("_", "-"), getattr(self, name))
        _check(self.temperature >= 0, f"temperature must be 0 or more, not {self.temperature}")
        _check(self.top_k >= 0, f"top-k must be 0 (off) or more, not {self.top_k}")
        _check(0 < self.top_p <= 1, f"top-p must be above 0 and at most 1 (off), not {self.top_p}")
        _check(0 <= self.min_p <= 1, f"min-p must be from 0 (off) to 1, not {self.min_p}")
        _check(self.repeat_penalty > 0, f"repeat-penalty must be above 0 (1 is off), not {self.repeat_penalty}")
        _check(self.repeat_last >= 0, f"repeat-last must be 0 or more, not {self.repeat_last}")
        for token, bias in self.logit_bias.items():
            _check(token >= 0, f"logit-bias needs token ids of 0 or more, not {token}")
            _check(bias < math.inf, f"logit-bias of token {token} must be a number or -inf, not {bias}")
        _check(self.seed is None or 0 <= self.seed < 2**63, f"seed must be from 0 to 2^63 - 1, not {self.seed}")

    @property
    def greedy(self) -> bool:
        """Whether each row is one-hot."""
        return self.temperature == 0


class Speculation(Frozen, frozen=True, kw_only=True):
    """Whether and how far ahead to draft, and the rule that keeps or refuses."""

    mode: Mode = "auto"
    """auto lets the planner choose each round; off never drafts; fixed drafts `length` tokens."""
    length: int | None = None
    """Tokens a round in mode fixed; None otherwise."""
    rule: Rule | None = None
    """None takes coupled where a seed is given and rejection elsewhere."""

    def __post_init__(self) -> None:
        if self.mode == "fixed":
            _check(
                self.length is not None and 1 <= self.length <= MAX_DRAFT,
                f"a fixed draft length must be from 1 to {MAX_DRAFT}, not {self.length}",
            )
        else:
            _check(self.length is None, "a draft length goes with mode fixed only")

    def rule_for(self, seed: int | None) -> Rule:
        """The rule in force, given the seed that the user chose (None: none)."""
        return self.rule or ("rejection" if seed is None else "coupled")


class EngineConfig(Frozen, frozen=True, kw_only=True):
    """What to load and how."""

    target: Path
    """The target's file, or its folder where it is a checkpoint (unused by the demo backend)."""
    draft: Path | None = None
    """The draft's file or folder; None drafts by lookup alone."""
    target_name: str = ""
    """How reports call the target; empty takes the file's name."""
    draft_name: str = ""
    """How reports call the draft; empty takes the file's name."""
    backend: Backend = "auto"
    """auto goes by the target's type, a file or a folder; demo is a scripted model that needs no file."""
    draft_backend: Backend = "auto"
    """What runs the draft; auto goes by the draft's type."""
    n_ctx: int | None = None
    """Tokens of context; None takes the least of 8,192, what the model was trained for and what fits."""
    threads: int | None = None
    """None takes the physical cores that this process may use."""
    gpu_layers: int = -1
    """Layers on the GPU; -1 takes all where there is one, 0 none (the torch engine knows no other number)."""
    kv: CacheType | None = None
    """Type of llama.cpp's key-value cache; None takes f16, or what strict exactness needs."""
    flash_attention: FlashAttention = "auto"
    """auto: what was measured as faster before, else on with a GPU or a quantized cache; or what strict needs."""
    weights: Weights = "auto"
    """How the torch engine holds weights; auto goes by the device and by what the checkpoint holds."""
    exit_layers: int | None = None
    """How many of the target's first layers draft for the rest (torch engine); 0 measures it, None: no early exit."""
    exact: Exactness = "normal"
    """strict drafts only at widths whose logits equal width 1 bit for bit."""
    calibrate: Literal["load", "idle"] = "load"
    """When this machine is measured for the first time: at load, or, but for a second of it, while no one waits."""
    require_draft: bool = False
    """Whether a draft that does not fit is an error; otherwise the target goes on alone and says why."""
    cache_dir: Path | None = None
    """Where measurements are kept; None keeps none."""
    library: Path | None = None
    """A folder for the user's answers, which later ones may be copied from; None keeps and reads none."""

    def __post_init__(self) -> None:
        _check(self.n_ctx is None or self.n_ctx >= 16, f"ctx must be at least 16 tokens, not {self.n_ctx}")
        _check(self.threads is None or self.threads >= 1, f"threads must be at least 1, not {self.threads}")
        _check(self.gpu_layers >= -1, f"gpu-layers must be -1 (all), 0 (none) or more, not {self.gpu_layers}")
        _check(self.draft_backend != "demo", "the demo has a draft of its own: leave the draft's engine out")
        _check(
            self.exit_layers is None or self.exit_layers >= 0,
            f"exit-layers must be 0 (auto) or more layers, not {self.exit_layers}",
        )
        _check(
            not (self.kv in ("q8_0", "q4_0") and self.flash_attention == "off"),
            f"a {self.kv} cache needs flash attention: leave it at auto or on, or take --kv f16",
        )


class Message(Frozen, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str
    ids: tuple[int, ...] | None = None
    """An assistant's own generated ids, so that they need not be tokenized again."""


class Request(Frozen, frozen=True, kw_only=True):
    """A conversation to answer."""

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    speculation: Speculation = Speculation()
    max_tokens: int = 1024
    stop: tuple[str, ...] = ()
    go_on: bool = False
    """Whether the last message is the beginning of an answer, which is to be continued."""
    thinking: bool | None = None
    """What the chat template is told where it can turn thinking on and off; None: nothing."""
    trace: bool = False
    """Whether the events with tokens carry each token's chances."""

    def __post_init__(self) -> None:
        _check(
            not self.go_on or (bool(self.messages) and self.messages[-1].role == "assistant"),
            "only an answer can be continued: the last message must be one",
        )
        _check(self.max_tokens >= 0, f"max-tokens must be 0 or more, not {self.max_tokens}")
        _check(all(self.stop), "a stop text must not be empty")
