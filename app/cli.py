"""The `paceline` command: what is said on the command line, and the one place where errors become a line.

No traceback ever reaches a user: exit codes are 0 done, 1 failed, 2 wrong usage, 130 interrupted.  Nothing slow is
imported before it is clear what is wanted.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from app.errors import INTERRUPTED, AppError

if TYPE_CHECKING:
    from cyclopts import App

HELP = """Chat with a local model in the terminal; a small model drafts for it, which makes it faster and changes
nothing that it says.

Without a command, the chat opens.  PACELINE_HOME moves everything that the program keeps; PACELINE_OFFLINE=1 forbids
any connection.  --debug, anywhere, writes what went wrong to the log."""
FLAGS = {
    "--colour-tokens",
    "--continue",
    "--debug",
    "--demo",
    "--help",
    "--history",
    "--install",
    "--json",
    "--lookup-only",
    "--sabotage",
    "--stdin",
    "--version",
}
"""Options without a value."""
COMMANDS = {
    "ask": ("app.commands.ask:ask", "Answer a prompt on stdout, as it comes."),
    "models": ("app.commands.models:app", "What can be fetched, and what is on this machine."),
    "compare": ("app.commands.compare:compare", "Answer a prompt with drafts and without, in turns: what it gains."),
    "bench": ("app.commands.bench:bench", "Measure how much faster answers come with drafts, by kind of text."),
    "prove": ("app.commands.prove:prove", "Test on this machine that drafting changes nothing that the model says."),
    "tune": ("app.commands.tune:tune", "Make cheaper drafts for this machine; nothing that the model says changes."),
    "completion": ("app.commands.completion:completion", "Have the shell complete commands and options."),
    "doctor": ("app.commands.doctor:doctor", "Say whether a chat can start here, and what to do where it cannot."),
}
"""Where each command stands, and its line in the help, for which none of them is imported."""


def main() -> None:
    """Entry of the program."""
    _open_streams()
    code = _flushed(run(sys.argv[1:]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is brief, and Ctrl-C would end it with a trace
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    tokens, debug = prepare(arguments)
    try:
        return _command(tokens)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return 1
    except Exception as error:
        return _report(error, debug)


def version() -> str:
    """The installed version."""
    from importlib import metadata

    try:
        return metadata.version("paceline")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


def prepare(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without --debug and with a lone hyphen spelled out; whether --debug was among them.

    A hyphen that is an option's value, and what comes after `--`, is text and is left alone.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options, rest = arguments[:end], arguments[end:]
    plain: list[str] = []
    for option in options:
        if option == "-" and plain and _takes_value(plain[-1]):
            plain[-1] += "=-"
        elif option != "--debug":
            plain.append("--stdin" if option == "-" else option)
    return [*plain, *rest], "--debug" in options


def build() -> "App":
    """The command line; what a command needs is imported when it runs."""
    from cyclopts import App, Parameter

    from app.commands.chat import chat

    app = App(
        name="paceline",
        help=HELP,
        help_format="plaintext",
        version=version,
        version_flags=("--version", "-V"),
        default_parameter=Parameter(negative="", show_default=False),
    )
    for name, (place, text) in COMMANDS.items():
        app.command(place, name=name, help=text)
    app.default(chat)
    return app


def _takes_value(token: str) -> bool:
    """Whether the next argument is the value of this one."""
    return token.startswith("--") and "=" not in token and token not in FLAGS


def _command(tokens: list[str]) -> int:
    if tokens in (["--version"], ["-V"]):
        print(version())
        return 0
    code = build()(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    return code if isinstance(code, int) else 0


def _report(error: Exception, debug: bool) -> int:
    """Say in one line what went wrong; the exit code."""
    from app import report

    line, code = report.describe(error)
    if debug:
        with suppress(OSError, AppError):  # a log that cannot be written is no reason to say nothing
            report.keep_trace(error)
    print(f"paceline: {line}", file=sys.stderr)
    return code


def _open_streams() -> None:
    """Put the null device where the shell closed a stream."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _flushed(code: int) -> int:
    """The exit code, once all is written; what cannot be is dropped, and said unless the reader went away."""
    try:
        sys.stdout.flush()
    except OSError as error:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        return code or (1 if isinstance(error, BrokenPipeError) else _report(error, debug=False))
    return code
