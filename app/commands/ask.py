"""`paceline ask`: one answer, or one a turn, on stdout; everything else on stderr."""

import asyncio
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from app import layers
from app.errors import UsageError
from app.paths import models_dir
from app.settings import Settings
from engine.errors import EmptyPrompt


@dataclass(frozen=True, kw_only=True)
class Onward:
    """What to go on with."""

    continue_: bool = False
    """Go on with the latest conversation, in its settings and with its system prompt."""
    conversation: int | None = None
    """Go on with the conversation of this number; one that is not there names the latest."""


SETTINGS = Annotated[Settings | None, Parameter(name="*")]


def ask(
    prompt: str | None = None,
    /,
    *,
    stdin: bool = False,
    turns: Path | None = None,
    json: bool = False,
    onward: Annotated[Onward | None, Parameter(name="*")] = None,
    options: SETTINGS = None,
) -> int:
    """Answer a prompt on stdout, as it comes.

    The conversation is kept, as those of the window are: --continue goes on with it.  --history=false keeps nothing.

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
    said = options or Settings()
    settings = layers.load(said)
    if turns and (prompt is not None or stdin):
        raise UsageError("--turns takes the place of a prompt: leave one of them out")
    spoken = _turns(turns) if turns else [whole_prompt(prompt, stdin)]
    from app.choice import choose, measured_idle, with_answers
    from app.commands.asking import Asking
    from app.commands.talk import open_talk
    from app.output import output
    from models.library import Library

    choice = with_answers(choose(settings, Library(models_dir()), require_draft=True), settings)
    if not settings.sampling.greedy:
        choice = measured_idle(choice)
    onward = onward or Onward()
    with closing(open_talk(settings, said, onward.continue_, onward.conversation)) as talk:
        return asyncio.run(Asking(talk, choice, output(json)).run(spoken))


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
