"""Changes to the user's config.toml, in which all that is not changed stays letter by letter, comments too.

One invariant: a file is only ever replaced by one that reads as the old one with just these keys changed, which is
checked by reading it before it is written.  (A flat file needs no library for that.)
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from app.errors import SettingsError
from models.errors import ModelsError
from models.files import make_private, replacing


def save(path: Path, changes: Mapping[str, object]) -> None:
    """Set these settings in the file, None takes one out; the file is made where there is none.

    SettingsError says in one line why that cannot be; then the file is as it was.
    """
    path = path.resolve()
    try:
        before = path.read_bytes().decode() if path.exists() else ""
        after = changed(before, changes)
        make_private(path.parent)
        with replacing(path) as file:
            if path.exists() and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
            file.write(after.encode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML, so nothing was saved: {error}") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be written ({error.strerror}): check its rights") from error
    except ModelsError as error:
        raise SettingsError(str(error)) from error


def changed(text: str, changes: Mapping[str, object]) -> str:
    """The text of a TOML file with these top-level keys set or, where the value is None, taken out."""
    wanted = {_name(key): value for key, value in changes.items()}
    lines, done = list[str](), set[str]()
    statements = list(_statements(text))
    top = next((at for at, one in enumerate(statements) if one.lstrip().startswith("[")), len(statements))
    for statement in statements[:top]:
        key = next(iter(tomllib.loads(statement)), None)
        if key is None or _name(key) not in wanted:
            lines.append(statement)
            continue
        value = wanted[_name(key)]
        done.add(_name(key))
        if value is not None:
            lines.append(f"{key} = {literal(value)}{_comment(statement)}\n")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    lines += [
        f"{name} = {literal(value)}\n" for name, value in wanted.items() if value is not None and name not in done
    ]
    after = "".join([*lines, *statements[top:]])
    _prove(text, after, wanted)
    return after


def _name(key: str) -> str:
    return key.replace("-", "_")


def _statements(text: str) -> Iterator[str]:
    """The shortest runs of lines that are TOML by themselves; a run with a header of a table is one, too."""
    run = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        run += line
        with suppress(tomllib.TOMLDecodeError):
            tomllib.loads(run)
            yield run
            run = ""
    if run:
        tomllib.loads(run)


def _comment(statement: str) -> str:
    """The comment behind a value, with the blanks before it; empty where there is none."""
    last = statement.rstrip("\r\n")
    value = tomllib.loads(statement)
    for at in (at for at, letter in enumerate(last) if letter == "#"):
        with suppress(tomllib.TOMLDecodeError):
            if "\n" not in last[at:] and tomllib.loads(last[:at]) == value:
                return last[len(last[:at].rstrip()) :]
    return ""


def literal(value: object) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(literal(one) for one in value)}]"
    raise TypeError(f"no setting is a {type(value).__name__}")


def _prove(before: str, after: str, wanted: Mapping[str, object]) -> None:
    """Our own bug otherwise: the file would not read as it should."""
    old = {key: value for key, value in tomllib.loads(before).items() if _name(key) not in wanted}
    new = {
        key: list(value) if isinstance(value, tuple) else value for key, value in wanted.items() if value is not None
    }
    found = {key if key in old else _name(key): value for key, value in tomllib.loads(after).items()}
    assert found == {**old, **new}, "the changed settings file does not read as it should"
