import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

import engine
from engine.client import environment
from engine.probe import Probe, probe


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_the_library_is_asked_in_another_process() -> None:
    found = probe()
    assert found.fault is None
    assert found.version is not None
    assert found.version.startswith("llama-cpp-python ")
    assert found.offload_reason


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("signal", "part"),
    [("SIGILL", "instructions that this CPU lacks (SIGILL)"), ("SIGSEGV", "cannot be imported (SIG")],
)
def test_a_library_that_kills_the_process_is_a_sentence(signal: str, part: str) -> None:
    found = probe(program(f"import os, signal; os.kill(os.getpid(), signal.{signal})"))
    assert found.fault is not None
    assert part in found.fault
    assert "install it again" in found.fault
    assert "\n" not in found.fault


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_advice_to_build_the_library_keeps_its_version() -> None:
    fault = probe(program("import os, signal; os.kill(os.getpid(), signal.SIGILL)")).fault or ""
    assert fault.endswith(f" llama-cpp-python=={metadata.version('llama-cpp-python')}")
    for option in ("CMAKE_ARGS=", "--no-cache-dir", "--force-reinstall", "--no-deps"):
        assert option in fault


def test_no_folder_of_the_users_is_on_the_path_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/users/own", "."]))
    assert environment().get("PYTHONPATH", "") in ("", str(Path(engine.__file__).resolve().parents[1]))


def test_a_library_that_cannot_be_imported_says_why() -> None:
    found = probe(program("import no_such_library"))
    assert found.fault is not None
    assert "No module named 'no_such_library'" in found.fault
    assert "Traceback" not in found.fault


@pytest.mark.parametrize("text", ["", "print('hello')", "print('[]')", "print('{\"bogus\": 1}')"])
def test_nonsense_is_a_fault(text: str) -> None:
    assert probe(program(text)).fault is not None


def test_chatter_before_the_answer_is_passed_over() -> None:
    text = 'import os; os.write(1, b\'native chatter\'); print(\'\\n{"version": "1", "features": ["AVX"]}\')'
    assert probe(program(text)) == Probe(version="1", features=["AVX"])


def test_a_python_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    found = probe([os.fspath(tmp_path / "python")])
    assert found.fault is not None
    assert "cannot be tried" in found.fault
