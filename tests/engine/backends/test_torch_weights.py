"""What weights are kept in: a choice that was tried, and weighed against the memory that is free."""

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from engine.backends import torch_weights
from engine.backends.llamacpp_library import lib
from engine.backends.torch_library import Device
from engine.backends.torch_weights import choose_weights, compute_type
from engine.backends.transformers import TorchModel, TorchOptions
from engine.errors import LoadFailed
from tests.tiny_gguf import write_llama

CPU = Device("cpu")
PARAMETERS = 117_312
"""Of the tiny GGUF file."""


def gguf(folder: Path) -> Path:
    """A file of 32 bits a weight."""
    return write_llama(folder / "model.gguf")


def checkpoint(folder: Path, size: int = 1000, **config: object) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(bytes(size))
    return folder


def with_memory(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=free))


@pytest.mark.parametrize("fast", [True, False])
def test_auto_computes_in_16_bits_where_the_processor_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool
) -> None:
    monkeypatch.setattr(torch_weights, "_fast_bf16", lambda: fast)
    assert choose_weights(gguf(tmp_path), "auto", CPU) == ("bf16" if fast else "fp32")


@pytest.mark.parametrize("weights", ["bf16", "fp16", "fp32"])
def test_floats_are_computed_in_as_they_are_kept(tmp_path: Path, weights: str) -> None:
    assert choose_weights(gguf(tmp_path), weights, CPU) == weights  # type: ignore[arg-type]
    assert compute_type(weights, CPU) == weights  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("weights", "make", "needed"),
    [
        ("fp32", gguf, 4 * PARAMETERS),
        ("bf16", gguf, 2 * PARAMETERS),
        ("nf4", gguf, 2 * PARAMETERS),
        ("fp32", checkpoint, 2000),
        ("fp16", checkpoint, 1000),
    ],
)
def test_what_does_not_fit_is_said_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: str, make: object, needed: int
) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    monkeypatch.setattr(torch_weights, "_fast_bf16", lambda: True)
    with_memory(monkeypatch, needed)
    assert choose_weights(path, weights, CPU) == weights  # type: ignore[arg-type]
    with_memory(monkeypatch, needed - 1)
    advice = "--engine llamacpp" if path.is_file() else "--weights nf4"
    with pytest.raises(LoadFailed, match=f"GB in {weights}.*GB are free: take {advice}"):
        choose_weights(path, weights, CPU)  # type: ignore[arg-type]


def test_a_checkpoint_that_is_quantized_while_it_is_read_needs_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_memory(monkeypatch, 10)
    assert choose_weights(checkpoint(tmp_path), "nf4", CPU) == "nf4"


@pytest.mark.parametrize("fault", [ImportError("no bitsandbytes"), NotImplementedError("no kernel"), OSError("lib")])
def test_what_bitsandbytes_cannot_do_is_said_before_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(*_: object) -> None:
        raise fault

    monkeypatch.setattr("engine.backends.torch_quantize.quantized", fails)
    with pytest.raises(LoadFailed, match=f"{fault}.*take bf16"):
        choose_weights(gguf(tmp_path), "nf4", CPU)


def test_bf16_where_it_cannot_be_computed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_weights, "_computes_bf16", lambda _: False)
    with pytest.raises(LoadFailed, match="--weights fp16 or fp32"):
        choose_weights(gguf(tmp_path), "bf16", CPU)


@pytest.mark.parametrize(("said", "weights"), [({"load_in_4bit": True}, "nf4"), ({"load_in_8bit": True}, "int8")])
def test_weights_that_were_written_quantized_are_called_so(tmp_path: Path, said: dict, weights: str) -> None:
    pytest.importorskip("bitsandbytes")
    path = checkpoint(tmp_path, quantization_config=said)
    assert choose_weights(path, "auto", CPU) == weights
    assert choose_weights(path, weights, CPU) == weights  # type: ignore[arg-type]
    with pytest.raises(LoadFailed, match="quantized already: leave --weights out"):
        choose_weights(path, "fp32", CPU)


def test_weights_that_were_written_quantized_by_others_are_not_quantized_again(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, quantization_config={"quant_method": "other"})
    assert choose_weights(path, "auto", CPU) in ("bf16", "fp32")
    with pytest.raises(LoadFailed, match="quantized already: leave --weights out"):
        choose_weights(path, "nf4", CPU)


def test_weights_of_a_type_that_transformers_unpacks_but_does_not_list(tmp_path: Path) -> None:
    """Q5_0 stands in most small files of 4 bits: rows too short for blocks of 256 become that."""
    path = tmp_path / "q5_0.gguf"
    params = lib.llama_model_quantize_default_params()
    params.ftype = lib.LLAMA_FTYPE_MOSTLY_Q5_0
    assert lib.llama_model_quantize(bytes(gguf(tmp_path)), bytes(path), params) == 0
    assert path.stat().st_size < gguf(tmp_path).stat().st_size
    assert choose_weights(path, "fp32", CPU) == "fp32"
    with closing(TorchModel(TorchOptions(path=path, n_ctx=256, threads=1, weights="fp32"))) as model:
        assert model.forward([1, 2, 3], 1).shape[0] == 1
