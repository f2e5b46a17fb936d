"""The window's way to the models: what is installed, what can be fetched, and fetching it.

Everything here may block, and the models package is imported only when it is used.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from app import paths
from app.choice import MOST_CONTEXT, Choice, choose, measured_idle, with_answers
from app.settings import Settings
from app.setup import Fetched, Offer
from engine.config import EngineConfig

if TYPE_CHECKING:
    from models import Library, Pair, Progress


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
        """Whether the settings name what to load, or a pair is installed."""
        said = self._settings
        return bool(said.demo or said.target or said.pair or self._library.installed_pairs())

    def config(self, pair: str | None = None) -> EngineConfig:
        """What to load: the pair named, else what the settings say; reads the headers of the files."""
        settings = Settings(pair=pair).over(self._settings) if pair else self._settings
        self._choice = measured_idle(with_answers(choose(settings, self._library), settings))
        return self._choice.config

    def used(self) -> None:
        """What `config` gave last was loaded: take it the next time, too."""
        if self._choice is not None:
            self._choice.remember()

    def offers(self) -> tuple[Offer, ...]:
        """All pairs of the catalogue."""
        return tuple(self._offer(pair) for pair in self._library.catalogue.pairs.values())

    def _offer(self, pair: "Pair") -> Offer:
        from models import available, largest_context, need
        from models.fit import of_entry

        entries = self._library.catalogue.entries(pair.id)
        loads, free = [of_entry(entry) for entry in entries], available()
        context = largest_context(loads, MOST_CONTEXT, free) or MOST_CONTEXT
        return Offer(
            id=pair.id,
            title=pair.title,
            note=pair.note,
            bytes=sum(entry.source.bytes for entry in entries),
            memory=need(loads, min(context, loads[0].facts.n_ctx_train)),
            available=free,
        )

    def fetch(self, pair: str, report: Callable[[Fetched], None], cancelled: Callable[[], bool]) -> None:
        """Fetch all models of a pair; raises a ModelsError, also when cancelled."""
        from models import pull

        def pass_on(progress: "Progress") -> None:
            report(Fetched(progress.what, progress.done, progress.total))

        pull(pair, self._library, pass_on, cancelled)
