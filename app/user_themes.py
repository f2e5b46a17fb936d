"""Themes of the user's own: a TOML file each, which says what differs from one of the program's.

    # themes/dusk.toml
    base = "paceline-dark"
    background = "#201a2b"
    accent = "#ffb3d1"

A file that is wrong is left out and told in one line, with the key at fault; the others still count.
"""

import difflib
import tomllib
from dataclasses import fields, replace
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import Theme

from app import paths, report
from app.errors import SettingsError
from app.themes import PALETTES, Palette

OWN = {palette.name: palette for palette in PALETTES}
KEYS = ("name", "dark", "base", *(field.name for field in fields(Palette) if field.name not in ("name", "dark")))
PLAIN = set("abcdefghijklmnopqrstuvwxyz0123456789-_")
"""What the name of a theme is made of."""


def read_all(folder: Path) -> tuple[list[Theme], list[str]]:
    """The themes of the folder's *.toml files, and a line for each file that is none; a name counts once."""
    themes: dict[str, Theme] = {}
    faults: list[str] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            palette = read(path)
            if palette.name in themes:
                raise _fault(path, "name", f"{palette.name!r} is another file's already: take another")
            themes[palette.name] = palette.theme()
        except SettingsError as error:
            faults.append(report.one_line(str(error)))
    return list(themes.values()), faults


def read(path: Path) -> Palette:
    """The palette of one file; SettingsError names the file and the key."""
    table = _table(path)
    base = _base(path, table)
    said: dict[str, object] = {"name": _name(path, table), "dark": table.get("dark", base.dark)}
    if not isinstance(said["dark"], bool):
        raise _fault(path, "dark", "must be true or false")
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in KEYS:
            raise _fault(path, key, f"there is no such colour{_near(name)}")
        if name not in ("name", "dark", "base"):
            said[name] = _colour(path, key, value)
    return replace(base, **said)


def _table(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{paths.shown(path)} is not valid TOML: {error}") from error
    except OSError as error:
        raise SettingsError(f"{paths.shown(path)} cannot be read ({error.strerror}): check its rights") from error


def _base(path: Path, table: dict[str, object]) -> Palette:
    """What the file starts from: what it names, else the first of the program's that is as dark or light."""
    base = table.get("base")
    if base is None:
        dark = table.get("dark", True)
        return next(palette for palette in PALETTES if palette.dark == dark or not isinstance(dark, bool))
    if not isinstance(base, str) or base not in OWN:
        raise _fault(path, "base", f"must be one of {', '.join(OWN)}")
    return OWN[base]


def _name(path: Path, table: dict[str, object]) -> str:
    name = table.get("name", path.stem.lower().replace(" ", "-"))
    if not isinstance(name, str) or not name or not set(name) <= PLAIN:
        raise _fault(path, "name", "must be of small letters a to z, digits, - and _ alone")
    if name in OWN:
        raise _fault(path, "name", f"{name!r} is the program's own: take another")
    return name


def _colour(path: Path, key: str, value: object) -> str:
    try:
        if isinstance(value, str) and (colour := Color.parse(value)).a == 1 and colour.ansi is None:
            return colour.hex
    except ColorParseError:
        pass
    raise _fault(path, key, f"{value!r} is no colour: write it like #7fb6cc")


def _near(name: str) -> str:
    close = difflib.get_close_matches(name, KEYS, n=1)
    return f": perhaps {close[0].replace('_', '-')!r}?" if close else f": there are {', '.join(KEYS[:6])} and more"


def _fault(path: Path, key: str, reason: str) -> SettingsError:
    return SettingsError(f"{paths.shown(path)}: {key}: {reason}")
