"""Opens one model on its engine, the same way for all.

The one invariant: an engine is imported here, when a model is opened on it, and nowhere before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from engine.config import EngineConfig
from engine.engines import Runs, require_torch, torch_stack
from engine.events import Loading
from engine.model import Model
from engine.stats import HeldAs

Tell = Callable[[Loading], None]


class Placed(Model, Protocol):
    """A model that says what it was opened from, and how it runs."""

    @property
    def file(self) -> Path:
        """Its file or folder."""
        ...

    @property
    def kv(self) -> HeldAs:
        """How its cache holds keys and values."""
        ...

    @property
    def flash_attention(self) -> Literal["on", "off"]:
        """Whether attention is computed in that way."""
        ...

    @property
    def threads(self) -> int:
        """Threads of its passes."""
        ...

    @property
    def device(self) -> str:
        """Where it runs."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A model, and what its measurements depend on beside its file."""

    model: Placed
    engine: Runs
    library: str
    """Names and versions of what computes it."""
    weights: str | None = None
    """How the torch engine holds them; None: as the file does."""


def open_model(
    config: EngineConfig, path: Path, engine: Runs, progress: Callable[[float], None], n_ctx_most: int | None = None
) -> Opened:
    """Open one model; with `n_ctx_most` the context asked for in `config` does not hold.  Raises LoadFailed."""
    n_ctx = None if n_ctx_most else config.n_ctx
    opens = _on_torch if engine == "torch" else _on_llamacpp
    return opens(config, path, progress, n_ctx, n_ctx_most)


def telling(progress: Tell, what: str) -> Callable[[float], None]:
    """Progress under a name."""
    return lambda share: progress(Loading(what=what, share=share))


def llamacpp_library() -> str:
    """What llama.cpp's results depend on beside the machine."""
    from engine.backends.llamacpp_library import cpu_features, library_version

    return f"{library_version()}; {cpu_features()}"


def _on_llamacpp(
    config: EngineConfig, path: Path, progress: Callable[[float], None], n_ctx: int | None, n_ctx_most: int | None
) -> Opened:
    from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions

    options = LlamaCppOptions(
        path=path,
        n_ctx=n_ctx,
        n_ctx_most=n_ctx_most,
        threads=config.threads,
        gpu_layers=config.gpu_layers,
        kv=config.kv or "f16",
        flash_attention=config.flash_attention,
    )
    return Opened(LlamaCppModel(options, progress), "llamacpp", llamacpp_library())


def _on_torch(
    config: EngineConfig, path: Path, progress: Callable[[float], None], n_ctx: int | None, n_ctx_most: int | None
) -> Opened:
    require_torch()
    from engine.backends.transformers import TorchModel, TorchOptions

    options = TorchOptions(
        path=path,
        n_ctx=n_ctx,
        n_ctx_most=n_ctx_most,
        threads=config.threads,
        weights=config.weights,
        flash_attention=config.flash_attention,
        gpu=config.gpu_layers != 0,
    )
    model = TorchModel(options, progress)
    passes = "; captured passes" if model.captured else ""  # whose sums go another way
    return Opened(model, "torch", torch_stack() + passes, model.weights)
