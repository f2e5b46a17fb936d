"""Loading for the llama.cpp backend: the options, the file, and the question whether to stop a pass."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from engine.backends.llamacpp_library import encode_path, errors_of_call, lib, reason
from engine.config import CacheType, FlashAttention, Frozen
from engine.errors import LoadFailed

Progress = Callable[[float], None]
"""Told the share of the file that is loaded, 0 to 1; what it raises stops the load."""
ROOM = 2 * 2**30
"""Bytes that must be free before a second context is opened, for a measurement alone."""


class LlamaCppOptions(Frozen, frozen=True):
    """What to load and how."""

    path: Path
    n_ctx: int | None = None
    """Tokens of context; None takes 8,192, or less where the model was trained for less."""
    n_ctx_most: int | None = None
    """Take no more tokens than this where `n_ctx` is None."""
    threads: int | None = None
    """None takes the physical cores that this process may use."""
    gpu_layers: int = -1
    """Layers on the GPU; -1 takes all where there is one."""
    kv: CacheType = "f16"
    """Type of keys and values in the cache."""
    flash_attention: FlashAttention = "auto"
    """auto: on with a quantized cache or a GPU, else off."""
    n_batch: int = 512
    """Most tokens in one pass."""
    swa_full: bool = True
    """Whether sliding-window layers keep the whole context, so that any rewind is possible."""
    snapshots: int = 4
    """States kept by a recurrent memory: so many tokens of a pass can be taken back.  Each costs one state."""


def resolve_flash_attention(options: LlamaCppOptions, gpu: bool) -> Literal["on", "off"]:
    """What "auto" means: on the CPU flash attention makes wide passes over a long context slower."""
    if options.flash_attention == "auto":
        return "on" if gpu or options.kv != "f16" else "off"
    return options.flash_attention


def load_model(options: LlamaCppOptions, progress: Progress | None, vocab_only: bool = False) -> int:
    """The native model, or no more of it than its vocabulary.

    LoadFailed with llama.cpp's reason, or whatever `progress` raised.
    """
    raised: list[BaseException] = []

    def on_progress(share: float, _data: object) -> bool:
        try:
            if progress:
                progress(share)
        except BaseException as error:
            raised.append(error)
            return False
        return True

    params = lib.llama_model_default_params()
    params.n_gpu_layers = options.gpu_layers
    params.vocab_only = vocab_only
    params.progress_callback = lib.llama_progress_callback(on_progress)
    with errors_of_call() as lines:
        model = lib.llama_model_load_from_file(encode_path(options.path), params)
    if raised:
        if model:
            lib.llama_model_free(model)
        raise raised[0]
    if not model:
        raise LoadFailed(_unreadable(options.path.name, reason(lines)))
    return int(model)


def _unreadable(name: str, why: str) -> str:
    if "alloc" in why or "memory" in why:
        return f"there is not enough memory to load {name}: {why}; close other programs, or take a smaller model"
    known = "unknown" not in why and "only supports" not in why
    advice = "fetch it again" if known else "take another model, or a newer release of this program"
    return f"{name} is not a model file that llama.cpp can read: {why}; {advice}"


def abort_callback(flag: "ctypes.Array[ctypes.c_char]") -> object:
    """The C function that llama.cpp asks hundreds of times a pass whether to stop.

    It is `strlen` on the flag's two bytes (0 or 1), so that the question never waits for the interpreter's lock.
    """
    c_library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    try:
        return lib.ggml_abort_callback(ctypes.cast(c_library.strlen, ctypes.c_void_p).value)
    except (AttributeError, OSError):
        return lib.ggml_abort_callback(lambda _data: flag[0] != b"\0")


def refuse_without_room(device: str) -> None:
    """LoadFailed where a second context may be one too many."""
    import psutil  # type: ignore[import-untyped]

    if device == "cpu" and psutil.virtual_memory().available < ROOM:
        raise LoadFailed("there is too little free memory for a second context: close other programs")
