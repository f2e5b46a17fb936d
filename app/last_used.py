"""What was used last: one small private file, which may be gone, broken or unwritable without harm."""

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from app import paths
from app.settings import Settings
from engine.errors import ConfigError

_WRITING = threading.Lock()


class LastUsed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The models, either a pair or a target with what drafts for it, and how rounds were drafted; None: not known."""

    pair: str | None = None
    target: str | None = None
    draft: str | None = None
    """An id, or none."""
    spec: str | None = None

    def under(self, settings: Settings) -> Settings:
        """The settings, with these models where they name none."""
        if self.target:
            return settings.over(Settings(target=self.target, draft=self.draft))
        return settings.over(Settings(pair=self.pair or None))


def last_used() -> LastUsed:
    """What was used last, as far as it can be read."""
    try:
        return msgspec.json.decode(_state_file().read_bytes(), type=LastUsed)
    except (OSError, msgspec.DecodeError):
        return LastUsed()


def remember_models(models: LastUsed) -> None:
    """Keep which models were used last."""
    _change(pair=models.pair, target=models.target, draft=models.draft)


def remember_speculation(spec: str) -> None:
    """Keep how rounds were drafted last, as the setting `spec` says it."""
    _change(spec=spec)


def with_last_speculation(settings: Settings) -> Settings:
    """The settings, with the speculation used last where they say nothing of it."""
    if settings.spec is None and not settings.demo:
        with suppress(ConfigError):
            found = replace(settings, spec=last_used().spec)
            found.check()
            return found
    return settings


def _state_file() -> Path:
    return paths.data_dir() / "state.json"


def _change(**said: str | None) -> None:
    """Write the file where this changes it, as far as it can be written."""
    from models.errors import ModelsError
    from models.files import make_private, replacing

    with _WRITING:
        before = last_used()
        after = msgspec.structs.replace(before, **said)
        if after == before:
            return
        with suppress(OSError, ModelsError):
            make_private(paths.data_dir())
            with replacing(_state_file()) as file:
                file.write(msgspec.json.encode(after))
