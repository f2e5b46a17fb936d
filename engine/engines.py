"""Which engine a model runs on, whether that is installed, and which settings it does not take.

The one invariant: all of this is known, and said, before anything is loaded and without importing an engine.
"""

from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from engine.config import Backend, EngineConfig
from engine.errors import ConfigError, LoadFailed

Runs = Literal["llamacpp", "torch"]
TITLES: dict[Runs, str] = {"llamacpp": "llama.cpp", "torch": "torch"}
"""How the engines are called in sentences."""
TORCH_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate", "gguf")
"""What the torch engine does not work without."""
TORCH_VERSIONS = (*TORCH_PACKAGES, "bitsandbytes")
"""Whose versions decide what it computes."""
INSTALL = "run `pip install 'paceline[torch]'`"


@dataclass(frozen=True, slots=True)
class Engines:
    """What runs the models of one config."""

    target: Runs
    draft: Runs | None = None
    """None where there is no draft model."""


def engine_for(path: Path, asked: Backend = "auto") -> Runs:
    """What runs a file or a folder; LoadFailed where that cannot be."""
    folder = path.is_dir()
    if asked == "llamacpp" and folder:
        raise LoadFailed(
            f"{path} is a folder and llama.cpp reads GGUF files: take --engine torch (--draft-engine torch for a "
            "draft), or give a .gguf file"
        )
    if asked == "torch" or folder:
        return "torch"
    return "llamacpp"


def engines_for(config: EngineConfig) -> Engines:
    """What runs target and draft; LoadFailed or ConfigError where that, or a setting, cannot be."""
    draft = None if config.draft is None else engine_for(config.draft, config.draft_backend)
    engines = Engines(engine_for(config.target, config.backend), draft)
    if engines.target == "torch":
        require_torch()
        _refuse_for_torch(config)
    else:
        _refuse_for_llamacpp(config, engines)
    return engines


def require_torch() -> None:
    """LoadFailed where a package of the torch engine is missing."""
    if missing := missing_package():
        raise LoadFailed(
            f"the torch engine is not installed (there is no {missing}): {INSTALL}, "
            "or take a GGUF file and --engine llamacpp"
        )


def missing_package() -> str | None:
    """The first package that the torch engine lacks; None where it can run.  Nothing is imported."""
    return next((name for name in TORCH_PACKAGES if not _there(name)), None)


def torch_versions() -> dict[str, str]:
    """The versions of the torch engine's packages, of those that are there."""
    found = {}
    for name in TORCH_VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def torch_stack() -> str:
    """What computes on torch, in one line: a measurement or a saved cache belongs to these versions alone."""
    return "; ".join(f"{name} {version}" for name, version in torch_versions().items())


def _there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _refuse_for_torch(config: EngineConfig) -> None:
    if config.kv is not None:
        raise ConfigError(
            f"the torch engine's cache holds the numbers it computes in, not {config.kv}: leave --kv out, or take "
            "--engine llamacpp"
        )
    if config.gpu_layers > 0:
        raise ConfigError(
            f"the torch engine runs all layers on the GPU or none: take --gpu-layers -1 or 0, not {config.gpu_layers}"
        )


def _refuse_for_llamacpp(config: EngineConfig, engines: Engines) -> None:
    if config.weights != "auto" and engines.draft != "torch":
        raise ConfigError("llama.cpp takes weights as the file holds them: leave --weights out, or take --engine torch")
    if config.exit_layers is not None:
        raise ConfigError(
            "only the torch engine can leave a model early: leave --exit-layers out, or take --engine torch"
        )
