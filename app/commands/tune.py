"""`paceline tune`: cheaper drafts for this machine.

Results go to stdout, a line a form; how far it is goes to stderr.
"""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.prove_lines import Progress
from app.commands.tune_lines import HEAD, kept, line, verdict
from app.errors import INTERRUPTED, UsageError

if TYPE_CHECKING:
    from app.tuned import Tuned
    from engine.config import EngineConfig
    from engine.experiments.tune import Source
    from engine.experiments.tune_records import Report
    from engine.pair import Pair

FORMS_AT_ONCE = 3
"""Forms of the draft that lie on the drive at the same time; one that is much larger than the draft is never best."""


def tune(*, pair: str | None = None, target: str | None = None, draft: str | None = None, json: bool = False) -> int:
    """Make cheaper forms of the draft model, measure them here, and keep the best one.

    Its weights are put into other types, layers are left out, and its vocabulary is cut to the tokens that texts use.
    Each form's speed and acceptance are measured beside the target on this machine. Where one is expected to gain more
    than the draft as it is, it is kept and used for this pair from then on. The target stays as it is, so no text
    changes. paceline models list shows what is kept, paceline models rm deletes it.

    Parameters
    ----------
    pair
        The pair whose draft is tuned; default: the one used last, else coder.
    target
        The model to draft for, by id or path, in place of a pair.
    draft
        The draft model to tune, by id or path.
    json
        Print one JSON object, and nothing else.
    """
    import msgspec

    config = _config(pair, target, draft)
    try:
        report, made = _run(config, quiet=json)
    except KeyboardInterrupt:
        return INTERRUPTED
    if json:
        print(msgspec.json.encode({"report": report, "kept": made}).decode())
    else:
        print("\n".join(["", *verdict(report), kept(made)]))
    return 0


def _config(pair: str | None, target: str | None, draft: str | None) -> "EngineConfig":
    """What to load: as `ask` would, with the draft as it was fetched."""
    from app import layers
    from app.choice import choose, with_answers
    from app.paths import models_dir
    from app.settings import Settings
    from engine.engines import engines_for
    from models.library import Library

    settings = layers.load(Settings(pair=pair, target=target, draft=draft))
    if settings.demo:
        raise UsageError("the demo runs no model, so there is nothing to tune: name a pair with --pair")
    choice = choose(settings, Library(models_dir()), require_draft=True, tuned=False)
    config = with_answers(choice, settings).config
    if config.draft is None:
        raise UsageError("there is no draft model to tune: name a pair that has one, such as --pair coder")
    if engines_for(config).draft != "llamacpp":
        raise UsageError("only drafts in GGUF files on llama.cpp can be tuned: name another draft with --draft")
    return config


def _run(config: "EngineConfig", quiet: bool) -> "tuple[Report, Tuned | None]":
    """Load, measure, and keep what is best."""
    from app import tuned
    from engine.loading import load_pair

    assert config.draft is not None
    with (
        tuned.workplace(FORMS_AT_ONCE * config.draft.stat().st_size) as folder,
        Progress(sys.stderr) as progress,
        closing(load_pair(config, lambda loading: progress.show(loading.what, loading.share))) as pair,
    ):
        progress.notes(pair.notes)
        source = _source(config, pair, folder)
        report = _measure(pair, source, progress, quiet)
        return report, _keep(config, source, report)


def _source(config: "EngineConfig", pair: "Pair", folder: Path) -> "Source":
    from engine.drafters.library import MOST_TOKENS
    from engine.drafters.library_file import LibraryFile
    from engine.experiments.tune import Source
    from engine.opening import open_model
    from models.facts import facts
    from models.gguf import check

    assert config.draft is not None
    answers = LibraryFile.of(config.library, pair.target.vocab).read(MOST_TOKENS) if config.library else {}
    return Source(
        file=config.draft,
        layers=facts(check(config.draft)).n_layer,
        folder=folder,
        open=lambda path: open_model(config, path, "llamacpp", lambda _: None, n_ctx_most=pair.target.n_ctx).model,
        used=[tokens.tolist() for tokens in answers.values()],
    )


def _measure(pair: "Pair", source: "Source", progress: Progress, quiet: bool) -> "Report":
    """Print each form as it is measured."""
    from engine.experiments.tune import tune as forms
    from engine.experiments.tune_plan import Plan
    from engine.experiments.tune_records import Report, Working

    if not quiet:
        progress.clear()
        print(HEAD, flush=True)
    with closing(forms(pair, source, Plan())) as events:
        for event in events:
            if isinstance(event, Working):
                progress.show(event.what, event.share)
                continue
            progress.clear()
            if isinstance(event, Report):
                return event
            if not quiet:
                print(line(event), flush=True)
    raise AssertionError("tuning ends with its report")


def _keep(config: "EngineConfig", source: "Source", report: "Report") -> "Tuned | None":
    """Keep the best form where there is one, and forget an older one where there is none."""
    from app import tuned
    from engine.experiments.tune import path_of

    id, best, before = tuned.id_of(config.target_name, config.draft_name), report.best, report.original
    if best is None:
        tuned.remove(id)
        return None
    made = tuned.Tuned(
        id=id,
        draft=config.draft_name,
        target=config.target_name,
        form=str(best.form),
        bytes=best.bytes,
        ms=best.ms,
        ms_before=before.ms,
        acceptance=best.acceptance.chance,
        acceptance_before=before.acceptance.chance,
        gain=best.gain,
        gain_before=before.gain,
        basis=tuned.basis(config),
    )
    tuned.keep(path_of(source, best.form), made)
    return made
