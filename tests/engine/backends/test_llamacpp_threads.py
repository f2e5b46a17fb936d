"""A second context over the same weights, and threads that change between passes."""

from pathlib import Path

import numpy as np
import pytest

from engine.backends import llamacpp_load
from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.errors import LoadFailed
from tests.tiny_gguf import Tiny, write_llama

IDS = list(range(1, 41))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    write_llama(path, Tiny(seed=1))
    return path


def test_a_context_beside_another_shares_its_weights_and_nothing_else(path: Path) -> None:
    model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))
    row = model.forward(IDS, 1).copy()
    other = model.beside("on", 128)
    assert (other.n_ctx, other.flash_attention, other.length) == (128, "on", 0)
    assert np.allclose(other.forward(IDS, 1), row, atol=0.05 * np.ptp(row))
    other.close()
    other.close()
    assert model.length == len(IDS)
    model.rewind(0)
    assert np.array_equal(model.forward(IDS, 1), row)
    model.close()


def test_without_room_there_is_no_second_context(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llamacpp_load, "ROOM", 2**60)
    model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))
    with pytest.raises(LoadFailed, match="free memory"):
        model.beside("on", 128)
    model.close()


def test_without_flash_attention_results_do_not_depend_on_threads(path: Path) -> None:
    model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1, flash_attention="off"))
    assert model.same_on_any_threads
    row = model.forward(IDS, 8).copy()
    model.rewind(0)
    model.use_threads(2)  # for one pass: where cores are busy, two threads spin for seconds
    assert np.array_equal(model.forward(IDS, 8), row)
    model.close()


def test_with_flash_attention_they_may(path: Path) -> None:
    model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1, flash_attention="on"))
    assert not model.same_on_any_threads
    model.close()
