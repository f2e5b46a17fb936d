"""Which pair was used last: one small private file, which may be gone, broken or unwritable without harm."""

from contextlib import suppress
from pathlib import Path

import msgspec

from app import paths


class _State(msgspec.Struct):
    pair: str | None = None


def _state_file() -> Path:
    return paths.data_dir() / "state.json"


def last_pair() -> str | None:
    """The pair used last, None where there is none or it cannot be read."""
    try:
        return msgspec.json.decode(_state_file().read_bytes(), type=_State).pair
    except (OSError, msgspec.DecodeError):
        return None


def remember(pair: str) -> None:
    """Keep which pair was used last, as far as that can be written."""
    from models.errors import ModelsError
    from models.files import make_private, replacing

    with suppress(OSError, ModelsError):
        make_private(paths.data_dir())
        with replacing(_state_file()) as file:
            file.write(msgspec.json.encode(_State(pair=pair)))
