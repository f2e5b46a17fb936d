"""Loading on torch: what a folder may hold, and that every fault of one is a line that says what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import safetensors.torch as tensors_file
import torch

from engine.backends.torch_load import TorchOptions, load_network
from engine.errors import Interrupted, LoadFailed
from tests.tiny_torch import write_llama

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("torch") / "model")


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "model"))


def load(path: Path, progress: Callable[[float], None] = lambda _: None) -> None:
    load_network(TorchOptions(path=path, weights="fp32", gpu=False, threads=1), progress)


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(path: Path, says: str) -> None:
    opens = torch.load
    with pytest.raises(LoadFailed, match=says) as raised:
        load(path)
    assert "\n" not in str(raised.value)
    assert torch.load is opens


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("config.json", "config.json cannot be read"),
        (WEIGHTS, "holds no weights: take the model's safetensors"),
        ("tokenizer.json", "no tokenizer.json: take another form"),
    ],
)
def test_what_is_missing_is_named(folder: Path, name: str, says: str) -> None:
    (folder / name).unlink()
    refused(folder, says)


def test_nothing_is_read_of_what_is_no_model(tmp_path: Path) -> None:
    refused(tmp_path / "away", "no model .*away: check the path")
    (tmp_path / "text").write_text("hello, this is text")
    refused(tmp_path / "text", "text is no GGUF file: name one, or a folder")


def test_a_model_with_code_of_its_own_is_refused(folder: Path) -> None:
    edit(folder / "config.json", auto_map={"AutoModelForCausalLM": "code.Model"}, model_type="other")
    (folder / "code.py").write_text("raise SystemExit('this ran')")
    refused(folder, "code of its own, which is never run")


def test_an_adapter_is_refused_rather_than_left_out(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    refused(folder, "holds an adapter.*merge it")


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")
    refused(folder, "pickled weights, which are never opened.*take the model's safetensors")


def test_pickled_weights_are_refused_behind_an_index_too(folder: Path) -> None:
    weights = tensors_file.load_file(folder / WEIGHTS)
    torch.save(weights, folder / "weights.bin")
    (folder / WEIGHTS).rename(folder / "other.safetensors")
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, "weights.bin")}))
    refused(folder, "points to pickled weights, which are never opened.*take its safetensors")


@pytest.mark.parametrize("name", ["lm_head.weight", "model.layers.1.self_attn.q_proj.weight"])
def test_weights_that_are_missing_are_not_made_up(folder: Path, name: str) -> None:
    weights = tensors_file.load_file(folder / WEIGHTS)
    del weights[name]
    tensors_file.save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    refused(folder, f"lacks 1 of its weights, such as {name}: fetch all its files")


def test_layers_that_are_missing_are_not_made_up(folder: Path) -> None:
    edit(folder / "config.json", num_hidden_layers=3)
    refused(folder, "lacks 9 of its weights, such as model.layers.2")


@pytest.mark.parametrize("damage", [lambda whole: whole[:-5000], lambda whole: bytes(len(whole))])
def test_damaged_weights_are_said_to_be(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    (folder / WEIGHTS).write_bytes(damage((folder / WEIGHTS).read_bytes()))
    refused(folder, "cannot be loaded.*fetch it again, or take another")


@pytest.mark.parametrize("change", [{"hidden_size": "wide"}, {"num_attention_heads": 0}, {"model_type": "none such"}])
def test_a_configuration_that_makes_no_sense_is_said_to(folder: Path, change: dict[str, object]) -> None:
    edit(folder / "config.json", **change)
    refused(folder, "cannot be loaded.*fetch it again, or take another")


def test_a_configuration_that_nests_without_end_is_said_to(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)
    refused(folder, "config.json cannot be read")


def test_what_progress_raises_ends_the_loading(folder: Path) -> None:
    def progress(share: float) -> None:
        if share > 0:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted, match="stopped"):
        load(folder, progress)
