"""Errors as one line each, for people; the trace only for the log, and only when asked for."""

import traceback

from app import paths
from app.errors import AppError, UsageError

LOG_LIMIT = 2**20
"""Bytes above which the log is started anew."""


def describe(error: Exception) -> tuple[str, int]:
    """One line without control characters, and the exit code: 2 for wrong usage, 1 for all else."""
    line, code = _described(error)
    return one_line(line), code


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    from engine.detokenize import sanitize

    return sanitize(" ".join(text.split()))


def _described(error: Exception) -> tuple[str, int]:
    from cyclopts.exceptions import CycloptsError

    from engine.errors import ConfigError, EngineError
    from models.errors import ModelsError

    if isinstance(error, CycloptsError):
        return _usage(error), 2
    if isinstance(error, UsageError | ConfigError):
        return str(error), 2
    if isinstance(error, AppError | EngineError | ModelsError):
        return str(error), 1
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}: check that it is there and yours to use", 1
    if isinstance(error, MemoryError):
        return "there is not enough memory: close other programs, or take a smaller model", 1
    return f"unexpected {type(error).__name__} ({error}): run it again with --debug, which writes more to {_log()}", 1


def _log() -> str:
    try:
        return str(paths.log_dir() / "paceline.log")
    except AppError:
        return "the log"


def _usage(error: Exception) -> str:
    """What the parser says, and where to read on."""
    from cyclopts.exceptions import UnusedCliTokensError

    chain = getattr(error, "command_chain", None) or ()
    command = " ".join(["paceline", *chain])
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(error.unused_tokens or ())
        if not chain:
            return f"there is no command {unused!r}: see paceline --help"
        return f"unexpected {unused!r}: put a text of several words in quotes; see {command} --help"
    text = str(error).strip().rstrip(".")
    return f"{text[:1].lower()}{text[1:]}: see {command} --help"


def keep_trace(error: Exception) -> None:
    """Append the trace of an error to the log, which only its owner can read."""
    log = paths.private_file(paths.log_dir() / "paceline.log")
    mode = "w" if log.stat().st_size > LOG_LIMIT else "a"
    with log.open(mode, encoding="utf-8", errors="backslashreplace") as file:
        traceback.print_exception(error, file=file)
