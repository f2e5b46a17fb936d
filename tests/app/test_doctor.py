import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

from app import choice, paths
from app.commands import doctor
from app.settings import Settings
from engine.probe import Probe
from engine.torch_probe import TorchProbe
from models.files import make_private
from models.library import Library
from tests.app.command import paceline

WELL = Probe(version="llama-cpp-python 1.2 (llama.cpp 3)", features=["AVX"], offload=False, offload_reason="no GPU")
NO_TORCH = TorchProbe(missing="torch")
TORCH = TorchProbe(versions={"torch": "2.0+cpu", "transformers": "5.0"}, device="cpu")
ILL = Probe(fault="llama-cpp-python is broken: install it again")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the default pair were there."""

    def choose(settings: Settings, library: Library) -> choice.Choice:
        return choice.Choice(settings.engine_config(Path("x")), "coder")

    monkeypatch.setattr(choice, "choose", choose)


def test_an_empty_machine_is_told_what_to_fetch() -> None:
    report = doctor.examine(WELL, NO_TORCH)
    assert not report.ready
    assert "paceline models pull coder" in report.advice[0]
    assert (report.models, report.pairs) == ([], [])


@pytest.mark.usefixtures("installed")
def test_a_machine_that_is_ready_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = doctor.examine(WELL, NO_TORCH)
    assert report.ready
    assert report.advice == []
    assert doctor.lines(report)[-1] == "a chat can start: paceline"
    monkeypatch.setattr(doctor, "probe", lambda: WELL)
    monkeypatch.setattr(doctor, "probe_torch", lambda: NO_TORCH)
    assert doctor.doctor() == 0


@pytest.mark.usefixtures("installed")
def test_a_broken_library_is_a_sentence_and_the_rest_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    report = doctor.examine(ILL, NO_TORCH)
    assert not report.ready
    assert report.advice == [ILL.fault]
    assert "does not work" in report.versions["llama-cpp-python"]
    assert doctor.lines(report)[-1] == f"to do: {ILL.fault}"


@pytest.mark.parametrize(
    ("torch", "line"),
    [
        (NO_TORCH, "not installed (there is no torch); for checkpoints: pip install 'paceline[torch]'"),
        (TORCH, "runs on cpu; torch 2.0+cpu, transformers 5.0"),
        (TorchProbe(versions={"torch": "2.0"}, fault="torch is broken: install it again"), "torch is broken: install"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_the_torch_engine_is_told_and_nobody_needs_it(torch: TorchProbe, line: str) -> None:
    report = doctor.examine(WELL, torch)
    assert report.ready
    assert (
        next(row for row in doctor.lines(report) if row.startswith("torch engine"))
        .split(maxsplit=2)[2]
        .startswith(line)
    )


@pytest.mark.usefixtures("installed")
def test_a_bad_settings_file_is_to_be_mended() -> None:
    make_private(paths.config_dir()).joinpath("config.toml").write_text("bogus = 1")
    assert "bogus" in doctor.examine(WELL, NO_TORCH).advice[0]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_folders_that_others_can_read_are_noted() -> None:
    make_private(paths.data_dir())
    assert doctor.examine(WELL, NO_TORCH).notes == []
    paths.data_dir().chmod(0o755)
    report = doctor.examine(WELL, NO_TORCH)
    assert report.notes == [f"others can read {paths.data_dir()}: chmod 700 it"]
    assert {folder.name: folder.mode for folder in report.folders}["data"] == "drwxr-xr-x"


def test_nothing_is_made_by_looking(home: Path) -> None:
    doctor.examine(WELL, NO_TORCH)
    assert not home.exists()


def test_the_figures_make_sense() -> None:
    report = doctor.examine(WELL, NO_TORCH)
    assert 1 <= report.threads <= report.cores
    assert 0 < report.memory_available <= report.memory_total
    assert report.versions["python"].startswith("3.")
    assert report.cpu
    assert "physical cores" in report.threads_reason


def test_lines_hold_no_control_characters() -> None:
    hostile = Probe(version="1\x1b[2J", offload_reason="\x9b31m", fault="\x07")
    broken = TorchProbe(versions={"torch": "\x1b[2J"}, fault="\x9b31m")
    text = "\n".join(doctor.lines(doctor.examine(hostile, broken)))
    assert not {"\x1b", "\x9b", "\x07"} & set(text)


def test_the_command_prints_json_that_is_the_report(home: Path) -> None:
    said = paceline(home, "doctor", "--json")
    assert (said.code, said.errors) == (1, "")
    report = msgspec.json.decode(said.out, type=doctor.Report)
    assert report.versions["paceline"] == paceline(home, "--version").out.strip()
    assert json.loads(said.out)["ready"] is False


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
@pytest.mark.parametrize("setting", ["bogus = 1", ""])
def test_a_home_that_is_no_text_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("PACELINE_HOME", os.fsdecode(os.fsencode(tmp_path) + b"/h\xff"))
    make_private(paths.config_dir()).joinpath("config.toml").write_text(setting)
    paths.config_dir().chmod(0o755)
    report = doctor.examine(WELL, NO_TORCH)
    told = json.loads(msgspec.json.encode(report))
    assert all("/h\N{REPLACEMENT CHARACTER}" in folder["path"] for folder in told["folders"])
    assert told["notes"]
    "\n".join(doctor.lines(report)).encode()


def test_the_command_is_for_people_too(home: Path) -> None:
    said = paceline(home, "doctor")
    assert said.code == 1
    assert said.out.splitlines()[-1].startswith("to do: ")
