"""Other forms of a file: smaller, with fewer layers, or none at all where that fails or is stopped."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine.backends import llamacpp_quantize
from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.llamacpp_quantize import Form, quantize
from engine.errors import ModelError
from models.facts import facts
from models.gguf import check
from tests.tiny_gguf import Tiny, write_llama

IDS = [1, 2, 3, 4, 5]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return write_llama(tmp_path / "here" / "llama.gguf", Tiny(layers=4))


def rows(path: Path) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    model = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=64, threads=1))
    try:
        return model.forward(IDS, len(IDS)).copy()
    finally:
        model.close()


def test_fewer_bits_make_a_smaller_file_that_says_nearly_the_same(source: Path) -> None:
    small, finer = source.with_name("small.gguf"), source.with_name("finer.gguf")
    quantize(source, small, Form(weights="q4_0"))
    quantize(source, finer, Form(weights="q4_0", ends=False))
    assert small.stat().st_size < finer.stat().st_size < 0.6 * source.stat().st_size
    before, after = rows(source), rows(small)
    assert 0.8 < np.corrcoef(before.ravel(), after.ravel())[0, 1] < 1
    assert sorted(path.name for path in source.parent.iterdir()) == ["finer.gguf", "llama.gguf", "small.gguf"]


def test_layers_are_left_out_and_the_rest_move_up(source: Path) -> None:
    target = source.with_name("short.gguf")
    quantize(source, target, Form(without=(1, 2)))
    assert facts(check(target)).n_layer == 2
    assert check(target).weights < check(source).weights
    assert not np.allclose(rows(target), rows(source))
    quantize(source, target, Form())
    assert np.array_equal(rows(target), rows(source))


def test_what_cannot_be_made_is_one_line_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("nothing")
    for source in (tmp_path / "none.gguf", tmp_path / "text.gguf", tmp_path):
        with pytest.raises(ModelError, match=r"cannot be made into q4_0: .*; leave it as it is") as caught:
            quantize(source, tmp_path / "out.gguf", Form(weights="q4_0"))
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="cannot be written"):
        quantize(tmp_path / "none.gguf", tmp_path / "nowhere" / "out.gguf", Form(weights="q4_0"))
    assert [path.name for path in tmp_path.iterdir()] == ["text.gguf"]


def test_an_interrupt_ends_the_process_and_leaves_nothing(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def communicate(self, *arguments: object, **options: object) -> tuple[bytes, bytes]:
            begun.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(llamacpp_quantize.subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        quantize(source, source.with_name("out.gguf"), Form(weights="q4_0"))
    assert begun[0].returncode, "it did not go on to its end"
    assert [path.name for path in source.parent.iterdir()] == ["llama.gguf"]
