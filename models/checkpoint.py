"""A folder with a Transformers checkpoint: how much its weights are, and the shape that its config.json tells.

Nothing of it is run, and the weights are only counted.  The one invariant: no number of config.json is used before it
is known to be one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from models.errors import NotCheckpoint
from models.facts import Facts
from models.files import guarded
from models.text import plain

CONFIG: Final = "config.json"
WANTED: Final = "config.json, *.safetensors and tokenizer.json"
_MOST_CONFIG: Final = 16 << 20
_MOST: Final = 1 << 32
_UNNAMED_CONTEXT: Final = 8192
"""Tokens of context where config.json names none, as recurrent models do."""


def check(folder: Path) -> int:
    """Bytes of its weights; NotCheckpoint where it has no configuration that can be read."""
    _config(folder)
    with guarded(folder):
        return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def facts(folder: Path) -> Facts:
    """The facts that a configuration tells; NotCheckpoint where it describes no language model."""
    config = _config(folder)
    inner = config.get("text_config")
    shape = _Shape(folder, inner if isinstance(inner, Mapping) else config)
    n_layer = shape.number("num_hidden_layers", "n_layer")
    n_embd = shape.number("hidden_size", "n_embd")
    n_head = shape.number("num_attention_heads", "n_head", default=1)
    kv_heads = shape.number("num_key_value_heads", default=n_head)
    head = shape.number("head_dim", default=max(1, n_embd // n_head))
    return Facts(
        arch=plain(str(shape.values.get("model_type", "unknown")), 80),
        n_vocab=shape.number("vocab_size"),
        n_layer=n_layer,
        n_embd=n_embd,
        n_head=n_head,
        kv_width=n_layer * kv_heads * 2 * head,
        n_ctx_train=shape.number("max_position_embeddings", "n_positions", default=_UNNAMED_CONTEXT),
    )


class _Shape:
    """The part of a configuration that describes the language model."""

    def __init__(self, folder: Path, values: Mapping[str, object]) -> None:
        self.folder, self.values = folder, values

    def number(self, *names: str, default: int | None = None) -> int:
        """The number under the first of these names that is there."""
        value = next((self.values[name] for name in names if self.values.get(name) is not None), default)
        if type(value) is int and 0 < value < _MOST:
            return value
        where = plain(str(self.folder / CONFIG))
        raise NotCheckpoint(f"{where} says nothing of use about {names[0]}: fetch another form of the model")


def _config(folder: Path) -> Mapping[str, object]:
    shown, file = plain(str(folder)), folder / CONFIG
    with guarded(folder):
        if not file.is_file():
            raise NotCheckpoint(f"{shown} is a folder without {CONFIG}: {_advice(folder)}")
        with file.open("rb") as stream:
            text = stream.read(_MOST_CONFIG)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotCheckpoint(f"{shown}/{CONFIG} cannot be read as JSON: fetch it again") from error
    if not isinstance(config, dict):
        raise NotCheckpoint(f"{shown}/{CONFIG} is no JSON object: fetch it again")
    return config


def _advice(folder: Path) -> str:
    """What to name in place of a folder that is none."""
    file = next((file.name for file in sorted(folder.glob("*.gguf"))), None)
    if file is not None:
        return f"name the file in it, such as {plain(file)}"
    return f"name a folder with {WANTED}, or a .gguf file"
