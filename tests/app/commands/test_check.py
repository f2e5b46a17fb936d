"""`paceline models check`: sizes, memory and the verdict on stdout; the exit code says whether the pair fits."""

from pathlib import Path

import pytest

from tests import tiny_torch
from tests.app.command import paceline
from tests.tiny_gguf import Tiny, write_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_llama(folder / "target.gguf", Tiny(merges=("Ġ Ġ", "Ġ t", "h e", "Ġt he")))
    write_llama(folder / "other.gguf", Tiny(seed=1))
    return folder


def check(folder: Path, target: str, draft: str) -> tuple[int, list[str], str]:
    said = paceline(folder / "home", "models", "check", target, draft)
    return said.code, said.out.splitlines(), said.errors


def test_a_pair_that_fits_by_a_map_is_described(folder: Path) -> None:
    code, lines, errors = check(folder, str(folder / "target.gguf"), str(folder / "other.gguf"))
    assert (code, errors) == (0, "")
    assert lines[0].startswith("target  target (")
    assert lines[0].endswith(" kB, 263 tokens)")
    assert lines[1].startswith("draft   other (")
    assert " for both with 4,096 tokens of context; " in lines[2]
    assert lines[3].startswith("fits by a map: ")
    assert lines[3].endswith("the first difference: token 256 is '  ' in the target and ' t' in the draft")
    assert len(lines) == 4


def test_a_checkpoint_is_described_as_a_file_is(folder: Path) -> None:
    tiny_torch.write_llama(folder / "checkpoint")
    code, lines, errors = check(folder, str(folder / "checkpoint"), str(folder / "other.gguf"))
    assert (code, errors) == (0, "")
    assert lines[0].startswith("target  checkpoint (")
    assert " for both with 4,096 tokens of context; " in lines[2]
    assert lines[3] == "fits: each token means the same in both"


def test_a_model_that_is_not_there_is_one_line(folder: Path) -> None:
    code, lines, errors = check(folder, str(folder / "target.gguf"), "none")
    assert (code, lines) == (1, [])
    assert errors.startswith("paceline: there is no model 'none'")


@pytest.mark.parametrize(("fit", "code", "word"), [("equal", 0, "fits: so"), ("none", 1, "does not fit: so")])
def test_the_exit_code_is_the_verdict(
    fit: str, code: int, word: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.commands.check import check
    from engine import check as engine_check

    monkeypatch.setenv("PACELINE_HOME", str(folder / "home"))
    found = engine_check.Check(fit=fit, reason="so", target_tokens=9, draft_tokens=8)  # type: ignore[arg-type]
    monkeypatch.setattr(engine_check, "check", lambda *_: found)
    path = str(folder / "target.gguf")
    assert check(path, path) == code
    assert capsys.readouterr().out.splitlines()[-1] == word
