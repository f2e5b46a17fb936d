"""What is copied or told, and how it reaches the terminal that the user sits at.

The window writes OSC 52, which a terminal takes from the far end of an ssh connection as well.  tmux by default drops
it from programs that run inside, so there tmux itself is told to load its buffer and to pass it on.

One invariant: copied text has line feeds alone as line ends, and no control character but those and tabs.
"""

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from app.attachments import plain_lines
from engine.detokenize import sanitize

LIMIT_S = 2.0
"""Longest wait for tmux."""
_LINE_ENDS = {0x2028: "\n", 0x2029: "\n"}


def clean(text: str) -> str:
    """A text as it is copied; a lone surrogate becomes a question mark."""
    return plain_lines(text).translate(_LINE_ENDS).encode("utf-8", "replace").decode("utf-8")


def inside_tmux(environment: Mapping[str, str]) -> bool:
    """Whether there is a tmux around the program that can be told."""
    return bool(environment.get("TMUX")) and shutil.which("tmux") is not None


def notice(text: str, *, tmux: bool) -> str:
    """What has a terminal show a notice (OSC 9), where it can; a `tmux` around the program is asked to pass it on."""
    said = f"\x1b]9;{sanitize(text)}\x1b\\"
    return "\x1bPtmux;" + said.replace("\x1b", "\x1b\x1b") + "\x1b\\" if tmux else said


def tell_tmux(text: str) -> None:
    """Have tmux hold the text and pass it to its terminal; says nothing where tmux cannot (before 3.2), and waits."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode("utf-8"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
