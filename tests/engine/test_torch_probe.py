"""What doctor says of the torch engine: asked in another process, and whatever happens there is a sentence."""

import os
import sys

import pytest

from engine.engines import TORCH_VERSIONS
from engine.torch_probe import probe_torch


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_versions_and_the_device_are_told() -> None:
    found = probe_torch(program("print(); print('a GPU')"))
    assert (found.missing, found.fault, found.device) == (None, None, "a GPU")
    assert list(found.versions) == list(TORCH_VERSIONS)
    assert found.line.startswith(f"runs on a GPU; torch {found.versions['torch']}, transformers ")


@pytest.mark.parametrize(
    ("does", "part"),
    [
        pytest.param("os.abort()", "SIGABRT", marks=pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")),
        ("raise ImportError('libcudart is missing')", "libcudart is missing"),
        ("print('cpu', flush=True); os._exit(3)", "exit code 3"),
        ("pass", "no word why"),
    ],
)
def test_what_cannot_be_imported_is_a_sentence(does: str, part: str) -> None:
    found = probe_torch(program(f"import os; {does}"))
    assert found.device is None
    assert part in (found.fault or "")
    assert (found.fault or "").endswith("install it again")
    assert "\n" not in found.line


def test_a_program_that_is_not_there_is_a_sentence() -> None:
    assert "cannot be tried" in (probe_torch(["/nowhere/python"]).fault or "")
