import os
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from app import editor
from app.errors import EditorFailed


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "t m p"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def script(code: str) -> list[str]:
    """An editor that runs this with `path` set."""
    return [sys.executable, "-c", f"import sys, os; path = sys.argv[-1]\n{code}"]


def test_visual_comes_before_editor_and_is_a_command_line() -> None:
    python = shlex.quote(sys.executable)
    assert editor.command({"VISUAL": f"{python} -w 'a b'", "EDITOR": "x"}) == [sys.executable, "-w", "a b"]
    assert editor.command({"VISUAL": " ", "EDITOR": python}) == [sys.executable]


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "no editor is set: put its command into the variable VISUAL or EDITOR"),
        ({"EDITOR": "no-such-editor -x"}, "the editor no-such-editor that EDITOR names is not installed"),
        ({"VISUAL": "'x"}, "VISUAL='x is no command"),
    ],
)
def test_no_editor_is_one_line(environment: dict[str, str], why: str) -> None:
    with pytest.raises(EditorFailed) as caught:
        editor.command(environment)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("pass", "日本\nעברית"),
        ("open(path, 'a').write('!\\n')", "日本\nעברית!"),
        ("os.remove(path); open(path, 'w').write('new')", "new"),
        ("open(path, 'w').write('')", ""),
    ],
)
def test_what_the_editor_leaves_is_the_text(code: str, after: str, temporary: Path) -> None:
    assert editor.edit("日本\nעברית", script(code)) == after
    assert list(temporary.iterdir()) == []


def test_a_last_line_end_of_the_users_stays() -> None:
    assert editor.edit("a\n", script("pass")) == "a\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("sys.exit(3)", "ended with code 3: the text stays as it was"),
        ("open(path, 'wb').write(b'\\xff')", "no text in UTF-8"),
        ("os.remove(path)", "could not be used"),
    ],
)
def test_a_failure_is_one_line_and_leaves_no_file(code: str, why: str, temporary: Path) -> None:
    with pytest.raises(EditorFailed, match=why) as caught:
        editor.edit("x", script(code))
    assert "\n" not in str(caught.value)
    assert list(temporary.iterdir()) == []


def test_an_editor_that_cannot_be_run_is_one_line(temporary: Path) -> None:
    with pytest.raises(EditorFailed, match="could not be used"):
        editor.edit("x", [str(temporary)])
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_file_is_its_owners_alone() -> None:
    code = "mode = os.stat(path).st_mode & 0o777; open(path, 'w').write(oct(mode))"
    assert editor.edit("x", script(code)) == "0o600"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_an_interrupt_in_the_editor_ends_nothing_here() -> None:
    code = (
        "import signal; os.kill(os.getppid(), signal.SIGINT); default = signal.default_int_handler\n"
        "open(path, 'w').write(str(signal.getsignal(signal.SIGINT) is default))"
    )
    assert editor.edit("x", script(code)) == "True"
