"""`paceline models`: what each command prints where, and that what goes wrong leaves as one error."""

import json
import os
import sys
from pathlib import Path

import psutil
import pytest

from app import listing
from app.commands import models as command
from app.commands.models import app, model_rows, pair_rows, pull_into
from app.paths import models_dir
from models import Library, ModelsError
from models.errors import NotInstalled, UnknownModel, WrongHash
from tests.models.tinygguf import tiny
from tests.models.wheelhouse import House, Watch, house


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PACELINE_OFFLINE", "1")
    return tmp_path / "home"


def run(*words: str) -> None:
    app([*words], result_action="return_value", exit_on_error=False, print_error=False)


def mine(tmp_path: Path, name: str = "Mine.gguf") -> Path:
    path = tmp_path / name
    path.write_bytes(tiny("zebra"))
    return path


def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.delenv("PACELINE_OFFLINE")
    return house(tmp_path)


def test_list_shows_pairs_and_models_with_size_licence_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    run("list")
    out, error = capsys.readouterr()
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ")}
    assert list(rows)[:2] == ["coder", "tiny"]
    assert "1.61 GB" in rows["coder"]
    assert "Apache-2.0" in rows["smollm2-135m-q4_1"]
    assert all("not installed" in line for line in rows.values())
    assert "paceline models pull coder" in out
    assert error == ""
    assert not models_dir().exists()


def test_list_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("add", str(mine(tmp_path)))
    capsys.readouterr()
    run("list", "--json")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    listed = json.loads(out)
    assert [model["id"] for model in listed["models"]][-1] == "mine"
    assert {model["state"] for model in listed["models"]} == {"not installed", "added"}
    assert listed["models"][-1]["path"] == str(tmp_path / "Mine.gguf")
    assert [pair["installed"] for pair in listed["pairs"]] == [False, False]
    assert all(pair["memory_bytes"] > pair["bytes"] for pair in listed["pairs"])


def test_add_then_verify_then_rm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mine(tmp_path)
    run("add", str(path))
    assert capsys.readouterr().out == f"mine is {path} ({path.stat().st_size / 1000:.2f} kB)\n"
    run("verify")
    assert capsys.readouterr().out.startswith("mine is right: sha256 ")
    run("rm", "mine")
    assert capsys.readouterr().out == "mine is forgotten; its file stays\n"
    assert path.exists()


def test_a_file_that_is_gone_is_listed_and_can_be_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mine(tmp_path)
    run("add", str(path))
    path.unlink()
    run("list")
    assert "gone" in capsys.readouterr().out
    run("rm", "mine")
    run("list")
    assert "gone" not in capsys.readouterr().out


def test_a_name_with_escape_codes_is_shown_without_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("add", str(mine(tmp_path, "a\x1b[2Jb\n.gguf")))
    run("list")
    out = capsys.readouterr().out
    assert all(line.isprintable() for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (("pull", "codr"), UnknownModel, "perhaps coder"),
        (("pull", "tiny"), ModelsError, "PACELINE_OFFLINE"),
        (("verify",), NotInstalled, "paceline models pull coder"),
        (("verify", "tiny"), NotInstalled, "paceline models pull tiny"),
        (("verify", "codr"), UnknownModel, "perhaps coder"),
        (("rm", "coder"), NotInstalled, "nothing to remove"),
        (("rm", "../../x"), UnknownModel, "cannot be the id"),
        (("add", "nowhere.gguf"), NotInstalled, "not there"),
    ],
)
def test_what_goes_wrong_is_one_line_that_says_what_to_do(
    words: tuple[str, ...], error: type[ModelsError], text: str
) -> None:
    with pytest.raises(error, match=text) as raised:
        run(*words)
    assert str(raised.value).isprintable()


def test_pull_reports_on_stderr_and_ends_on_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = toy(tmp_path, monkeypatch)
    pull_into(made.library, "duo", made.pip)
    out, error = capsys.readouterr()
    assert out.startswith("duo is ready (")
    assert out.count("\n") == 1
    assert "downloading toy" in error
    assert "100 %" in error


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be sent an interrupt alone there")
def test_an_interrupted_pull_says_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = toy(tmp_path, monkeypatch)
    made.behave(part_2=["interrupt"])
    with pytest.raises(KeyboardInterrupt):
        pull_into(made.library, "toy", made.pip)
    assert capsys.readouterr().err.endswith(
        "paceline: interrupted: finished parts are kept, run it again to go on from there\n"
    )
    assert not any(psutil.pid_exists(pid) for pid in made.pids())
    rows = {row.id: row for row in model_rows(made.library)}
    assert rows["toy"].state == "partly fetched"
    assert rows["toy"].fetched_bytes == made.entry.source.parts[0].bytes
    pull_into(made.library, "toy", made.pip)
    assert made.calls().count("part-1") == 1
    assert pair_rows(made.library)[0].installed


def test_a_damaged_file_is_listed_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = toy(tmp_path, monkeypatch)
    pull_into(made.library, "toy", made.pip)
    made.library.file("toy").write_bytes(b"GGUF")
    assert [row.state for row in model_rows(made.library)] == ["damaged"]


def test_verify_goes_through_all_and_then_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.gguf", "b.gguf"):
        run("add", str(mine(tmp_path, name)))
    run("verify")
    (tmp_path / "a.gguf").write_bytes(tiny("zebra")[:-1] + b"?")
    capsys.readouterr()
    with pytest.raises(WrongHash, match="a are not the right ones"):
        run("verify")
    assert capsys.readouterr().out.startswith("b is right")


def test_verify_tells_all_that_is_wrong_in_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.gguf", "b.gguf"):
        run("add", str(mine(tmp_path, name)))
    run("verify")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(tiny("zebra")[:-1] + b"?")
    capsys.readouterr()
    with pytest.raises(ModelsError, match=r"a are not the right ones.*; .*b are not the right ones") as caught:
        run("verify")
    assert "\n" not in str(caught.value)
    assert "not the right ones" not in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_a_home_that_is_no_text_can_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PACELINE_HOME", os.fsdecode(os.fsencode(tmp_path) + b"/h\xff"))
    made = toy(tmp_path, monkeypatch)
    library = Library(models_dir(), made.library.catalogue)
    pull_into(library, "toy", made.pip)
    monkeypatch.setattr(command, "Library", lambda _root: library)
    capsys.readouterr()
    run("list", "--json")
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert "h\N{REPLACEMENT CHARACTER}" in row["path"]
    gone = listing._lost_row("x", Path(os.fsdecode(b"/\xff")))
    assert gone.title == "/\N{REPLACEMENT CHARACTER}"


def test_watch_is_not_needed_for_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = toy(tmp_path, monkeypatch)
    pull_into(made.library, "toy", made.pip)
    watch = Watch()
    assert made.library.add(made.library.file("toy"), watch).id == "toy"
