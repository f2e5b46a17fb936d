"""The user's own editor on a text: $VISUAL, else $EDITOR.

Whatever goes wrong, the text that was given is still with the caller, and the file that was edited is gone.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from app.errors import EditorFailed


def command(environment: Mapping[str, str]) -> list[str]:
    """The editor's command line; EditorFailed where none is named or the one named is not there."""
    name = next((name for name in ("VISUAL", "EDITOR") if environment.get(name, "").strip()), None)
    if name is None:
        raise EditorFailed("no editor is set: put its command into the variable VISUAL or EDITOR")
    try:
        words = shlex.split(environment[name], posix=os.name == "posix")
    except ValueError as error:
        raise EditorFailed(f"{name}={environment[name]} is no command: {error}") from error
    if shutil.which(words[0]) is None:
        raise EditorFailed(f"the editor {words[0]} that {name} names is not installed: name another one")
    return words


def edit(text: str, words: list[str]) -> str:
    """Open the text in the editor and return what it left; waits for it, with the terminal in its hands.

    Raises EditorFailed where it cannot be run, ends with an error or leaves no text.
    """
    try:
        number, name = tempfile.mkstemp(prefix="paceline-", suffix=".md")
        file = Path(name)
        try:
            with os.fdopen(number, "w", encoding="utf-8", newline="\n") as out:
                out.write(text)
            with _no_interrupts():
                code = subprocess.run([*words, name], check=False).returncode
            if code != 0:
                raise EditorFailed(f"{words[0]} ended with code {code}: the text stays as it was")
            after = file.read_text(encoding="utf-8")
        finally:
            file.unlink(missing_ok=True)
    except UnicodeDecodeError as error:
        raise EditorFailed(f"{words[0]} left what is no text in UTF-8: the text stays as it was") from error
    except OSError as error:
        raise EditorFailed(f"{words[0]} could not be used ({error.strerror}): the text stays as it was") from error
    return after if text.endswith("\n") else after.removesuffix("\n")


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C in the editor is the editor's; a handler, unlike a signal that is ignored, is not inherited."""
    before = None
    with suppress(ValueError):  # not in the main thread, where no signal is handled
        before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
