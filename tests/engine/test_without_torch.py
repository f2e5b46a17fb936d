"""Without the extra nothing of it is imported, and whoever asks for it is told how to get it."""

import json
import subprocess
import sys

import pytest

from engine.client import environment
from tests.tiny_gguf import Tiny, write_llama

SCRIPT = """
import json, sys
from contextlib import redirect_stderr
from importlib.abc import MetaPathFinder
from io import StringIO
from pathlib import Path

ABSENT = {"torch", "transformers", "tokenizers", "safetensors", "bitsandbytes", "accelerate"}
asked = []

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            asked.append(name)
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Absent())

import app.cli
from engine.config import EngineConfig, Message, Request
from engine.engine import Engine
from engine.events import Finished
from engine.torch_probe import probe_torch

folder = Path(sys.argv[1])
app.cli.build()
engine = Engine.load(EngineConfig(target=folder / "t.gguf", draft=folder / "d.gguf", n_ctx=256, threads=1))
*_, last = engine.answer(Request(messages=(Message(role="user", content="hi"),), max_tokens=8))
answered = isinstance(last, Finished) and last.answer.draft == "d"
before = list(asked)

alone = Engine.load(EngineConfig(target=folder / "t.gguf", draft=folder / "d.gguf", draft_backend="torch", threads=1))

def said(*arguments):
    with redirect_stderr(StringIO()) as errors:
        return app.cli.run(arguments), errors.getvalue()

target = ["--target", str(folder / "t.gguf")]
print(json.dumps({
    "answered": answered,
    "asked": before,
    "target": said("ask", "hi", *target, "--engine", "torch"),
    "folder": said("ask", "hi", "--target", str(folder / "checkpoint")),
    "notes": alone.loaded.notes,
    "missing": probe_torch().missing,
}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("models")
    write_llama(folder / "t.gguf")
    write_llama(folder / "d.gguf", Tiny(blur=0.1))
    (folder / "checkpoint").mkdir()
    shape = {"vocab_size": 9, "num_hidden_layers": 1, "hidden_size": 8}
    (folder / "checkpoint" / "config.json").write_text(json.dumps(shape))
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(folder)],
        capture_output=True,
        env={**environment(), "PACELINE_HOME": str(folder / "home")},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_llamacpp_answers_without_any_of_it(said: dict[str, object]) -> None:
    assert said["answered"] is True
    assert said["asked"] == []


ADVICE = (
    "the torch engine is not installed (there is no torch): run `pip install 'paceline[torch]'`, "
    "or take a GGUF file and --engine llamacpp"
)


@pytest.mark.parametrize("asks", ["target", "folder"])
def test_whoever_asks_for_torch_is_told_how_to_install_it(said: dict[str, object], asks: str) -> None:
    assert said[asks] == [1, f"paceline: {ADVICE}\n"]


def test_a_draft_that_needs_it_is_left_out_with_the_reason(said: dict[str, object]) -> None:
    assert f"the draft model is not used: {ADVICE}" in said["notes"]  # type: ignore[operator]


def test_doctor_names_what_is_missing(said: dict[str, object]) -> None:
    assert said["missing"] == "torch"
