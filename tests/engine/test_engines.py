"""Which engine runs what, and which settings are refused before anything is loaded."""

from pathlib import Path

import pytest

from engine.config import Backend, EngineConfig
from engine.engines import Engines, engine_for, engines_for
from engine.errors import ConfigError, EngineError, LoadFailed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return path


@pytest.mark.parametrize(("asked", "runs"), [("auto", "llamacpp"), ("llamacpp", "llamacpp"), ("torch", "torch")])
def test_a_file_runs_on_either_engine(file: Path, asked: Backend, runs: str) -> None:
    assert engine_for(file, asked) == runs
    assert engine_for(file.with_name("not there"), asked) == runs


def test_a_folder_runs_on_torch_alone(tmp_path: Path) -> None:
    assert engine_for(tmp_path) == engine_for(tmp_path, "torch") == "torch"
    with pytest.raises(LoadFailed, match=r"take --engine torch .* or give a \.gguf file"):
        engine_for(tmp_path, "llamacpp")


@pytest.mark.parametrize(
    ("options", "engines"),
    [
        ({}, Engines("llamacpp", "llamacpp")),
        ({"backend": "torch"}, Engines("torch", "llamacpp")),
        ({"backend": "torch", "draft_backend": "torch"}, Engines("torch", "torch")),
        ({"draft_backend": "torch"}, Engines("llamacpp", "torch")),
        ({"draft": None}, Engines("llamacpp")),
    ],
)
def test_the_draft_goes_by_its_own_type(file: Path, options: dict[str, object], engines: Engines) -> None:
    assert engines_for(EngineConfig(**{"target": file, "draft": file, **options})) == engines  # type: ignore[arg-type]


def test_a_folder_and_a_file_are_a_mixed_pair(file: Path, tmp_path: Path) -> None:
    assert engines_for(EngineConfig(target=tmp_path, draft=file)) == Engines("torch", "llamacpp")
    assert engines_for(EngineConfig(target=file, draft=tmp_path)) == Engines("llamacpp", "torch")


TORCH_REFUSES = [
    ({"kv": "q8_0"}, "not q8_0: leave --kv out, or take --engine llamacpp"),
    ({"kv": "q4_0"}, "not q4_0"),
    ({"kv": "f16"}, "not f16"),
    ({"gpu_layers": 7}, "take --gpu-layers -1 or 0, not 7"),
]
LLAMACPP_REFUSES = [
    ({"weights": "nf4"}, "leave --weights out, or take --engine torch"),
    ({"weights": "bf16"}, "leave --weights out"),
    ({"exit_layers": 0}, "leave --exit-layers out, or take --engine torch"),
    ({"exit_layers": 4}, "leave --exit-layers out"),
]


@pytest.mark.parametrize(
    ("backend", "options", "part"),
    [*(("torch", *case) for case in TORCH_REFUSES), *(("llamacpp", *case) for case in LLAMACPP_REFUSES)],
)
def test_what_an_engine_does_not_take_is_said_and_the_other_takes_it(
    file: Path, backend: Backend, options: dict[str, object], part: str
) -> None:
    with pytest.raises(ConfigError, match=part) as raised:
        engines_for(EngineConfig(target=file, backend=backend, **options))  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)
    other: Backend = "torch" if backend == "llamacpp" else "llamacpp"
    assert engines_for(EngineConfig(target=file, backend=other, **options)).target == other  # type: ignore[arg-type]


def test_weights_may_be_meant_for_a_draft_on_torch(file: Path, tmp_path: Path) -> None:
    assert engines_for(EngineConfig(target=file, draft=tmp_path, weights="nf4")).draft == "torch"


@pytest.mark.parametrize("options", [{"exit_layers": -1}, {"draft_backend": "demo"}])
def test_settings_out_of_range_are_no_config(options: dict[str, object]) -> None:
    with pytest.raises(EngineError):
        EngineConfig(target=Path("x"), **options)  # type: ignore[arg-type]
