"""Early exit on torch: rows against a network of fewer layers, and stops at each layer of a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.backends.transformers import TorchModel
from engine.early import leaves_early
from engine.errors import Interrupted
from tests.engine.backends.contract import some_ids
from tests.engine.backends.torch_cases import NOISE, making
from tests.tiny_torch import Tiny, write_gemma3, write_hybrid, write_llama, write_mamba, write_qwen2

WRITERS = {
    "llama": lambda path: write_llama(path, Tiny(layers=5)),
    "qwen2": lambda path: write_qwen2(path, Tiny(layers=4)),
    "gemma3": write_gemma3,
}


@pytest.fixture(scope="module", params=WRITERS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchModel]:
    folder = tmp_path_factory.mktemp(request.param)
    model = making(WRITERS[request.param], n_ctx=200, n_batch=64)(folder)
    yield model
    model.close()


def test_rows_are_those_of_a_network_of_so_many_layers(model: TorchModel) -> None:
    """The ids reach beyond the windows; they are read in part, and leave in parts."""
    model.rewind(0)
    ids = some_ids(model, 60)
    model.forward(ids[:40], 0)
    for layers in range(1, model.layers):
        rows = [model.leave(ids[40:41], 1, layers).copy(), model.leave(ids[41:], 19, layers).copy()]
        np.testing.assert_allclose(np.concatenate(rows), _shallow(model.file, ids, layers)[40:], rtol=0, atol=NOISE)
    assert model.length == 40


def _shallow(folder: Path, ids: list[int], layers: int) -> np.ndarray:
    config = AutoConfig.from_pretrained(folder)
    config.num_hidden_layers = layers
    config.layer_types = getattr(config, "layer_types", None) and config.layer_types[:layers]
    network = AutoModelForCausalLM.from_pretrained(folder, config=config).eval()
    with torch.inference_mode():
        rows: np.ndarray = network(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()
    return rows


@contextmanager
def stopped_at(model: TorchModel, place: int) -> Iterator[None]:
    """A pass is told to stop where it comes to that layer."""

    def stop(*_: object) -> None:
        model._alive().stop = True
        model._alive()._pause()

    hook = model._alive().layers[place].register_forward_pre_hook(stop)
    yield
    hook.remove()


def test_a_stop_anywhere_leaves_no_trace(model: TorchModel) -> None:
    """In a run of the first layers, in a second run, and in the pass that takes it up."""
    ids, drafts = some_ids(model, 9), [3, 4, 5]
    model.rewind(0)
    wanted = model.forward([*ids, *drafts, 6], 4).copy()
    for layers in range(1, model.layers):
        for place in range(model.layers):
            for told_at in range(len(drafts) + 1):
                model.rewind(0)
                model.forward(ids, 0)
                stopped = False
                for number, run in enumerate(_runs(model, drafts, layers)):
                    if number != told_at:
                        run()
                        continue
                    with stopped_at(model, place):
                        stopped = _is_stopped(run)
                    break
                assert stopped is (told_at == len(drafts) or place < layers)
                assert model.length == len(ids)
                model.rewind(len(ids))
                np.testing.assert_allclose(model.forward([*drafts, 6], 4), wanted, rtol=0, atol=NOISE)


def _runs(model: TorchModel, drafts: list[int], layers: int) -> Iterator[Callable[[], object]]:
    for draft in drafts:
        yield lambda draft=draft: model.leave([draft], 1, layers)
    yield lambda: model.forward([*drafts, 6], 4)


def _is_stopped(run: Callable[[], object]) -> bool:
    try:
        run()
    except Interrupted:
        return True
    return False


@pytest.mark.parametrize("write", [write_mamba, write_hybrid, lambda path: write_llama(path, Tiny(layers=1))])
def test_a_state_or_a_single_layer_is_not_left_early(write: Callable[[Path], Path], tmp_path: Path) -> None:
    model = making(write)(tmp_path)
    assert not leaves_early(model)
    with pytest.raises(ValueError, match="layers"):
        model.leave([1], 1, 1)
    assert model.length == 0


@pytest.mark.parametrize("layers", [-1, 0, 5, 6])
def test_a_number_of_layers_that_cannot_be_is_refused(tmp_path: Path, layers: int) -> None:
    model = making(WRITERS["llama"])(tmp_path)
    model.forward([1], 0)
    with pytest.raises(ValueError, match="layers"):
        model.leave([2], 1, layers)
    assert model.length == 1
