"""Other forms of a GGUF file: its weights in fewer bits, layers left out.

llama.cpp does it in one call that cannot be stopped and that ends the process where it finds itself wrong, so it runs
in a process of its own.  The one invariant: the name that was asked for appears only with a whole file behind it.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from engine.client import environment
from engine.config import Frozen
from engine.errors import ModelError

Weights: TypeAlias = Literal["q4_0", "q4_1", "iq4_nl", "q8_0"]
_FTYPES: dict[Weights, int] = {"q4_0": 2, "q4_1": 3, "iq4_nl": 25, "q8_0": 7}
"""llama.cpp's number of a file of that type."""
_FAILED = 3


class Form(Frozen, frozen=True):
    """What to make of a file."""

    weights: Weights | None = None
    """The type of every matrix; None leaves all as they are."""
    ends: bool = True
    """Whether the output layer and the embedding take it, too; else what llama.cpp thinks should stay finer does."""
    without: tuple[int, ...] = ()
    """Layers that are left out; those behind them move up."""


def quantize(source: Path, target: Path, form: Form) -> None:
    """Write `source` in another form to `target`; ModelError leaves no file behind, and so does an interrupt."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-", suffix=".part")
        os.close(handle)
        temporary = Path(name)
        try:
            if why := _apart(source, temporary, form):
                raise ModelError(f"{source.name} cannot be made into {_words(form)}: {why}; leave it as it is")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ModelError(f"{target} cannot be written ({error.strerror}): check the folder and its rights") from error


def _words(form: Form) -> str:
    return form.weights or "a file of fewer layers"


def _apart(source: Path, target: Path, form: Form) -> str:
    """Do it in a process of its own; why it failed, empty where it did not."""
    command = [sys.executable, "-P", "-m", __name__, str(source), str(target), msgspec.json.encode(form).decode()]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, env=environment()) as process:
        try:
            said, _ = process.communicate()
        finally:
            process.kill()
    if process.returncode == 0:
        return ""
    why = said.decode("utf-8", "replace").strip()
    return why if process.returncode == _FAILED and why else "llama.cpp stopped in the middle"


def _here(source: Path, target: Path, form: Form) -> str:
    """Do it in this process; why it failed, empty where it did not."""
    from engine.backends.llamacpp_library import encode_path, errors_of_call, lib, reason

    params = lib.llama_model_quantize_default_params()
    params.allow_requantize = True  # else a file that is quantized already is refused
    if form.weights is None:
        params.only_copy = True
    else:
        params.ftype, params.pure = _FTYPES[form.weights], form.ends
    pruned = (ctypes.c_int32 * (len(form.without) + 1))(*form.without, -1)  # whose end is the -1
    if form.without:
        params.prune_layers = ctypes.cast(pruned, ctypes.POINTER(ctypes.c_int32))
    with errors_of_call() as lines:
        failed = lib.llama_model_quantize(encode_path(source), encode_path(target), ctypes.byref(params))
    return reason(lines) if failed else ""


def main(source: str, target: str, form: str) -> int:
    """The process of its own; the exit code."""
    why = _here(Path(source), Path(target), msgspec.json.decode(form, type=Form))
    print(why)
    return _FAILED if why else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
