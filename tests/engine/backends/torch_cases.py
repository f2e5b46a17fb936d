"""The torch backend's part in the contract suites: tiny checkpoints in each form that it treats in its own way."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from engine.backends.transformers import TorchModel, TorchOptions
from engine.model import Model
from tests.engine.backends.contract import Case, Kind
from tests.engine.backends.early_contract import EarlyCase
from tests.tiny_torch import Tiny, write_gemma3, write_hybrid, write_llama, write_mamba, write_qwen2

CONTEXT = 640
NOISE = 1e-4
"""Logits of the tiny models have a standard deviation of 3; all is computed in 32 bits."""


def _case(
    name: str,
    write: Callable[[Path], Path] = write_llama,
    kind: Kind = "dense",
    tolerance: float = NOISE,
    **options: object,
) -> Case:
    reach = 0 if kind == "recurrent" else None
    return Case(f"torch-{name}", making(write, **options), waits, kind, reach, tolerance=tolerance)


def making(write: Callable[[Path], Path], **options: object) -> Callable[[Path], TorchModel]:
    """What opens one tiny checkpoint, which is written when it is first needed."""

    def make(folder: Path) -> TorchModel:
        path = folder / "model"
        if not path.exists():
            write(path)
        chosen = {"n_ctx": CONTEXT, "n_batch": 128, "threads": 1, "weights": "fp32", "gpu": False, **options}
        return TorchModel(TorchOptions(path=path, **chosen))  # type: ignore[arg-type]

    return make


@contextmanager
def waits(model: Model) -> Iterator[None]:
    """A pass stays in front of its first layer until it is interrupted."""
    assert isinstance(model, TorchModel)
    network = model._alive()
    deadline = time.monotonic() + 60

    def wait(*_: object) -> None:
        while not network.stop and time.monotonic() < deadline:
            pass

    hook = network.layers[0].register_forward_pre_hook(wait)
    yield
    hook.remove()


@contextmanager
def stops(model: Model) -> Iterator[None]:
    """A pass is told to stop in front of its first layer."""
    assert isinstance(model, TorchModel)
    hook = model._alive().layers[0].register_forward_pre_hook(lambda *_: model.interrupt())
    yield
    hook.remove()


def _early(name: str, write: Callable[[Path], Path], **options: object) -> EarlyCase:
    return EarlyCase(f"torch-{name}", making(write, n_ctx=200, n_batch=64, **options), stops, NOISE)


CASES = [
    _case("llama"),
    _case("llama-padded", lambda path: write_llama(path, Tiny(padding=13))),
    _case("llama-captured", captured=True),
    _case("llama-bf16", tolerance=0.2, weights="bf16"),
    _case("qwen2", write_qwen2),
    _case("gemma3", write_gemma3),
    _case("gemma3-captured", write_gemma3, captured=True),
    _case("mamba", write_mamba, "recurrent"),
    _case("hybrid", write_hybrid, "recurrent"),
    *([_case("llama-nf4", tolerance=0.2, weights="nf4")] if find_spec("bitsandbytes") else []),
]
EARLY_CASES = [
    _early("llama", lambda path: write_llama(path, Tiny(layers=4, padding=5))),
    _early("llama-captured", lambda path: write_llama(path, Tiny(layers=3)), captured=True),
    _early("qwen2", lambda path: write_qwen2(path, Tiny(layers=3))),
    _early("gemma3", write_gemma3),
    _early("gemma3-captured", write_gemma3, captured=True),
]
