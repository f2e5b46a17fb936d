"""Tiny models as files, and what opens them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from tests.tiny_gguf import GEMMA, Tiny, write_gemma, write_llama, write_mamba, write_qwen35

Open = Callable[..., LlamaCppModel]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_llama(folder / "llama.gguf")
    write_llama(folder / "other.gguf", Tiny(seed=1))
    write_gemma(folder / "gemma.gguf")
    write_mamba(folder / "mamba.gguf")
    write_qwen35(folder / "qwen35.gguf")
    write_llama(folder / "flat.gguf", Tiny(layers=1))
    write_llama(folder / "yarn.gguf", Tiny(layers=1, yarn=True))
    write_llama(folder / "factor.gguf", Tiny(layers=1, key_factor=1.2))
    write_llama(folder / "unturned.gguf", Tiny(layers=4, family="smollm3"))
    write_gemma(folder / "windows.gguf", Tiny(layers=5, template=GEMMA))
    return folder


@pytest.fixture
def load(files: Path) -> Iterator[Open]:
    """Opens a model of `files` by name, and closes it at the end."""
    opened: list[LlamaCppModel] = []

    def open_model(name: str = "llama", **options: object) -> LlamaCppModel:
        path = files / f"{name}.gguf"
        opened.append(LlamaCppModel(LlamaCppOptions(**{"path": path, "n_ctx": 512, "threads": 1, **options})))
        opened[-1].try_shift()
        return opened[-1]

    yield open_model
    for model in opened:
        model.close()
