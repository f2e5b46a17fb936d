"""The torch backend against other ways to the same rows: transformers in one pass, llama.cpp on the same file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

import torch

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.torch_captured import LEAST_ROOM, WIDEST
from engine.backends.transformers import TorchModel, TorchOptions
from engine.model import FloatArray
from tests import tiny_gguf
from tests.engine.backends.contract import some_ids
from tests.engine.backends.torch_cases import NOISE, making
from tests.tiny_torch import Tiny, write_gemma3, write_hybrid, write_llama, write_mamba, write_qwen2

MODELS = {
    "llama": making(lambda path: write_llama(path, Tiny(padding=7))),
    "llama-captured": making(write_llama, captured=True),
    "llama-one-by-one": making(write_llama, flash_attention="off"),
    "qwen2": making(write_qwen2),
    "gemma3": making(write_gemma3),
    "gemma3-captured": making(write_gemma3, captured=True),
    "mamba": making(write_mamba),
    "hybrid": making(write_hybrid),
}
CUTS = [[1] * 70, [70], [40, 1, 1, 5, 23], [3, 64, 3], [17, 16, 15, 22]]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchModel]:
    model = MODELS[request.param](tmp_path_factory.mktemp(request.param))
    yield model
    model.close()


def rows_of(model: TorchModel, ids: list[int]) -> FloatArray:
    """What transformers says in one pass that keeps nothing."""
    with torch.inference_mode():
        rows: FloatArray = model._alive().module(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()
    return rows


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_rows_are_those_of_one_pass_without_a_cache(model: TorchModel, cuts: list[int]) -> None:
    model.rewind(0)
    ids = some_ids(model, sum(cuts))
    wanted = rows_of(model, ids)
    noise = NOISE if model.reach is None else 10 * NOISE  # a state adds up what is rounded
    for width in cuts:
        start = model.length
        rows = model.forward(ids[start : start + width], width)
        np.testing.assert_allclose(rows, wanted[start : start + width], rtol=0, atol=noise)


@pytest.mark.parametrize("name", ["llama-captured", "gemma3-captured"])
def test_captured_passes_see_all_that_is_held_and_nothing_else(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Around the widest pass and where room grows, over what was held before and taken back."""
    model = MODELS[name](tmp_path_factory.mktemp(name))
    assert model.captured
    ids = some_ids(model, model.n_ctx)
    wanted = rows_of(model, ids)
    junk = some_ids(model, model.n_ctx, seed=1)
    for start in range(0, model.n_ctx, model.n_batch):
        model.forward(junk[start : start + model.n_batch], 0)
    model.rewind(0)
    for end in (WIDEST + 1, LEAST_ROOM, LEAST_ROOM + 1, 2 * LEAST_ROOM, 2 * LEAST_ROOM + 1, model.n_ctx):
        for width in (1, 2, WIDEST, WIDEST + 1):
            model.rewind(min(model.length, end - width))
            while model.length < end - width:
                held = model.length
                model.forward(ids[held : min(end - width, held + model.n_batch)], 0)
            rows = model.forward(ids[end - width : end], width)
            np.testing.assert_allclose(rows, wanted[end - width : end], rtol=0, atol=NOISE)
    model.close()


@pytest.mark.parametrize(
    "write",
    [
        tiny_gguf.write_llama,
        lambda path: tiny_gguf.write_llama(path, tiny_gguf.Tiny(padding=13)),
        tiny_gguf.write_mamba,
        tiny_gguf.write_qwen35,
    ],
)
def test_a_file_says_the_same_on_both_engines(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    """As far as a cache in 16 bits lets it."""
    path = write(tmp_path / "model.gguf")
    here = TorchModel(TorchOptions(path=path, n_ctx=256, threads=1, weights="fp32", gpu=False))
    there = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))
    ids = some_ids(here, 60)
    np.testing.assert_allclose(here.forward(ids, 60), there.forward(ids, 60), rtol=0, atol=0.08)
    for model in (here, there):
        model.close()
