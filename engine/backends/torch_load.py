"""Loading for the torch backend: what a folder or file may hold, which numbers it is kept in, and where.

The one invariant: no code of a repository runs, nothing is unpickled, and no weight is made up; a checkpoint is its
safetensors, a configuration and a tokenizer, or a GGUF file.  What cannot be is said before gigabytes are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from engine.backends.torch_facts import configuration, read_config, trained_context
from engine.backends.torch_library import (
    FAULTS,
    Device,
    Module,
    out_of_memory,
    pick_device,
    reason,
    torch,
    transformers,
)
from engine.backends.torch_progress import Progress, told
from engine.backends.torch_weights import DTYPES, Kept, choose_weights, compute_type, is_quantized
from engine.config import FlashAttention, Frozen, Weights
from engine.errors import LoadFailed

_UNPACKED = 0.7
"""Share of the loading of a GGUF file that is unpacking."""


class TorchOptions(Frozen, frozen=True):
    """What to load and how."""

    path: Path
    """A folder with config.json, safetensors and tokenizer.json, or a GGUF file."""
    n_ctx: int | None = None
    """Tokens of context; None takes 8,192, or less where the model was trained for less."""
    n_ctx_most: int | None = None
    """Take no more tokens than this where `n_ctx` is None."""
    threads: int | None = None
    """None takes the physical cores that this process may use."""
    weights: Weights = "auto"
    """auto: 16 bits on a GPU that has the room, else nf4; on a CPU bf16 where it computes in it, else fp32."""
    gpu: bool = True
    """Whether to run on the GPU where there is one."""
    flash_attention: FlashAttention = "auto"
    """on: torch's fused attention; off: one operation after another; auto: as transformers would."""
    n_batch: int = 512
    """Most tokens in one pass."""
    captured: bool | None = None
    """Whether passes of fixed shapes are used for narrow widths; None: where that is measured to be faster."""


def check_files(path: Path) -> None:
    """LoadFailed, with what to do, unless the path holds what this backend reads."""
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise LoadFailed(f"{path.name} is no GGUF file: name one, or a folder with config.json and safetensors")
        return
    if not path.is_dir():
        raise LoadFailed(f"there is no model {path}: check the path")
    config = read_config(path)
    if "auto_map" in config and config.get("model_type") not in transformers.CONFIG_MAPPING:
        raise LoadFailed(f"{path.name} needs code of its own, which is never run here: take another model")
    if not any(path.glob("*.safetensors")):
        held = "pickled weights, which are never opened here" if any(path.glob("*.bin")) else "no weights"
        raise LoadFailed(f"{path.name} holds {held}: take the model's safetensors files, or a GGUF file of it")
    if not (path / "tokenizer.json").is_file():
        raise LoadFailed(f"{path.name} has no tokenizer.json: take another form of this model, or a GGUF file of it")
    if (path / "adapter_config.json").is_file():
        raise LoadFailed(f"{path.name} holds an adapter, which is not applied here: merge it into the model first")


class Loaded(NamedTuple):
    """A network where it runs."""

    module: Module
    device: Device
    name: str
    """Of the device."""
    weights: Kept


def load_network(options: TorchOptions, progress: Progress) -> Loaded:
    """The network that the options name.  LoadFailed, or what `progress` raised."""
    check_files(options.path)
    device, name = pick_device(options.gpu)
    with _named(options.path.name):
        kept = choose_weights(options.path, options.weights, device)
        _check_context(options)
    progress(0.0)
    ends = (_UNPACKED, 1.0) if options.path.is_file() else (1.0,)
    with _named(options.path.name), told(progress, *ends), _no_pickles(options.path.name):
        load = _from_file if options.path.is_file() else _from_folder
        network = load(options, kept, device)
    progress(1.0)
    return Loaded(network.eval().requires_grad_(False), device, name, kept)


def _check_context(options: TorchOptions) -> None:
    most = trained_context(options.path)
    if options.n_ctx and most and options.n_ctx > most:
        raise beyond(options.path.name, most, options.n_ctx)


def beyond(name: str, most: int, wanted: int) -> LoadFailed:
    """What to say of a context that is too long."""
    return LoadFailed(f"{name} was trained for {most:,} tokens of context, not {wanted:,}: take a smaller --ctx")


@contextmanager
def _named(name: str) -> Iterator[None]:
    """While the context is open, what the libraries raise over the model `name` is told as LoadFailed."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise out_of_memory(name, error) from error
    except FAULTS as error:
        raise LoadFailed(
            f"{name} cannot be loaded by transformers: {reason(error)}; fetch it again, or take another"
        ) from error


@contextmanager
def _no_pickles(name: str) -> Iterator[None]:
    """While the context is open torch unpickles nothing, whatever file of the checkpoint `name` points to it."""

    def refuse(*_: object, **__: object) -> None:
        raise LoadFailed(f"{name} points to pickled weights, which are never opened here: take its safetensors files")

    opens, torch.load = torch.load, refuse
    try:
        yield
    finally:
        torch.load = opens


def _read(options: TorchOptions, path: Path, kept: Kept, device: Device, **more: object) -> Module:
    """A network all of whose weights were there: those that are not would be random."""
    network, read = transformers.AutoModelForCausalLM.from_pretrained(
        path, output_loading_info=True, **_common(options, kept, device), **more
    )
    if missing := sorted(read["missing_keys"]):
        raise LoadFailed(
            f"{options.path.name} lacks {len(missing)} of its weights, such as {missing[0]}: fetch all its files again"
        )
    return network


def _common(options: TorchOptions, kept: Kept, device: Device) -> dict[str, object]:
    attention = {"auto": None, "on": "sdpa", "off": "eager"}[options.flash_attention]
    return {
        "dtype": DTYPES[compute_type(kept, device)],
        "trust_remote_code": False,
        "local_files_only": True,
    } | ({"attn_implementation": attention} if attention else {})


def _from_file(options: TorchOptions, kept: Kept, device: Device) -> Module:
    """A GGUF file, unpacked: its weights are those of the file, in numbers that torch computes with."""
    dequantize = transformers.GgufConfig(dequantize=True)  # else it looks for kernels on the hub
    more = {"gguf_file": options.path.name, "quantization_config": dequantize}
    network = _read(options, options.path.parent, kept, device, **more)
    if is_quantized(kept):
        from engine.backends.torch_quantize import quantize

        quantize(network, kept, device)
    return network.to(device)


def _from_folder(options: TorchOptions, kept: Kept, device: Device) -> Module:
    more: dict[str, object] = {
        "config": configuration(options.path),
        "use_safetensors": True,
        "device_map": {"": device},
    }
    if is_quantized(kept) and "quantization_config" not in read_config(options.path):
        from engine.backends.torch_quantize import config_of

        more["quantization_config"] = config_of(kept, DTYPES[compute_type(kept, device)])
    return _read(options, options.path, kept, device, **more)
