"""The layers of settings: arguments over environment over file; each value is checked where it stands.

A value that is wrong is told with the place that holds it: the file and key, or the variable.
"""

import os
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import msgspec

from app import paths
from app.errors import SettingsError, UsageError
from app.settings import Settings
from engine.errors import ConfigError

PREFIX = "PACELINE_"
FILE = "config.toml"


def load(arguments: Settings, file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """All layers merged; raises SettingsError (file, environment) or ConfigError and UsageError (arguments)."""
    arguments.check()
    from_file = read_file(file or paths.config_dir() / FILE)
    merged = arguments.over(read_environment(os.environ if environment is None else environment).over(from_file))
    merged.check()
    return merged


def read_file(path: Path) -> Settings:
    """The settings of a TOML file; none where there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        advice = "check the path, its rights, and PACELINE_HOME"
        raise SettingsError(f"{path} cannot be read ({error.strerror}): {advice}") from error
    names = {key: key.replace("-", "_") for key in table}
    for key, name in names.items():
        if name not in _types():
            raise SettingsError(f"{path}: there is no setting {key!r}{_near(name)}")
    return _layer(str(path), ((f"{path}: {key}", name, table[key]) for key, name in names.items()))


def read_environment(environment: Mapping[str, str]) -> Settings:
    """The settings of variables such as PACELINE_TEMPERATURE; an empty one says nothing."""
    variables = ((f"{PREFIX}{name.upper()}", name) for name in _types())
    given = ((key, name, environment[key]) for key, name in variables if environment.get(key))
    return _layer("the environment", given)


def value(name: str, said: object) -> object:
    """One setting from text or JSON, checked; SettingsError says in one line why it cannot be."""
    found = _converted(name, name, said)
    _checked(name, {name: found})
    return found


def _layer(source: str, values: Iterable[tuple[str, str, object]]) -> Settings:
    """Settings of (place, name, value)."""
    said: dict[str, object] = {}
    for place, name, value in values:
        said[name] = _converted(place, name, value)
        _checked(place, {name: said[name]})
    return _checked(source, said)


def _checked(place: str, said: dict[str, object]) -> Settings:
    try:
        settings = replace(Settings(), **said)
        settings.check()
    except (ConfigError, UsageError) as error:
        raise SettingsError(f"{place}: {error}") from error
    return settings


def _converted(place: str, name: str, value: object) -> object:
    wanted = _types()[name]
    if name in ("spec", "exit_layers") and type(value) is int:
        value = str(value)
    if wanted == tuple[str, ...] | None and isinstance(value, str):
        value = [value]
    try:
        return msgspec.convert(value, wanted, strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        raise SettingsError(f"{place}: {value!r} is not possible here: {_reason(error, wanted)}") from error


def _reason(error: msgspec.ValidationError, wanted: object) -> str:
    choices = [choice for kind in typing.get_args(wanted) for choice in typing.get_args(kind) if choice is not ...]
    if choices and all(isinstance(choice, str) for choice in choices):
        return f"take {', '.join(choices[:-1])} or {choices[-1]}"
    reason = str(error).replace(" | null", "").replace("`", "").partition(" - at ")[0]
    return reason[:1].lower() + reason[1:]


def _types() -> dict[str, object]:
    hints = typing.get_type_hints(Settings)
    return {field.name: hints[field.name] for field in fields(Settings)}


def _near(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, _types(), n=1)
    return f": perhaps {close[0]!r}?" if close else ": paceline ask --help names them"
