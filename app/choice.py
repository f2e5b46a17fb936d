"""Which models to run: what the settings name, those used last, the best pair installed, or one's own."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from app import paths
from app.errors import NotEnoughMemory, NothingInstalled, UsageError
from app.last_used import LastUsed, last_used, remember_models
from app.settings import Settings
from engine.config import EngineConfig
from engine.engines import engines_for

if TYPE_CHECKING:
    from app.tuned import Tuned
    from models.library import Installed, Library

BEST_FIRST = ("coder", "tiny")
"""Pairs that are taken where nothing was used before."""

MOST_CONTEXT = 8192
"""Tokens of context that are taken where nobody asks for more, and for which the need of memory is told."""
LEAST_CONTEXT = 512
"""Tokens of context without which there is no point in starting."""


@dataclass(frozen=True)
class Choice:
    """What to load, and what is to be kept and said of it."""

    config: EngineConfig
    pair: str | None = None
    """The pair it is, where it is one."""
    last: LastUsed | None = None
    """What is used last once it is loaded; None where nobody chose it for longer than this run."""
    notes: tuple[str, ...] = ()
    """Sentences for the user: what could not be taken."""

    def remember(self) -> None:
        """Make these models the ones used last; where that cannot be written, nobody is bothered."""
        if self.last is not None:
            remember_models(self.last)


def choose(settings: Settings, library: "Library", require_draft: bool = False, tuned: bool = True) -> Choice:
    """What to load; raises NothingInstalled, UsageError, or an error of the engine or the models package.

    A pair drafts with what was tuned for it, unless the settings name a draft or `tuned` is False.
    """
    if settings.demo:
        return Choice(replace(settings.engine_config(Path("demo")), target_name="demo"))
    settings, gone = with_last(settings, library)
    settings = with_own(settings, library)
    pair = None if settings.target else _pair(settings, library)
    target = library.resolve(settings.target or library.catalogue.pairs[str(pair)].target)
    notes = (f"{gone}, used last, is no longer here: {pair or target.id} is taken",) if gone else ()
    config = replace(settings.engine_config(target.path), target_name=target.id, cache_dir=paths.cache_dir())
    if draft := _draft(settings, library, pair, tuned):
        config = replace(config, draft=draft.path, draft_name=draft.id, require_draft=require_draft)
        config = _tuned(config) if tuned and settings.draft is None else config
    return Choice(
        replace(config, n_ctx=_context(config)), pair, LastUsed(pair=pair) if pair and not gone else None, notes
    )


def with_last(settings: Settings, library: "Library") -> tuple[Settings, str]:
    """The settings with the models used last where they name none, and which of those is gone; then they are left."""
    if settings.pair or settings.target or settings.demo:
        return settings, ""
    last = last_used()
    refs = [last.target, last.draft if settings.draft is None else None] if last.target else []
    gone = next((ref for ref in refs if ref and ref != "none" and not _is_here(ref, library)), "")
    if not last.target and last.pair and last.pair not in {pair.id for pair in library.installed_pairs()}:
        gone = last.pair
    return (settings, gone) if gone else (last.under(settings), "")


def with_own(settings: Settings, library: "Library") -> Settings:
    """The settings; where they name no model and no pair is installed, the user's largest own one is the target."""
    if settings.pair or settings.target or settings.demo or library.installed_pairs():
        return settings
    own = [model for model in library.installed() if model.id not in library.catalogue.models]
    return dataclasses.replace(settings, target=max(own, key=lambda model: model.bytes).id) if own else settings


def _is_here(ref: str, library: "Library") -> bool:
    from app import tuned
    from models.errors import ModelsError

    try:
        return bool(tuned.named(ref) or library.resolve(ref))
    except ModelsError:
        return False


def with_answers(choice: Choice, settings: Settings) -> Choice:
    """The same for a conversation: its answers are kept for drafts to be copied from, unless history is off."""
    if settings.demo or settings.history is False:
        return choice
    return dataclasses.replace(choice, config=replace(choice.config, library=paths.answers_dir()))


def measured_idle(choice: Choice) -> Choice:
    """The same, measured for the first time while no one waits; a greedy answer has no verdict before that is done."""
    return dataclasses.replace(choice, config=replace(choice.config, calibrate="idle"))


def _draft(settings: Settings, library: "Library", pair: str | None, tuned_too: bool) -> "Installed | Tuned | None":
    """The draft that is named, or that of the pair; of a tuned one that may not be, the one it was made from."""
    from app import tuned

    if (ref := settings.draft) is not None:
        if ref == "none":
            return None
        made = tuned.named(ref)
        return made if made and tuned_too else library.resolve(made.draft if made else ref)
    ref = library.catalogue.pairs[pair].draft if pair else None
    return library.resolve(ref) if ref else None


def _tuned(config: EngineConfig) -> EngineConfig:
    """The same with the draft in the form that was tuned for this target on this machine, where there is one."""
    from app import tuned

    known = None if config.draft_backend == "torch" else tuned.find(config)
    return replace(config, draft=known.path, draft_name=known.id) if known else config


def _pair(settings: Settings, library: "Library") -> str:
    """The pair that is named, or the best one that is installed."""
    pairs = library.catalogue.pairs
    if (named := settings.pair) is not None:
        if named in library.catalogue.models:
            raise UsageError(f"{named} is a model, not a pair: give it as --target {named}")
        library.catalogue.entries(named)
        return named
    installed = [pair.id for pair in library.installed_pairs()]
    for pair in (*BEST_FIRST, *installed):
        if pair in installed:
            return str(pair)
    offers = " or ".join(f"paceline models pull {id} ({_size(library, id)})" for id in BEST_FIRST if id in pairs)
    raise NothingInstalled(f"no pair of models is installed: {offers}")


def _context(config: EngineConfig) -> int | None:
    """The tokens of context that fit the memory; None where the engine may take what it likes.

    LoadFailed or ConfigError where an engine cannot run these files so.  Only llama.cpp's models are measured against
    the memory: torch may hold one in other numbers than its file does, on a device that is not known here.
    """
    from models import fit
    from models.text import size

    engines, asked = engines_for(config), config.n_ctx
    if engines.target != "llamacpp":
        return asked
    files = [config.target, *([config.draft] if config.draft and engines.draft == "llamacpp" else [])]
    loads, kv, free = [fit.of_file(path) for path in files], config.kv or "f16", fit.available()
    wanted = asked or MOST_CONTEXT
    fits = fit.largest_context(loads, wanted, free, kv)
    least = asked or LEAST_CONTEXT
    if fits < min(least, loads[0].facts.n_ctx_train):
        required = size(fit.need(loads, least, kv))
        advice = (
            f"take --ctx {fits} or less" if fits >= LEAST_CONTEXT else "close other programs or take a smaller model"
        )
        raise NotEnoughMemory(f"{least:,} tokens of context need {required} and {size(free)} are free: {advice}")
    return fits if asked is None and fits < min(wanted, loads[0].facts.n_ctx_train) else asked


def _size(library: "Library", pair: str) -> str:
    from models.text import size

    return size(sum(entry.bytes for entry in library.catalogue.entries(pair)))
