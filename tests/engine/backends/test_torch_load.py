"""What the torch backend opens and refuses: nothing is unpickled, no code of a repository runs, no network is used."""

import gc
import json
import pickle
import shutil
import socket
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

from safetensors.numpy import load_file, save_file

from engine.backends.transformers import TorchModel, TorchOptions
from engine.errors import LoadFailed, ModelError
from tests import tiny_gguf
from tests.tiny_torch import write_gemma3, write_hybrid, write_llama

Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("written") / "model")


@pytest.fixture
def checkpoint(written: Path, tmp_path: Path) -> Path:
    """A checkpoint of the test's own."""
    return shutil.copytree(written, tmp_path / "model")


def opened(path: Path, **options: object) -> TorchModel:
    chosen = {"n_ctx": 64, "threads": 1, "weights": "fp32", "gpu": False, **options}
    return TorchModel(TorchOptions(path=path, **chosen))  # type: ignore[arg-type]


def refusal(path: Path, **options: object) -> str:
    """Why a path is not opened, in one line that says what to do."""
    with pytest.raises(LoadFailed) as caught:
        opened(path, **options).close()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 600
    assert any(word in text for word in ("take ", "fetch ", "check ", "name ", "merge "))
    return text


def settings(folder: Path, **changes: object) -> None:
    """Change config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def weights(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change the weights."""
    path = folder / "model.safetensors"
    held = load_file(path)
    change(held)
    save_file(held, path, {"format": "pt"})


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> object:
        return Path.touch, (self.marker,)


def trap(folder: Path, name: str = "pytorch_model.bin") -> None:
    (folder / name).write_bytes(pickle.dumps(Trap(folder.parent / "sprung")))


def only_pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    trap(folder)


def pickled_by_name(folder: Path) -> None:
    """The index of the weights names a pickled file."""
    names = list(load_file(folder / "model.safetensors"))
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "weights.bin")}
    (folder / "model.safetensors").rename(folder / "model-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    trap(folder, "weights.bin")


def code(folder: Path) -> None:
    """Code that creates a file when it is imported."""
    (folder / "own.py").write_text(f"open({str(folder.parent / 'sprung')!r}, 'w')\nOwn = None\n")
    names = {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own", "AutoTokenizer": "own.Own"}
    settings(folder, auto_map=names)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": names}))


def unknown_code(folder: Path) -> None:
    code(folder)
    settings(folder, model_type="own")


REFUSED: dict[str, tuple[Change, str]] = {
    "pickled": (only_pickled, "pickled weights, which are never opened"),
    "pickled by name": (pickled_by_name, "pickled|safetensors"),
    "code": (unknown_code, "code of its own, which is never run"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "no weights"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), r"no tokenizer\.json"),
    "no config": (lambda folder: (folder / "config.json").unlink(), r"config\.json cannot be read"),
    "config of nothing": (lambda folder: (folder / "config.json").write_text(""), r"config\.json cannot be read"),
    "config of a list": (lambda folder: (folder / "config.json").write_text("[]"), "no list of settings"),
    "unknown type": (lambda folder: settings(folder, model_type="nothing-like-it"), "cannot be loaded"),
    "no type": (lambda folder: settings(folder, model_type=None), "cannot be loaded"),
    "cut short": (lambda folder: _cut(folder / "model.safetensors", 1000), "cannot be loaded"),
    "cut in its header": (lambda folder: _cut(folder / "model.safetensors", 20), "cannot be loaded"),
    "no safetensors": (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 999), "cannot be loaded"),
    "a weight is missing": (lambda folder: weights(folder, lambda held: held.pop("lm_head.weight")), "lacks"),
    "a weight of another shape": (
        lambda folder: weights(folder, lambda held: held.update({"model.norm.weight": held["model.norm.weight"][:9]})),
        "cannot be loaded",
    ),
    "a damaged weight": (
        lambda folder: weights(folder, lambda held: held["model.norm.weight"].fill(float("nan"))),
        "damaged weights",
    ),
    "a damaged tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer\.json is damaged"),
}
EARLY = ["pickled", "code", "no weights", "no tokenizer", "no config", "config of nothing", "config of a list"]
"""What is refused before anything is read of the weights."""


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test here fails where a socket is connected, even if that is caught."""
    tried: list[object] = []

    def connect(_self: object, address: object) -> None:
        tried.append(address)
        raise OSError("there is no network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, connect)
    yield
    assert tried == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_checkpoint_that_cannot_be_opened_is_refused_in_a_line(checkpoint: Path, name: str) -> None:
    change, reason = REFUSED[name]
    change(checkpoint)
    told: list[float] = []
    with pytest.raises(LoadFailed, match=reason):
        TorchModel(TorchOptions(path=checkpoint, weights="fp32", gpu=False), told.append)
    assert told == [] or name not in EARLY
    refusal(checkpoint)
    assert not (checkpoint.parent / "sprung").exists()


def test_the_trap_works(tmp_path: Path) -> None:
    trap(tmp_path, "trap.bin")
    pickle.loads((tmp_path / "trap.bin").read_bytes())
    assert (tmp_path.parent / "sprung").exists()
    (tmp_path.parent / "sprung").unlink()


def test_what_is_pickled_or_code_stays_closed_beside_safetensors(checkpoint: Path) -> None:
    """The type of this model is known, so its code is not needed."""
    trap(checkpoint)
    trap(checkpoint, "training_args.bin")
    code(checkpoint)
    model = opened(checkpoint)
    assert model.forward([1, 2], 1).shape[0] == 1
    model.close()
    assert not (checkpoint.parent / "sprung").exists()


@pytest.mark.parametrize("name", ["_attn_implementation", "attn_implementation", "experts_implementation"])
@pytest.mark.parametrize("kernel", ["nobody/some-kernel", "flex_attention"])
def test_kernels_that_a_configuration_names_are_left_out(checkpoint: Path, name: str, kernel: str) -> None:
    settings(checkpoint, **{name: kernel})
    model = opened(checkpoint)
    assert model._alive().module.config._attn_implementation == "sdpa"
    model.close()


@pytest.mark.parametrize("content", [b"", b"GG", b"GGUF", b"GGUF" + b"\0" * 200, b"not a model at all"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    assert "model.gguf" in refusal(path)


def test_a_file_of_a_family_that_transformers_does_not_read_is_refused(tmp_path: Path) -> None:
    file = tiny_gguf.write_llama(tmp_path / "model.gguf", tiny_gguf.Tiny(layers=4, family="smollm3"))
    assert "smollm3 is not supported" in refusal(file)


@pytest.mark.parametrize("tiny", [tiny_gguf.Tiny(yarn=True), tiny_gguf.Tiny(key_factor=1.2)])
def test_a_file_whose_rotations_would_be_lost_is_refused(tmp_path: Path, tiny: tiny_gguf.Tiny) -> None:
    assert "take --engine llamacpp" in refusal(tiny_gguf.write_llama(tmp_path / "model.gguf", tiny))


def test_a_path_of_nothing_is_refused(tmp_path: Path) -> None:
    assert "check the path" in refusal(tmp_path / "nothing")


def test_a_context_beyond_the_trained_one_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    file = tiny_gguf.write_llama(tmp_path / "model.gguf")
    for path in (checkpoint, file):
        told: list[float] = []
        with pytest.raises(LoadFailed):
            TorchModel(TorchOptions(path=path, n_ctx=4097, gpu=False), told.append)
        assert told == []
        assert "trained for 4,096 tokens of context, not 4,097: take a smaller --ctx" in refusal(path, n_ctx=4097)
        model = opened(path, n_ctx=4096)
        assert model.n_ctx == 4096
        model.close()


@pytest.mark.parametrize("where", ["folder", "file"])
def test_loading_and_answering_connect_to_nothing(checkpoint: Path, tmp_path: Path, where: str) -> None:
    path = checkpoint if where == "folder" else tiny_gguf.write_llama(tmp_path / "model.gguf")
    model = opened(path)
    assert model.vocab.tokenize("the")
    model.leave(model.vocab.tokenize("the"), 1, 1)
    model.forward(model.vocab.tokenize("the"), 1)
    model.close()


@pytest.mark.parametrize("write", [write_llama, write_gemma3, write_hybrid])
@pytest.mark.parametrize("captured", [None, True])
def test_closing_frees_the_network(tmp_path: Path, write: Callable[[Path], Path], captured: bool | None) -> None:
    model = opened(write(tmp_path / "model"), captured=captured)
    model.forward([1, 2, 3], 1)
    if model.layers:
        model.leave([1], 1, 1)
    model.save(tmp_path / "cache")
    model.load(tmp_path / "cache")
    module = weakref.ref(model._alive().module)
    layer = weakref.ref(model._alive().cache.layers[-1])
    model.close()
    gc.collect()
    assert module() is None
    assert layer() is None
    with pytest.raises(ModelError, match="closed"):
        model.forward([1], 1)


def test_what_failed_to_load_is_not_held(checkpoint: Path) -> None:
    from engine.backends.torch_library import Module

    def held() -> int:
        gc.collect()
        return sum(issubclass(type(thing), Module) for thing in gc.get_objects())

    before = held()
    (checkpoint / "tokenizer.json").write_text("{}")
    refusal(checkpoint)
    assert held() == before
