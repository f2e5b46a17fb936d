"""Every key of the program, read off the bindings themselves, and the user's own keys in their place.

Keys, palette and help come from one declaration: a Binding with an id, a description and a tooltip, in the class that
does it.  The user's file names the keys by that id:

    # keys.toml
    "chat.new" = "ctrl+t"
    "chat.stop" = "escape,ctrl+g"

What is wrong in it is told in one line each and left out; the rest still counts.
"""

import difflib
import importlib
import pkgutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, format_key, key_to_character

from app import paths, report

TITLES = {
    "app": "Everywhere",
    "chat": "Chat",
    "prompt": "Prompt",
    "chip": "Prompt",
    "conversation": "Messages",
    "message": "Messages",
    "sidebar": "Conversations",
    "rename": "Conversations",
    "models": "Models",
    "settings": "Settings",
    "first": "First run",
    "help": "Help",
}
"""Headings by the first part of an id, in the order of the help screen; all others are in lists and fields."""
OTHERS = "Lists and fields"
PLACES = ("app.tui", "app.screens", "app.widgets")
"""Where bindings are declared."""
MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "meta", "hyper"})
SHORT = {"pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc", "delete": "Del"}
NAMED = frozenset(key.value.split("+")[-1] for key in Keys if not key.value.startswith("<"))


@dataclass(frozen=True)
class Key:
    """One action and the keys that do it."""

    id: str
    keys: tuple[str, ...]
    """As Textual names them."""
    description: str
    tooltip: str
    place: str = ""
    """The class that declares it."""

    @property
    def part(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def group(self) -> str:
        """The heading that it stands under."""
        return TITLES.get(self.part, OTHERS)


def declared() -> tuple[Key, ...]:
    """All actions with an id, under the headings in their order, each with its default keys."""
    order = {part: at for at, part in enumerate(TITLES)}
    keys = [Key(one.id, _split(one.key), one.description, one.tooltip, place) for place, one in _bindings() if one.id]
    return tuple(sorted(keys, key=lambda key: order.get(key.part, len(order))))


def changed(keys: Iterable[Key], keymap: Mapping[str, str]) -> tuple[Key, ...]:
    """The same actions with the user's keys."""
    return tuple(replace(key, keys=_split(keymap[key.id])) if key.id in keymap else key for key in keys)


def _bindings() -> Iterable[tuple[str, Binding]]:
    for module in _modules():
        for node in vars(module).values():
            if isinstance(node, type) and issubclass(node, DOMNode) and node.__module__ == module.__name__:
                yield from ((node.__name__, one) for one in vars(node).get("BINDINGS", ()) if isinstance(one, Binding))


def _modules() -> Iterable[object]:
    for place in PLACES:
        module = importlib.import_module(place)
        yield module
        for found in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{place}."):
            yield importlib.import_module(found.name)


def _split(keys: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in keys.split(",") if key.strip())


def read(path: Path) -> tuple[dict[str, str], list[str]]:
    """The user's keys by the id of their binding, and a line for each that cannot be; none where there is no file."""
    if not path.exists():
        return {}, []
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return {}, [report.one_line(f"{paths.shown(path)} is not valid TOML: {error}")]
    except OSError as error:
        return {}, [report.one_line(f"{paths.shown(path)} cannot be read ({error.strerror}): check its rights")]
    keymap, faults = chosen(_flat(table), declared())
    return keymap, [report.one_line(f"{paths.shown(path)}: {fault}") for fault in faults]


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Tables such as [chat] as ids such as chat.new."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def chosen(said: Mapping[str, object], keys: tuple[Key, ...]) -> tuple[dict[str, str], list[str]]:
    """What of these settings can be, and why the rest cannot."""
    known = {key.id: key for key in keys}
    keymap: dict[str, str] = {}
    faults: list[str] = []
    for id, value in said.items():
        fault = _unknown(id, known) or _wrong(value)
        if fault:
            faults.append(f"{id}: {fault}")
        else:
            keymap[id] = ",".join(_split(str(value)))
    for id in reversed(list(keymap)):
        if fault := _taken(known[id], changed(keys, keymap), known):
            del keymap[id]
            faults.append(f"{id}: {fault}")
    return keymap, faults


def _unknown(id: str, known: Mapping[str, Key]) -> str:
    if id in known:
        return ""
    close = difflib.get_close_matches(id, known, n=1)
    return f"there is no such key{f': perhaps {close[0]!r}?' if close else ': the help screen names them (F1)'}"


def _wrong(value: object) -> str:
    if not isinstance(value, str) or not _split(value):
        return 'must be a key in quotes, such as "ctrl+t"'
    wrong = [key for key in _split(value) if not _is_key(key)]
    return f'{wrong[0]!r} is no key: write it like "ctrl+t", "f6" or "alt+up"' if wrong else ""


def _is_key(key: str) -> bool:
    """Whether it names a key: one character or a name of Textual's, behind its modifiers."""
    if len(key) == 1:
        return key.isprintable()
    *modifiers, last = key.split("+")
    return set(modifiers) <= MODIFIERS and (last in NAMED or _is_character(last))


def _is_character(name: str) -> bool:
    character = key_to_character(name)
    return character is not None and character.isprintable()


def _taken(default: Key, keys: tuple[Key, ...], known: Mapping[str, Key]) -> str:
    """Which other action that can be had beside this one has one of its keys; those that share it by default may."""
    own = next(key for key in keys if key.id == default.id)
    for other in keys:
        both = set(own.keys) & set(other.keys) - (set(default.keys) & set(known[other.id].keys))
        if other.id != own.id and both and _meet(own, other):
            return f"{min(both)!r} is the key of {other.id} already"
    return ""


def _meet(one: Key, other: Key) -> bool:
    """Whether two actions can be had at the same time: of one class, or of the chat and its prompt, or everywhere."""
    parts = {one.part, other.part}
    return one.place == other.place or "app" in parts or parts == {"chat", "prompt"}


def shown(key: str) -> str:
    """A key as people write it: Ctrl+T, Shift+Enter, F2, PgUp, <."""
    return "+".join(map(_shown_part, key.split("+")))


def _shown_part(part: str) -> str:
    sign = format_key(part)
    return SHORT.get(part, sign.upper() if len(sign) == 1 and sign.isascii() else part.title())
