"""`paceline prove`: a test of losslessness that a user can run, with these models on this machine.

Results go to stdout, a line a test; how far it is goes to stderr.
"""

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from app.commands.prove_lines import SABOTAGED, Lines, Progress
from app.errors import INTERRUPTED, UsageError

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.experiments.prove_records import Report


def prove(
    *,
    pair: str | None = None,
    target: str | None = None,
    draft: str | None = None,
    sabotage: bool = False,
    json: bool = False,
) -> int:
    """Test on this machine that drafting changes nothing that the model says.

    The engine answers thousands of times, with drafts, from a few rows of the target's; the answers are counted
    against the chances in these rows. Then texts with speculation on and off are compared in strict exactness. Ends
    with 0 where all is well and with 1 where a test failed.

    Parameters
    ----------
    pair
        The pair of models to test; default: the one used last, else coder, else tiny.
    target
        The model that decides, by id or path, in place of a pair.
    draft
        The model that drafts for it, by id or path; none: drafts come from the conversation alone.
    sabotage
        Put a broken rule in place, to see that the test finds it: this run has to fail. Off by default.
    json
        Print one JSON object, and nothing else.
    """
    import msgspec

    config = _config(pair, target, draft)
    if sabotage and not json:
        print(SABOTAGED)
    try:
        report = _run(config, sabotage, None if json else Lines(sys.stdout))
    except KeyboardInterrupt:
        return INTERRUPTED
    if json:
        print(msgspec.json.encode(report).decode())
    return 0 if report.passed else 1


def _config(pair: str | None, target: str | None, draft: str | None) -> "EngineConfig":
    """What to load: as `ask` would, in strict exactness."""
    from msgspec.structs import replace

    from app import layers
    from app.choice import choose
    from app.paths import models_dir
    from app.settings import Settings
    from models.library import Library

    settings = layers.load(Settings(pair=pair, target=target, draft=draft))
    if settings.demo:
        raise UsageError("the demo runs no model, so there is nothing to prove: name a pair with --pair")
    return replace(choose(settings, Library(models_dir()), require_draft=True).config, exact="strict")


def _run(config: "EngineConfig", sabotage: bool, lines: Lines | None) -> "Report":
    """Load and test, and print what is found where there are `lines` to print."""
    from engine.engine import lossless
    from engine.experiments.prove import prove as tests
    from engine.experiments.prove_records import Report, Working
    from engine.experiments.sabotage import sabotaged
    from engine.loading import load_pair

    with Progress(sys.stderr) as progress:
        loaded = load_pair(config, lambda loading: progress.show(loading.what, loading.share))
        progress.notes(loaded.notes)
        with closing(loaded):
            for event in tests(loaded, rules=sabotaged if sabotage else lossless):
                if isinstance(event, Working):
                    progress.show(event.what, event.share)
                    continue
                progress.clear()
                if lines:
                    lines.print(event)
                if isinstance(event, Report):
                    return event
    raise AssertionError("a proof ends with its report")
