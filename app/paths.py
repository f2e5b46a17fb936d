"""Where the program keeps things: the platform's own folders, or all under PACELINE_HOME.

Every folder that is made here is readable by its owner alone, whatever the umask says.
"""

import os
from pathlib import Path

import platformdirs

NAME = "paceline"


def _folder(kind: str, platform: str) -> Path:
    home = os.environ.get("PACELINE_HOME")
    return Path(home).expanduser().absolute() / kind if home else Path(platform)


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


def downloads_dir() -> Path:
    """Parts of downloads that are not finished."""
    return data_dir() / "downloads"


def make(folder: Path) -> Path:
    """Make a folder and what it lies in; new ones are private (0700); returns it."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def private_file(path: Path) -> Path:
    """Make an empty file of mode 0600 where there is none; returns it."""
    make(path.parent)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return path
