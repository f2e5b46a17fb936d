"""Loading for the torch backend: what a folder or file may hold, which numbers it is kept in, and where.

The one invariant: no code of a repository runs and nothing is unpickled; a checkpoint is its safetensors, a
configuration and a tokenizer, or a GGUF file.  What cannot be is said before gigabytes are read.
"""

import json
from pathlib import Path
from typing import Literal, TypeGuard

from engine.backends.torch_library import Device, Module, out_of_memory, pick_device, reason, torch, transformers
from engine.backends.torch_progress import Progress, told
from engine.config import FlashAttention, Frozen, Weights
from engine.errors import LoadFailed

Quantized = Literal["nf4", "int8"]
Float = Literal["bf16", "fp16", "fp32"]
Kept = Quantized | Float
"""What "auto" becomes."""
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_FLOATS: dict[str, Float] = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}
_UNPACKED = 0.7
"""Share of the loading of a GGUF file that is unpacking."""
_SPARE = 1.2
"""Memory that a model takes beside its weights, as a factor."""


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


def read_config(folder: Path) -> dict[str, object]:
    """config.json of a checkpoint; LoadFailed where there is none that can be read."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise LoadFailed(f"{folder.name} is no checkpoint, its config.json cannot be read: {reason(error)}") from error
    if not isinstance(config, dict):
        raise LoadFailed(f"{folder.name} is no checkpoint: its config.json is no list of settings")
    return config


def choose_weights(options: TorchOptions, device: Device) -> Kept:
    """What the weights are kept in; LoadFailed where that cannot be on this device."""
    kept = _auto(options.path, device) if options.weights == "auto" else options.weights
    if is_quantized(kept):
        _try_quantized(kept, device)
    elif kept == "bf16" and not _computes_bf16(device):
        raise LoadFailed("this device does not compute in bf16: take --weights fp16 or fp32")
    return kept


def _auto(path: Path, device: Device) -> Kept:
    half: Kept = "bf16" if _computes_bf16(device) else "fp16"
    if device.type == "cpu":
        return "bf16" if _fast_bf16() else "fp32"
    if device.type == "cuda" and _bytes_in_half(path) * _SPARE > torch.cuda.mem_get_info(device)[0]:
        return "nf4"
    return half


def _computes_bf16(device: Device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        torch.ones(2, 2, dtype=torch.bfloat16, device=device) @ torch.ones(2, 2, dtype=torch.bfloat16, device=device)
    except (RuntimeError, TypeError):
        return False
    return True


def _fast_bf16() -> bool:
    """Whether the processor has instructions for it: without them it is slower than fp32."""
    return any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))


def _bytes_in_half(path: Path) -> int:
    """About what the weights take in 16 bits."""
    if path.is_file():
        return 4 * path.stat().st_size  # files of about 4 bits a weight
    return sum(file.stat().st_size for file in path.glob("*.safetensors"))


def _try_quantized(kept: Quantized, device: Device) -> None:
    """Run a layer of a few numbers as bitsandbytes would, so that what it cannot do is known before loading."""
    from engine.backends.torch_quantize import quantized

    try:
        layer = quantized(torch.nn.Linear(64, 64, bias=False, dtype=DTYPES[compute_type(kept, device)]), kept, device)
        with torch.inference_mode():
            layer(torch.ones(1, 64, dtype=DTYPES[compute_type(kept, device)], device=device))
    except ImportError as error:
        raise LoadFailed(
            f"--weights {kept} needs bitsandbytes ({reason(error)}): run `pip install bitsandbytes`, or take bf16"
        ) from error
    except Exception as error:
        raise LoadFailed(
            f"bitsandbytes cannot do {kept} on this device ({device.type}: {reason(error)}): take bf16 or fp32"
        ) from error


def is_quantized(kept: Kept) -> TypeGuard[Quantized]:
    """Whether bitsandbytes keeps them."""
    return kept in ("nf4", "int8")


def compute_type(kept: Kept, device: Device) -> Float:
    """In what a model of such weights computes: 16 bits where that is fast."""
    if not is_quantized(kept):
        return _FLOATS[kept]
    if device.type == "cpu":
        return "bf16" if _fast_bf16() else "fp32"
    return "bf16" if _computes_bf16(device) else "fp16"


def load_network(options: TorchOptions, progress: Progress) -> tuple[Module, Device, str, Kept]:
    """The network, its device with name, and what its weights are kept in.  LoadFailed, or what `progress` raised."""
    check_files(options.path)
    device, name = pick_device(options.gpu)
    kept = choose_weights(options, device)
    progress(0.0)
    try:
        with told(progress, *((_UNPACKED, 1.0) if options.path.is_file() else (1.0,))):
            load = _from_file if options.path.is_file() else _from_folder
            network = load(options, kept, device)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise out_of_memory(options.path.name, error) from error
    except (OSError, ValueError, RuntimeError, ImportError, KeyError, AttributeError, TypeError) as error:
        raise LoadFailed(
            f"{options.path.name} cannot be loaded by transformers: {reason(error)}; take another model"
        ) from error
    progress(1.0)
    return network.eval().requires_grad_(False), device, name, kept


def _common(options: TorchOptions, kept: Kept, device: Device) -> dict[str, object]:
    attention = {"auto": None, "on": "sdpa", "off": "eager"}[options.flash_attention]
    return {
        "dtype": DTYPES[compute_type(kept, device)],
        "trust_remote_code": False,
        "local_files_only": True,
    } | ({"attn_implementation": attention} if attention else {})


def _from_file(options: TorchOptions, kept: Kept, device: Device) -> Module:
    """A GGUF file, unpacked: its weights are those of the file, in numbers that torch computes with."""
    network = transformers.AutoModelForCausalLM.from_pretrained(
        options.path.parent,
        gguf_file=options.path.name,
        quantization_config=transformers.GgufConfig(dequantize=True),  # else it looks for kernels on the hub
        **_common(options, kept, device),
    )
    if is_quantized(kept):
        from engine.backends.torch_quantize import quantize

        quantize(network, kept, device)
    return network.to(device)


def _from_folder(options: TorchOptions, kept: Kept, device: Device) -> Module:
    more: dict[str, object] = {"use_safetensors": True, "device_map": {"": device}}
    if is_quantized(kept) and "quantization_config" not in read_config(options.path):
        from engine.backends.torch_quantize import config_of

        more["quantization_config"] = config_of(kept, DTYPES[compute_type(kept, device)])
    return transformers.AutoModelForCausalLM.from_pretrained(options.path, **_common(options, kept, device), **more)
