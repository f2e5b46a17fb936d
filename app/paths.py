"""Where the program keeps things: the platform's own folders, or all under PACELINE_HOME.

Every file that is made here, and each folder made for it, is its owner's alone, whatever the umask says.  A home that
cannot be found is a SettingsError of every function here.
"""

import errno
import os
from pathlib import Path

import platformdirs

from app.errors import SettingsError

NAME = "paceline"


def _folder(kind: str, platform: str) -> Path:
    home = os.environ.get("PACELINE_HOME")
    if not home:
        return Path(platform)
    try:
        return Path(home).expanduser().absolute() / kind
    except (RuntimeError, OSError) as error:
        raise SettingsError(f"PACELINE_HOME={home} is no folder that can be found: give an absolute path") from error


def data_dir() -> Path:
    """Conversations and models."""
    return _folder("data", platformdirs.user_data_dir(NAME, appauthor=False))


def config_dir() -> Path:
    """What the user writes."""
    return _folder("config", platformdirs.user_config_dir(NAME, appauthor=False))


def cache_dir() -> Path:
    """Measurements that can be made again."""
    return _folder("cache", platformdirs.user_cache_dir(NAME, appauthor=False))


def log_dir() -> Path:
    """Logs of the program and of the native library."""
    return _folder("log", platformdirs.user_log_dir(NAME, appauthor=False))


def models_dir() -> Path:
    """Model files and the list of them."""
    return data_dir() / "models"


def answers_dir() -> Path:
    """The ids of earlier answers, for drafts to be copied from."""
    return data_dir() / "answers"


def conversations_file() -> Path:
    """All conversations."""
    return data_dir() / "conversations.db"


def private_file(path: Path) -> Path:
    """Make an empty file of mode 0600 where there is none; returns it.  OSError where it cannot be written."""
    from models.files import make_private

    make_private(path.parent)
    if not path.is_file():  # to close a file takes the locks away that this process has on it: SQLite needs those
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path


def shown(path: Path | str) -> str:
    """A path, or a text with one, as text that can be written, whatever bytes the name is made of."""
    return os.fsencode(path).decode("utf-8", "replace")
