"""Two files are compared in another process: whatever happens there is a verdict or one sentence."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from engine.check import check
from engine.errors import LoadFailed
from tests import tiny_torch
from tests.tiny_gguf import Tiny, write_gemma, write_llama, write_mamba


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_llama(folder / "target.gguf")
    write_llama(folder / "padded.gguf", Tiny(seed=1, padding=9))
    write_mamba(folder / "mamba.gguf")
    write_llama(folder / "other.gguf", Tiny(extra=("other",)))
    write_gemma(folder / "gemma.gguf")
    tiny_torch.write_llama(folder / "checkpoint", tiny_torch.Tiny(padding=9))
    tiny_torch.write_gemma3(folder / "gemma")
    for name, config in (("empty", "{}"), ("odd", '{"vocab_size": "many"}'), ("small", '{"vocab_size": 9}')):
        shutil.copytree(folder / "checkpoint", folder / name)
        (folder / name / "config.json").write_text(config)
    (folder / "broken.gguf").write_bytes((folder / "target.gguf").read_bytes()[:5000])
    return folder


@pytest.mark.parametrize("draft", ["target", "padded", "mamba"])
def test_equal_tokens_fit_whatever_the_model_and_its_padding(folder: Path, draft: str) -> None:
    found = check(folder / "target.gguf", folder / f"{draft}.gguf")
    assert (found.fit, found.reason) == ("equal", "each token means the same in both")
    assert found.target_tokens == found.draft_tokens


def test_other_tokens_fit_by_a_map_and_the_first_difference_is_named(folder: Path) -> None:
    found = check(folder / "target.gguf", folder / "other.gguf")
    assert (found.fit, found.draft_tokens) == ("map", found.target_tokens + 1)
    assert found.reason.startswith("100% of the tokens that the target makes of a sample text are shared")
    assert found.reason.endswith(
        "token 271 is the control token '<|endoftext|>' in the target and 'other' in the draft"
    )
    assert check(folder / "gemma.gguf", folder / "target.gguf").fit == "map"


def test_checkpoints_and_mixed_pairs_are_compared_too(folder: Path) -> None:
    for pair in (("checkpoint", "target.gguf"), ("target.gguf", "checkpoint")):
        found = check(*(folder / name for name in pair))
        assert (found.fit, found.target_tokens) == ("equal", found.draft_tokens), found.reason
    assert check(folder / "gemma", folder / "checkpoint").fit == "map"


@pytest.mark.parametrize(
    ("name", "part"), [("empty", "size of its vocabulary"), ("odd", "size of its vocabulary"), ("small", "its model 9")]
)
def test_a_checkpoint_whose_vocabulary_cannot_be_read_is_named(folder: Path, name: str, part: str) -> None:
    with pytest.raises(LoadFailed, match=f"{name}.*{part}.*again"):
        check(folder / "target.gguf", folder / name)


@pytest.mark.parametrize("pair", [("broken", "target"), ("target", "broken"), ("none", "target")])
def test_a_file_that_cannot_be_read_is_named(folder: Path, pair: tuple[str, str]) -> None:
    with pytest.raises(LoadFailed, match=f"{next(name for name in pair if name != 'target')}.gguf is not"):
        check(folder / f"{pair[0]}.gguf", folder / f"{pair[1]}.gguf")


@pytest.mark.parametrize(
    ("does", "part"),
    [
        pytest.param("os.abort()", "SIGABRT", marks=pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")),
        ("sys.exit(3)", "exit code 3"),
        ("pass", "makes no sense"),
        ("print([])", "makes no sense"),
    ],
)
def test_a_process_that_dies_or_talks_nonsense_is_a_sentence(does: str, part: str) -> None:
    with pytest.raises(LoadFailed, match=part) as raised:
        check(Path("a"), Path("b"), [sys.executable, "-c", f"import os, sys; {does}"])
    assert "\n" not in str(raised.value)
