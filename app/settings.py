"""What the user may set, the same whether it comes from a file, the environment or the command line.

None means "not set here": layers are merged by taking the first that says something, and the engine's own records
(`engine.config`) are the only place that knows a default or a range.
"""

import dataclasses
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from app.errors import UsageError
from engine.config import (
    CacheType,
    EngineConfig,
    Exactness,
    FlashAttention,
    Message,
    Request,
    Rule,
    Sampling,
    Speculation,
    Weights,
)
from engine.errors import ConfigError

SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "repeat_last",
    "frequency_penalty",
    "presence_penalty",
    "seed",
)
"""Settings that are fields of Sampling by the same name."""
LOADING = (
    "engine",
    "draft_engine",
    "exact",
    "ctx",
    "threads",
    "gpu_layers",
    "kv",
    "flash_attention",
    "weights",
    "exit_layers",
)
"""Settings of how a model is loaded, which say nothing to the demo."""

Thinking = Literal["auto", "on", "off"]
Bell = Literal["off", "sound", "notice"]
Thoughts = Literal["folded", "live", "open"]


@dataclass(frozen=True)
class Window:
    """How the window looks and what it does by itself."""

    theme: str = "paceline-dark"
    """Its colours, by the name of a theme."""
    bell: Bell = "off"
    """How it says that an answer has ended."""
    idle_unload: int = 30
    """Minutes without use after which the models' memory is given back; 0 is never."""
    colour_tokens: bool = False
    """Whether tokens are coloured by where they came from."""
    thoughts: Thoughts = "folded"
    """Whether what a model thinks is open: never, while it thinks, or always; a click does it for one block."""
    kept_gb: float = 2.0
    """Gigabytes on the disk that what the models have read of conversations may take; 0 keeps none."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One layer of settings, or all of them merged."""

    pair: str | None = None
    """A pair of models that belong together; default: the one used last, else coder, else tiny."""
    target: str | None = None
    """The model that decides, by id or path (a GGUF file or a checkpoint's folder), in place of a pair."""
    draft: str | None = None
    """The model that drafts for it, by id or path; none: drafts come from the conversation alone."""
    engine: Literal["auto", "llamacpp", "torch"] | None = None
    """What runs the target: llama.cpp a GGUF file, torch that or a checkpoint's folder; default: by what it is."""
    draft_engine: Literal["auto", "llamacpp", "torch"] | None = None
    """What runs the draft; default: by what it is, so a GGUF file may draft for a checkpoint."""
    demo: bool | None = None
    """A scripted model in place of a real one: nothing to download."""
    spec: str | None = None
    """Speculation: auto, off, or how many tokens to draft each round; default: auto."""
    rule: Rule | None = None
    """How drafts are judged; default: rejection; with a seed coupled, which gives the same text without drafts."""
    exact: Exactness | None = None
    """strict drafts only as far as the text is identical to undrafted text by construction; default: normal."""
    seed: int | None = None
    """Makes an answer repeatable; default: a new one each time."""
    temperature: float | None = None
    """0 always takes the most likely token, above 1 is bolder; applied before the filters below; default: 0.7."""
    top_k: int | None = None
    """Keep the K most likely tokens, 0 all; default: 40."""
    top_p: float | None = None
    """Keep the most likely tokens up to this share, 1 all; default: 0.95."""
    min_p: float | None = None
    """Drop tokens less likely than this share of the most likely one, 0 none; default: 0.05."""
    repeat_penalty: float | None = None
    """Makes recent tokens less likely, 1 not at all; default: 1."""
    repeat_last: int | None = None
    """How many tokens back that penalty looks; default: 64."""
    frequency_penalty: float | None = None
    """Makes tokens of the answer less likely with each use; default: 0."""
    presence_penalty: float | None = None
    """Makes tokens of the answer less likely once they are used; default: 0."""
    logit_bias: tuple[str, ...] | None = None
    """ID=B adds B to a token's logit, -inf forbids it; may be repeated."""
    max_tokens: int | None = None
    """Longest answer in tokens; default: 1024."""
    stop: tuple[str, ...] | None = None
    """A text that ends the answer; may be repeated."""
    system: str | None = None
    """What the model is told before the conversation."""
    ctx: int | None = None
    """Tokens of context; default: the least of 8192, what the model was trained for and what fits."""
    threads: int | None = None
    """Threads of the model; default: the physical cores that this program may use."""
    gpu_layers: int | None = None
    """Layers on the GPU, -1 all, 0 none; default: -1."""
    kv: CacheType | None = None
    """Type of llama.cpp's cache: smaller types need less memory; default: f16."""
    flash_attention: FlashAttention | None = None
    """Another way to compute attention; default: auto, which is on with a GPU or a quantized cache, else off."""
    weights: Weights | None = None
    """How the torch engine holds weights: nf4 and int8 need the least memory; default: auto, by device and memory."""
    history: bool | None = None
    """false keeps nothing of what is said on the disk, and reads nothing of it; default: true."""
    exit_layers: str | None = None
    """How many of the target's first layers draft for the rest (torch engine): auto measures it; default: off."""
    thinking: Thinking | None = None
    """Whether a model that can think first is told to: on or off; default: auto, which leaves it to the model."""
    theme: str | None = None
    """The window's colours, by the name of a theme; default: paceline-dark."""
    bell: Bell | None = None
    """How the window says that an answer has ended: sound, or notice (of the terminal's); default: off."""
    idle_unload: int | None = None
    """Minutes without use after which the window gives the models' memory back, 0 never; default: 30."""
    colour_tokens: bool | None = None
    """Colour the tokens of answers in the window by where they came from; default: false."""
    thoughts: Thoughts | None = None
    """How the window shows what a model thinks: folded, live (open while it thinks) or open; default: folded."""
    kept_gb: float | None = None
    """Gigabytes on the disk for what the models have read of conversations, so that they reopen at once; default: 2."""

    def over(self, lower: "Settings") -> "Settings":
        """These settings where they say something, `lower` elsewhere; a choice of models replaces all of it."""
        own = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        base = {field.name: getattr(lower, field.name) for field in fields(lower)}
        if self.pair or self.target or self.demo:
            base.update(pair=None, target=None, draft=None, demo=None)
        if self.demo:
            base.update(dict.fromkeys(LOADING))
        return dataclasses.replace(lower, **{**base, **own})

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn; ConfigError where a value is out of range."""
        said = {name: getattr(self, name) for name in SAMPLING}
        said["logit_bias"] = None if self.logit_bias is None else dict(_bias(text) for text in self.logit_bias)
        return replace(Sampling(), **_said(said))

    @property
    def speculation(self) -> Speculation:
        """Whether and how far to draft; ConfigError where it is neither auto, off nor a length."""
        match self.spec:
            case None | "auto":
                return Speculation(rule=self.rule)
            case "off":
                return Speculation(mode="off", rule=self.rule)
        try:
            return Speculation(mode="fixed", length=int(self.spec), rule=self.rule)
        except (ValueError, ConfigError) as error:
            raise ConfigError(f"spec must be auto, off or a length from 1 to 64, not {self.spec!r}") from error

    @property
    def window(self) -> Window:
        """How the window is to be."""
        return dataclasses.replace(
            Window(), **_said({field.name: getattr(self, field.name) for field in fields(Window)})
        )

    @property
    def early_exit(self) -> int | None:
        """How many layers draft, 0 to be measured, None for none; ConfigError where it is neither off, auto nor so."""
        if self.exit_layers in (None, "off"):
            return None
        if self.exit_layers == "auto":
            return 0
        if self.exit_layers.isdecimal() and (layers := int(self.exit_layers)) > 0:
            return layers
        raise ConfigError(f"exit-layers must be auto, off or a number of layers from 1 on, not {self.exit_layers!r}")

    def request(self, messages: tuple[Message, ...]) -> Request:
        """A conversation to answer with these settings, the system's message first."""
        system = (Message(role="system", content=self.system),) if self.system else ()
        thinking = {"on": True, "off": False}.get(self.thinking or "auto")
        said = _said({"max_tokens": self.max_tokens, "stop": self.stop, "thinking": thinking})
        request = Request(messages=(*system, *messages), sampling=self.sampling, speculation=self.speculation)
        return replace(request, **said)

    def engine_config(self, target: Path) -> EngineConfig:
        """How to load this file or folder, with no draft; ConfigError where a value is out of range."""
        same = ("threads", "gpu_layers", "kv", "flash_attention", "exact", "weights")
        said = {
            **{name: getattr(self, name) for name in same},
            "n_ctx": self.ctx,
            "backend": "demo" if self.demo else self.engine,
            "draft_backend": self.draft_engine,
            "exit_layers": self.early_exit,
        }
        return replace(EngineConfig(target=target), **_said(said))

    def check(self) -> None:
        """Raise ConfigError or UsageError where a value is out of range or two exclude each other."""
        self.request(())
        self.engine_config(Path())
        if self.idle_unload is not None and self.idle_unload < 0:
            raise UsageError(f"idle-unload must be 0 (never) or more minutes, not {self.idle_unload}")
        if self.kept_gb is not None and not 0 <= self.kept_gb < math.inf:
            raise UsageError(f"kept-gb must be 0 (none) or more gigabytes, not {self.kept_gb}")
        for name in ("pair", "target", "draft"):
            if (value := getattr(self, name)) is not None and not value.strip():
                raise UsageError(f"{name} must not be empty: name a model, or leave it out")
        if self.pair and self.target:
            raise UsageError("pair and target exclude each other: give one of them")
        if self.demo and (self.pair or self.target or self.draft):
            raise UsageError("demo runs no model: leave out pair, target and draft")
        if self.demo and (said := [name for name in LOADING if getattr(self, name) is not None]):
            raise UsageError(f"demo runs no model: leave out {said[0].replace('_', '-')}")


def _said(values: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _bias(text: str) -> tuple[int, float]:
    token, equals, bias = text.partition("=")
    try:
        if equals:
            return int(token), float(bias)
    except ValueError:
        pass
    raise ConfigError(f"logit-bias must be a token id, = and a number (such as 50=-1.5 or 50=-inf), not {text!r}")
