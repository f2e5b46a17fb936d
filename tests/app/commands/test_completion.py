import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from tests.app.command import paceline


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*cli.COMMANDS, "temperature", "conversation", "continue"):
        assert word in script


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("paceline mo", {"models"}),
        ("paceline ask --conv", {"--conversation"}),
        ("paceline ask --cont", {"--continue"}),
        ("paceline models pu", {"pull"}),
        ("paceline ask --rule ", {"rejection", "coupled"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["completion", "bash"]) == 0
    words = typed.split(" ")
    asked = f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _paceline"
    show = 'printf "%s\\n" "${COMPREPLY[@]}"'
    script = f"{capsys.readouterr().out}\n{asked}\n{show}"
    said = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
    assert {line.strip() for line in said.stdout.splitlines()} == offered


def test_it_is_installed_where_the_shell_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for _ in range(2):
        assert cli.run(["completion", "bash", "--install"]) == 0
        path, _, told = capsys.readouterr().out.partition(": ")
        assert told == "open a new terminal to have it\n"
    assert "_paceline" in Path(path).read_text()
    assert Path(path).is_relative_to(tmp_path)
    assert (tmp_path / ".bashrc").read_text().count(path) == 2  # one line that names it twice


def test_a_shell_that_is_not_known_is_wrong_usage(tmp_path: Path) -> None:
    said = paceline(tmp_path, "completion", "tcsh")
    assert said.code == 2
    assert "bash" in said.errors
