"""torch and transformers, imported offline and quiet; whoever needs transformers takes it from here.

The one invariant: nothing here reaches the network.  transformers fetches kernels and files from its hub where it
finds that useful, so it is told that there is no network before it is imported.
"""

import logging
import os
import struct
from typing import TypeAlias

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "USE_HUB_KERNELS": "0",
    "TOKENIZERS_PARALLELISM": "false",
}

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from transformers import cache_utils
from transformers.utils import logging as _logging

from engine.errors import LoadFailed

_logging.disable_progress_bar()
_logging.set_verbosity_error()
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # int8 speaks at each pass

__all__ = [
    "FAULTS",
    "Device",
    "Module",
    "Tensor",
    "cache_utils",
    "out_of_memory",
    "pick_device",
    "reason",
    "torch",
    "transformers",
]

Device: TypeAlias = torch.device
Tensor: TypeAlias = torch.Tensor
Module: TypeAlias = torch.nn.Module
FAULTS = (
    *(OSError, ValueError, RuntimeError, ImportError, LookupError, AttributeError, TypeError, ArithmeticError),
    *(AssertionError, struct.error, SafetensorError, StrictDataclassError),
)
"""What the libraries raise where they can make nothing of a model's files; their errors have no base in common."""


def pick_device(gpu: bool) -> tuple[Device, str]:
    """The device to run on and its name: the first GPU where one is wanted and there, else the CPU."""
    if gpu and torch.cuda.is_available():
        return Device("cuda", 0), torch.cuda.get_device_name(0)
    if gpu and torch.backends.mps.is_available():
        return Device("mps"), "Apple GPU"
    return Device("cpu"), "cpu"


def reason(error: BaseException) -> str:
    """The first line of what a library said."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def out_of_memory(name: str, error: BaseException) -> LoadFailed:
    """What to say when a model does not fit."""
    return LoadFailed(
        f"there is not enough memory for {name}: {reason(error)}; take --weights nf4, a smaller --ctx or another model"
    )
