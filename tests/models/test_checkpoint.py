"""The folder of a checkpoint: what counts as one, its facts, and what is said of all others."""

import json
from pathlib import Path

import pytest

from models import checkpoint, fit
from models.errors import ModelsError, NotCheckpoint
from models.facts import Facts

LLAMA = {
    "model_type": "llama",
    "vocab_size": 320,
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "max_position_embeddings": 2048,
}
FACTS = Facts(arch="llama", n_vocab=320, n_layer=3, n_embd=64, n_head=4, kv_width=3 * 2 * 48, n_ctx_train=2048)


def folder_with(tmp_path: Path, config: object, **files: bytes) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    for name, content in files.items():
        (folder / f"{name}.safetensors").write_bytes(content)
    return folder


def test_the_load_of_a_checkpoint_is_its_weights_and_its_facts(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, LLAMA, a=bytes(7), b=bytes(5))
    (folder / "tokenizer.json").write_text("{}")
    assert checkpoint.check(folder) == 12
    assert fit.of_file(folder) == fit.Load(weights=12, facts=FACTS)


def test_the_language_part_of_a_larger_model_counts(tmp_path: Path) -> None:
    assert checkpoint.facts(folder_with(tmp_path, {"model_type": "many", "text_config": LLAMA})) == FACTS


def test_other_names_and_what_is_left_out(tmp_path: Path) -> None:
    """As in GPT-2 and in recurrent models; infinite numbers stand in some."""
    config = '{"vocab_size": 9, "n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 64, "limit": Infinity}'
    facts = checkpoint.facts(folder_with(tmp_path, config))
    assert (facts.arch, facts.n_layer, facts.kv_width, facts.n_ctx_train) == ("unknown", 2, 2 * 2 * 2 * 4, 64)
    bare = {name: LLAMA[name] for name in ("vocab_size", "num_hidden_layers", "hidden_size")}
    (tmp_path / "checkpoint" / "config.json").write_text(json.dumps(bare))
    assert checkpoint.facts(tmp_path / "checkpoint").n_ctx_train == 8192


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None, 1 << 40, [3]])
def test_a_number_that_is_none_is_named(tmp_path: Path, value: object) -> None:
    with pytest.raises(NotCheckpoint, match=r"config\.json says nothing of use about num_hidden_layers"):
        checkpoint.facts(folder_with(tmp_path, {**LLAMA, "num_hidden_layers": value}))


@pytest.mark.parametrize("config", ["", "{", "[1]", "\x00", "[" * 100_000])
def test_a_configuration_that_is_none_is_said(tmp_path: Path, config: str) -> None:
    with pytest.raises(NotCheckpoint, match="fetch it again") as raised:
        checkpoint.check(folder_with(tmp_path, config))
    assert "\n" not in str(raised.value)


def test_any_other_folder_says_what_is_missing(tmp_path: Path) -> None:
    wanted = r"is a folder without config\.json: name a folder with config\.json, \*\.safetensors and tokenizer\.json"
    with pytest.raises(NotCheckpoint, match=wanted):
        checkpoint.check(tmp_path)
    (tmp_path / "m.gguf").touch()
    with pytest.raises(NotCheckpoint, match=r"name the file in it, such as m\.gguf"):
        checkpoint.check(tmp_path)


def test_a_folder_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ModelsError):
        checkpoint.facts(tmp_path / "gone")
