"""`paceline completion`: what makes a shell complete the commands, their options and what these take."""

from typing import Literal

from app.errors import UsageError
from app.paths import shown

Shell = Literal["bash", "zsh", "fish", "powershell"]


def completion(shell: Shell | None = None, /, *, install: bool = False) -> None:
    """Print a script that completes commands and options in the shell.

    Once, for good: paceline completion --install.  For this shell alone: source <(paceline completion bash).

    Parameters
    ----------
    shell
        Which shell it is for; default: the one that this is run from.
    install
        Put the script where the shell looks for it, and have its startup file load it.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    from app.cli import build

    try:
        which = shell or detect_shell()
    except ShellDetectionError as error:
        raise UsageError("which shell this is cannot be told: name it, as in paceline completion bash") from error
    if install:
        print(f"{shown(build().install_completion(shell=which))}: open a new terminal to have it")
    else:
        print(build().generate_completion(shell=which))
