"""`paceline compare`: one prompt with speculation off and on, in turns, from the same seed.

The comparison goes to stdout; how far it is goes to stderr.  Ctrl-C prints what is done.
"""

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from app.commands.ask import SETTINGS, whole_prompt
from app.commands.bench import NO_HISTORY, config_of, load_settings
from app.errors import INTERRUPTED, UsageError
from app.settings import Settings

if TYPE_CHECKING:
    from engine.config import EngineConfig, Request
    from engine.experiments.compare import Compared, Comparison

MOST = 256
"""Tokens of each answer where nobody says how many."""
TURNS = 3


def compare(
    prompt: str | None = None,
    /,
    *,
    stdin: bool = False,
    turns: int = TURNS,
    json: bool = False,
    options: SETTINGS = None,
) -> int:
    """Answer a prompt without drafts and with drafts, in turns, and say what that gains.

    All answers begin with the prompt in the cache and draw from the same seed, so with the rule that goes with a seed
    the texts should be the same; where they are not, the first difference is shown.

    Parameters
    ----------
    prompt
        What to answer; a text that begins with a hyphen goes after --.
    stdin
        Read the prompt, or the rest of it, from stdin; a lone - means the same.
    turns
        How often each is run; default: 3.
    json
        Print one JSON object, and nothing else.
    """
    settings = load_settings(options or Settings(), NO_HISTORY)
    if turns < 1:
        raise UsageError(f"turns must be at least 1, not {turns}")
    if settings.speculation.mode == "off":
        raise UsageError("--spec off has nothing to be compared with: leave it out, or take --spec N")
    request = _request(settings, whole_prompt(prompt, stdin))
    return _run(config_of(settings), request, turns, json)


def _request(settings: Settings, prompt: str) -> "Request":
    from msgspec.structs import replace

    from engine.config import Message
    from engine.experiments.bench_plan import SEED

    request = settings.request((Message(role="user", content=prompt),))
    most = MOST if settings.max_tokens is None else settings.max_tokens
    if most < 2:
        raise UsageError(f"max-tokens must be at least 2, or there is nothing to time, not {most}")
    seed = SEED if settings.seed is None else settings.seed
    return replace(request, max_tokens=most, sampling=replace(request.sampling, seed=seed))


def _run(config: "EngineConfig", request: "Request", turns: int, json: bool) -> int:
    from app.commands.bench_lines import Bar
    from engine.engine import Engine
    from engine.experiments.compare import Compared, comparison
    from engine.experiments.compare import compare as runs

    found: list[Compared] = []
    code = 0
    with Bar(sys.stderr) as bar:
        try:
            engine = Engine.load(config, lambda loading: bar.show(loading.what, loading.share))
        except KeyboardInterrupt:
            return INTERRUPTED
        with closing(engine):
            bar.notes(engine.loaded.notes)
            try:
                for event in runs(engine, request, turns):
                    if isinstance(event, Compared):
                        found.append(event)
                    else:
                        bar.show(event.what, event.share)
            except KeyboardInterrupt:
                code = INTERRUPTED
            told = comparison(engine, found)
    _print(told, found, json)
    return code


def _print(told: "Comparison", runs: "list[Compared]", json: bool) -> None:
    import msgspec

    from app.commands.compare_lines import lines

    if json:
        print(msgspec.json.encode(told).decode())
    elif runs:
        print("\n".join(lines(told, {run.mode: run.plan for run in runs})))
