"""What the files of a model say of it before any weight is read.

The one invariant: a GGUF file whose network transformers would build otherwise than the file says is not opened, since
what it then said would not be the model's.
"""

import json
from pathlib import Path

from engine.backends.torch_library import reason, transformers
from engine.errors import LoadFailed

_SCALES_READ = ("gpt-oss",)
"""Families whose scaled rotations transformers takes over from a GGUF file."""
_PLAIN = {"type": ("none",), "factor": (0, 1), "attn_factor": (1,)}
"""Settings of rotations that change nothing."""


def read_config(folder: Path) -> dict[str, object]:
    """config.json of a checkpoint; LoadFailed where there is none that can be read."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LoadFailed(
            f"{folder.name} is no checkpoint, its config.json cannot be read: {reason(error)}; fetch it again"
        ) from error
    if not isinstance(config, dict):
        raise LoadFailed(f"{folder.name} is no checkpoint, its config.json is no list of settings: fetch it again")
    return config


def configuration(folder: Path) -> "transformers.PreTrainedConfig":
    """What transformers makes of config.json, without the kernels that it may name: they are code of a repository."""
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    config._attn_implementation = config._experts_implementation = None
    return config


def longest_context(config: object) -> int | None:
    """So many tokens a network reads as it was trained to; None: a state has no such bound.

    Beyond the first length that it was trained for, LongRoPE turns whatever is new in another way than what was read.
    """
    text = config.get_text_config(decoder=True)  # type: ignore[attr-defined]
    rope = getattr(text, "rope_parameters", None) or {}
    first = rope.get("original_max_position_embeddings") if rope.get("rope_type") == "longrope" else None
    most: int | None = first or getattr(text, "max_position_embeddings", None)
    return most


def trained_context(path: Path) -> int | None:
    """The same of a model that is not yet loaded; LoadFailed where its file cannot be taken over as it is."""
    if path.is_dir():
        return longest_context(configuration(path))
    from transformers.integrations.gguf.reader import read_gguf_metadata

    said, tensors = read_gguf_metadata(str(path))
    family = said["general.architecture"]
    if family not in _SCALES_READ and (_is_scaled(said, family) or any("rope_f" in name for name in tensors)):
        raise LoadFailed(
            f"{path.name} scales its rotations, which transformers does not read from GGUF files: "
            "take --engine llamacpp, or the model's safetensors"
        )
    most: int | None = said.get(f"{family}.context_length")
    return most


def _is_scaled(said: dict[str, object], family: str) -> bool:
    settings = {name: said.get(f"{family}.rope.scaling.{name}") for name in _PLAIN}
    return any(value is not None and value not in _PLAIN[name] for name, value in settings.items())
