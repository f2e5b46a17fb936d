"""The window's way to the models: what is installed, what can be fetched, and fetching it.

Everything here may block, and the models package is imported only when it is used.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from app import paths
from app.choice import MOST_CONTEXT, Choice, choose, measured_idle, with_answers, with_last, with_own
from app.last_used import LastUsed
from app.settings import Settings
from app.setup import Asked, DraftFit, Fetched, Known, Offer, Report
from engine.config import EngineConfig

if TYPE_CHECKING:
    from app.listing import ModelRow
    from models import Installed, Library, Pair, Progress
    from models.fit import Load


class ModelShelf:
    """The library of this machine under the user's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._choice: Choice | None = None

    @cached_property
    def _library(self) -> "Library":
        from models import Library

        return Library(paths.models_dir())

    def ready(self) -> bool:
        """Whether there is something to load: what the settings name, what was used last, a pair, or a model added."""
        said = with_own(with_last(self._settings, self._library)[0], self._library)
        return bool(said.demo or said.target or said.pair or self._library.installed_pairs())

    def config(self, pair: str | None = None) -> EngineConfig:
        """What to load: the pair named, else what the settings say; reads the headers of the files."""
        return self._choose(Settings(pair=pair).over(self._settings) if pair else self._settings)

    def config_of(self, target: str, draft: str | None) -> EngineConfig:
        """How to load these two under the user's settings; reads the headers of the files."""
        last = LastUsed(target=target, draft=draft or "none")
        return self._choose(Settings(target=target, draft=last.draft).over(self._settings), last)

    def _choose(self, settings: Settings, last: LastUsed | None = None) -> EngineConfig:
        choice = measured_idle(with_answers(choose(settings, self._library), settings))
        self._choice = replace(choice, last=last) if last else choice
        return self._choice.config

    def used(self) -> None:
        """What `config` gave last was loaded: take it the next time, too."""
        if self._choice is not None:
            self._choice.remember()

    def notes(self) -> tuple[str, ...]:
        """What is to be said of what `config` gave last, once."""
        choice, self._choice = self._choice, replace(self._choice, notes=()) if self._choice else None
        return choice.notes if choice else ()

    def offers(self) -> tuple[Offer, ...]:
        """All pairs of the catalogue."""
        here = {pair.id for pair in self._library.installed_pairs()}
        return tuple(self._offer(pair, pair.id in here) for pair in self._library.catalogue.pairs.values())

    def _offer(self, pair: "Pair", installed: bool) -> Offer:
        from models import available
        from models.fit import of_entry

        entries = self._library.catalogue.entries(pair.id)
        free = available()
        return Offer(
            id=pair.id,
            title=pair.title,
            note=pair.note,
            bytes=sum(entry.source.bytes for entry in entries),
            memory=_need([of_entry(entry) for entry in entries], free),
            available=free,
            installed=installed,
            models=pair.models,
        )

    def models(self) -> tuple[Known, ...]:
        """All models of the catalogue, then the others, then tuned drafts."""
        from app import tuned
        from app.listing import model_rows
        from models import available

        free = available()
        here = {model.id: model for model in self._library.installed()}
        rows = tuple(self._known(row, here.get(row.id), free) for row in model_rows(self._library))
        made = (
            Known(one.id, f"{one.form}, for {one.target}", one.bytes, "tuned", fetched=one.bytes, available=free)
            for one in tuned.records()
        )
        return (*rows, *made)

    def _known(self, row: "ModelRow", there: "Installed | None", free: int) -> Known:
        from models import ModelsError
        from models.fit import of_entry, of_file

        entry, state, memory = self._library.catalogue.models.get(row.id), row.state, None
        try:
            load = of_entry(entry) if entry else of_file(there.path) if there else None
            memory = _need([load], free) if load else None
        except ModelsError:
            state = "damaged"
        return Known(row.id, row.title, row.bytes, state, row.licence, row.fetched_bytes, memory, free)

    def draft_fit(self, target: str, draft: str) -> DraftFit:
        """What their vocabularies say, which a process of its own reads."""
        from app.commands.check import VERDICTS
        from engine.check import check

        if target == draft:
            return DraftFit(False, "a model cannot run ahead of itself: choose a smaller one")
        found = check(self._path(target), self._path(draft))
        return DraftFit(found.fit != "none", f"{VERDICTS[found.fit]}: {found.reason}")

    def _path(self, id: str) -> Path:
        from app import tuned

        return (tuned.named(id) or self._library.resolve(id)).path

    def fetch(self, pair: str, report: Report, cancelled: Asked) -> None:
        """Fetch a model, or all models of a pair; raises a ModelsError, also when cancelled."""
        from models import pull

        pull(pair, self._library, _passing(report), cancelled)

    def add(self, path: str, report: Report, cancelled: Asked) -> str:
        """Register a file where it lies; raises a ModelsError, also when cancelled."""
        return self._library.add(Path(path.strip()), _passing(report), cancelled).id

    def verify(self, id: str, report: Report, cancelled: Asked) -> None:
        """Hash files again; raises a ModelsError where one is wrong."""
        pairs = self._library.catalogue.pairs
        for name in pairs[id].models if id in pairs else (id,):
            self._library.verify(name, _passing(report), cancelled)

    def remove(self, id: str) -> None:
        """Delete or forget a model, a pair or a tuned draft, with what was tuned from it; raises a ModelsError."""
        from app.removal import remove

        for _ in remove(self._library, id):
            pass


def _need(loads: "list[Load]", free: int) -> int:
    """Bytes that these models need with the context that would be taken for them."""
    from models import largest_context, need

    context = largest_context(loads, MOST_CONTEXT, free) or MOST_CONTEXT
    return need(loads, min(context, loads[0].facts.n_ctx_train))


def _passing(report: Report) -> Callable[["Progress"], None]:
    def pass_on(progress: "Progress") -> None:
        report(Fetched(progress.what, progress.done, progress.total))

    return pass_on
