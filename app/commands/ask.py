"""`paceline ask`: one answer, or one a turn, on stdout; everything else on stderr."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from app import layers
from app.errors import UsageError
from app.paths import models_dir
from app.settings import Settings
from engine.errors import EmptyPrompt

SETTINGS = Annotated[Settings | None, Parameter(name="*")]


def ask(
    prompt: str | None = None,
    /,
    *,
    stdin: bool = False,
    turns: Path | None = None,
    json: bool = False,
    options: SETTINGS = None,
) -> int:
    """Answer a prompt on stdout, as it comes.

    Parameters
    ----------
    prompt
        What to answer; a text that begins with a hyphen goes after --.
    stdin
        Read the prompt, or the rest of it, from stdin; a lone - means the same.
    turns
        In place of a prompt: a file with a JSON list of user messages, answered one after the other.
    json
        Print one JSON object an answer, a line each, and nothing else.
    """
    settings = layers.load(options or Settings())
    if turns and (prompt is not None or stdin):
        raise UsageError("--turns takes the place of a prompt: leave one of them out")
    spoken = _turns(turns) if turns else [whole_prompt(prompt, stdin)]
    from app.choice import choose, measured_idle, with_answers
    from app.commands.asking import Asking
    from app.output import output
    from models.library import Library

    choice = with_answers(choose(settings, Library(models_dir()), require_draft=True), settings)
    if not settings.sampling.greedy:
        choice = measured_idle(choice)
    return asyncio.run(Asking(settings, choice, output(json)).run(spoken))


def whole_prompt(prompt: str | None, stdin: bool) -> str:
    """The prompt, then what stdin holds; EmptyPrompt where nothing is said."""
    if prompt is None and not stdin:
        raise UsageError("there is nothing to answer: give a prompt in quotes, or - to read it from stdin")
    parts = [] if prompt is None else [_text(prompt)]
    if stdin:
        parts.append(sys.stdin.buffer.read().decode("utf-8-sig", errors="replace"))
    return _spoken("\n\n".join(part for part in parts if part), "the prompt")


def _turns(file: Path) -> list[str]:
    try:
        turns = msgspec.json.decode(file.read_bytes(), type=list[str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} must be a JSON list of texts: {error}") from error
    if not turns:
        raise UsageError(f"{file} holds no turn: put at least one text into its list")
    return [_spoken(turn, f"turn {number} of {file}") for number, turn in enumerate(turns, 1)]


def _spoken(text: str, what: str) -> str:
    if not text.strip():
        raise EmptyPrompt(f"{what} is empty: say something")
    return text


def _text(argument: str) -> str:
    """An argument as text, whatever bytes the shell passed on."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
