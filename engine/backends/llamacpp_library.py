"""llama.cpp as a library: import, log, devices.  Nothing it says reaches descriptor 1 or 2.

Its log goes, line by line, to the Python logger "paceline.llama"; error lines are collected as well, so that a
failed call can say llama.cpp's own reason.
"""

import contextlib
import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # read at import; else a failed assertion runs a debugger on fd 1

from llama_cpp import llama_cpp as _lib

lib: Any = _lib
"""The low-level API; untyped, because the package's annotations do not fit what ctypes makes of them."""

logger = logging.getLogger("paceline.llama")
logger.addHandler(logging.NullHandler())

_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}
_CONTINUED = 5
_GPU_KINDS = (1, 2)
"""ggml's device types: a GPU of its own, a GPU that shares the memory."""


class _Log:
    """Joins the pieces of text that llama.cpp hands over into lines."""

    def __init__(self) -> None:
        self._text = ""
        self._level = logging.DEBUG
        self.collectors: list[list[str]] = []

    def feed(self, level: int, text: str) -> None:
        """Take one piece; whole lines go to the logger, errors to the open collectors too."""
        if level != _CONTINUED:
            self._level = _LEVELS.get(level, logging.DEBUG)
        *lines, self._text = (self._text + text).split("\n")
        for line in filter(None, map(str.strip, lines)):
            logger.log(self._level, "%s", line)
            if self._level >= logging.ERROR:
                for collector in self.collectors:
                    collector.append(line)


_log = _Log()


def _on_log(level: int, text: bytes, _data: object) -> None:
    with contextlib.suppress(Exception):  # an exception in a C callback would be printed on fd 2
        _log.feed(level, text.decode("utf-8", "replace"))


_on_log_native = lib.llama_log_callback(_on_log)
lib.llama_log_set(_on_log_native, None)
lib.llama_backend_init()


@contextlib.contextmanager
def errors_of_call() -> Iterator[list[str]]:
    """Collect llama.cpp's error lines while the block runs."""
    lines: list[str] = []
    _log.collectors.append(lines)
    try:
        yield lines
    finally:
        _log.collectors.remove(lines)


def reason(lines: list[str]) -> str:
    """The cause among the error lines of one call: the first, without the name of the C function."""
    if not lines:
        return "llama.cpp gives no reason"
    head, colon, rest = lines[0].partition(": ")
    text = rest if colon and " " not in head else lines[0]
    return text.removeprefix("error loading model: ").rstrip(".")


def encode_path(path: Path) -> bytes:
    """A path as llama.cpp wants it (UTF-8 on Windows, the file system's own bytes elsewhere)."""
    return os.fsencode(path)


def library_version() -> str:
    """Package and library, such as `llama-cpp-python 0.3.36 (llama.cpp 0.5.0-dev)`."""
    import llama_cpp

    return f"llama-cpp-python {llama_cpp.__version__} (llama.cpp {lib.llama_version().decode()})"


def cpu_features() -> str:
    """The instruction sets that the library was built for and found, separated by spaces."""
    features = []
    for fact in lib.llama_print_system_info().decode("utf-8", "replace").replace(":", "|").split("|"):
        name, equals, value = fact.partition("=")
        if equals and value.strip() != "0":
            features.append(name.strip())
    return " ".join(features)


def gpu_offload() -> tuple[bool, str]:
    """Whether layers can run on a GPU, and which one or why not."""
    if not lib.llama_supports_gpu_offload():
        return False, (
            "the installed llama-cpp-python is built for the CPU alone: "
            "install a CUDA, Metal or Vulkan build of it to use a GPU"
        )
    name = gpu_name()
    if name is None:
        return False, "llama.cpp finds no GPU: check the driver, or stay on the CPU"
    return True, name


def gpu_name() -> str | None:
    """The first GPU that llama.cpp sees; None without one."""
    count = ggml("ggml_backend_dev_count", ctypes.c_size_t)
    get = ggml("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
    kind = ggml("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
    describe = ggml("ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
    if not (count and get and kind and describe):
        return None
    for index in range(count()):
        device = get(index)
        if kind(device) in _GPU_KINDS:
            return str(describe(device).decode("utf-8", "replace"))
    return None


def ggml(name: str, returns: object, *takes: object) -> Callable[..., Any] | None:
    """A function of ggml's, which the package does not wrap; Windows keeps it in libraries of its own."""
    folder = Path(lib.__file__).parent / "lib"
    for candidate in (None, folder / "ggml.dll", folder / "ggml-base.dll"):
        try:
            handle = lib._lib if candidate is None else ctypes.CDLL(str(candidate))
            function = handle[name]
        except (OSError, AttributeError):
            continue
        function.restype, function.argtypes = returns, list(takes)
        return function
    return None
