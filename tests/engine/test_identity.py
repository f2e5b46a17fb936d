"""A model's identity: its content's, wherever it lies and whenever it was written."""

import shutil
from pathlib import Path

import pytest

from engine.identity import file_identity


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    for part in (1, 2):
        (folder / f"model-{part}.safetensors").write_bytes(bytes([part]) * 3000)
    return folder


def test_a_copy_is_the_same_and_another_file_is_not(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_bytes(bytes(5000))
    other.write_bytes(bytes(4999) + b"\1")
    assert file_identity(Path(shutil.copy(one, tmp_path / "c"))) == file_identity(one)
    assert file_identity(one) != file_identity(other)


def test_a_checkpoint_is_its_configuration_and_its_weights(checkpoint: Path, tmp_path: Path) -> None:
    before = file_identity(checkpoint)
    copy = Path(shutil.copytree(checkpoint, tmp_path / "copy"))
    (copy / "README.md").write_text("about it")
    assert file_identity(copy) == before


@pytest.mark.parametrize("name", ["config.json", "model-1.safetensors", "model-3.safetensors"])
def test_what_changes_a_checkpoint_changes_its_identity(checkpoint: Path, name: str) -> None:
    before = file_identity(checkpoint)
    (checkpoint / name).write_bytes(b"other")
    assert file_identity(checkpoint) != before


def test_weights_under_other_names_are_another_checkpoint(checkpoint: Path) -> None:
    before = file_identity(checkpoint)
    (checkpoint / "model-1.safetensors").rename(checkpoint / "x")
    (checkpoint / "model-2.safetensors").rename(checkpoint / "model-1.safetensors")
    (checkpoint / "x").rename(checkpoint / "model-2.safetensors")
    assert file_identity(checkpoint) != before


def test_what_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(OSError, match="No such file"):
            file_identity(path)
