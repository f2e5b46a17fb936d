"""Faults that the libraries have no word for: each ends in a line that says what to do, and nothing is held."""

import gc
import json
import weakref
from pathlib import Path

import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

import safetensors.torch as tensors_file
import torch

from engine.backends.torch_cache import BufferLayer
from engine.backends.torch_load import TorchOptions, load_network
from engine.backends.transformers import TorchModel
from engine.errors import DecodeFailed, Interrupted, LoadFailed
from tests.engine.backends.torch_cases import making
from tests.tiny_torch import write_llama


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refusal(path: Path) -> str:
    """Why a folder is not opened."""
    with pytest.raises(LoadFailed) as raised:
        load_network(TorchOptions(path=path, weights="fp32", gpu=False), lambda _: None)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_adapter_is_refused_rather_than_left_out(tmp_path: Path) -> None:
    write_llama(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "holds an adapter, which is not applied here: merge it" in refusal(tmp_path)


def test_layers_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    edit(write_llama(tmp_path) / "config.json", num_hidden_layers=3)
    assert "lacks 9 of its weights, such as model.layers.2" in refusal(tmp_path)


@pytest.mark.parametrize("change", [{"hidden_size": "wide"}, {"num_attention_heads": 0}])
def test_a_configuration_that_makes_no_sense_is_said_to(tmp_path: Path, change: dict[str, object]) -> None:
    edit(write_llama(tmp_path) / "config.json", **change)
    assert "; fetch it again, or take another" in refusal(tmp_path)


def test_a_configuration_that_nests_without_end_is_said_to(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 100_000)
    assert "config.json cannot be read" in refusal(tmp_path)


def test_what_progress_raises_ends_the_loading(tmp_path: Path) -> None:
    def progress(share: float) -> None:
        if share > 0:
            raise Interrupted("stopped")

    opens = torch.load
    with pytest.raises(Interrupted, match="stopped"):
        load_network(TorchOptions(path=write_llama(tmp_path), weights="fp32", gpu=False), progress)
    assert torch.load is opens


def test_a_choice_that_fails_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> bool:
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr("engine.backends.transformers.narrows", fails)
    with pytest.raises(DecodeFailed, match="an illegal memory access"):
        making(write_llama)(tmp_path)


def test_the_network_is_free_once_it_is_closed(tmp_path: Path) -> None:
    model: TorchModel = making(write_llama)(tmp_path)
    model.forward([1, 2], 1)
    module = weakref.ref(model._alive().module)
    gc.collect()
    gc.disable()
    try:
        model.close()
        assert module() is None
    finally:
        gc.enable()


def test_memory_that_is_short_in_the_first_passes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise torch.OutOfMemoryError("tried to allocate 2 GB")

    monkeypatch.setattr(BufferLayer, "lazy_initialization", fails)
    with pytest.raises(LoadFailed, match=r"not enough memory for model: tried.*a smaller --ctx"):
        making(write_llama)(tmp_path)


def test_numbers_too_large_for_fp16_are_said_to_be(tmp_path: Path) -> None:
    """As activations of some families are."""
    path = write_llama(tmp_path / "model") / "model.safetensors"
    weights = tensors_file.load_file(path)
    weights["model.layers.0.mlp.down_proj.weight"] *= 1e6
    tensors_file.save_file(weights, path, metadata={"format": "pt"})
    making(write_llama)(tmp_path).close()
    with pytest.raises(LoadFailed, match=r"no numbers.*take --weights bf16 in place of fp16"):
        making(write_llama, weights="fp16")(tmp_path)
