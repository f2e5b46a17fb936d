"""In what numbers weights are kept on the device at hand: chosen, tried and weighed before anything large is read.

The one invariant: what is chosen can be computed here, since a few numbers were computed in it.
"""

from pathlib import Path
from typing import Literal, TypeGuard

from engine.backends.llamacpp_vocab import count_numbers
from engine.backends.torch_facts import read_config
from engine.backends.torch_library import Device, reason, torch
from engine.config import Weights
from engine.errors import LoadFailed

Quantized = Literal["nf4", "int8"]
Float = Literal["bf16", "fp16", "fp32"]
Kept = Quantized | Float
"""What "auto" becomes."""
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_FLOATS: dict[str, Float] = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32"}
_SPARE = 1.2
"""Memory that a model takes beside its weights, as a factor."""


def choose_weights(path: Path, wanted: Weights, device: Device) -> Kept:
    """What the weights are kept in; LoadFailed where that cannot be on this device, or does not fit."""
    written = _written(path, wanted)
    kept = written or (_auto(path, device) if wanted == "auto" else wanted)
    if is_quantized(kept):
        _try_quantized(kept, device)
    elif kept == "bf16" and not _computes_bf16(device):
        raise LoadFailed("this device does not compute in bf16: take --weights fp16 or fp32")
    _check_room(path, kept, device)
    return kept


def _written(path: Path, wanted: Weights) -> Quantized | None:
    """What bitsandbytes made of a checkpoint when it was written; LoadFailed where something else is wanted."""
    said = read_config(path).get("quantization_config") if path.is_dir() else None
    if not isinstance(said, dict):
        return None
    written: Quantized | None = "int8" if said.get("load_in_8bit") else "nf4" if said.get("load_in_4bit") else None
    if wanted not in ("auto", written):
        raise LoadFailed(f"the weights of {path.name} are quantized already: leave --weights out")
    return written


def _check_room(path: Path, kept: Kept, device: Device) -> None:
    """LoadFailed where the machine has too little memory; a GPU says itself what it has no room for."""
    import psutil  # type: ignore[import-untyped]

    unpacked = path.is_file() or not is_quantized(kept)  # a checkpoint is quantized while it is read
    needed = _bytes_in_half(path) * (2 if compute_type(kept, device) == "fp32" else 1) if unpacked else 0
    free = psutil.virtual_memory().available
    if (device.type != "cuda" or path.is_file()) and needed > free:
        raise LoadFailed(
            f"{path.name} takes about {needed / 1e9:.1f} GB in {kept}, and {free / 1e9:.1f} GB are free: "
            f"take {'--engine llamacpp' if path.is_file() else '--weights nf4'}, or close other programs"
        )


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
    """About what the weights take in 16 bits; LoadFailed for a file that llama.cpp cannot read."""
    if path.is_file():
        return 2 * count_numbers(path)  # transformers' own reader does not know all types that it unpacks
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
