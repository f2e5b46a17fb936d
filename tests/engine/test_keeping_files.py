"""Caches of real backends, kept by one engine and taken up by another that opened the same files."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.config import EngineConfig, Sampling
from engine.engine import Engine
from engine.mapped import MappedModel
from engine.stats import Answer
from tests import tiny_gguf, tiny_torch
from tests.fakes import fixed, last, request

PROMPT = [7 * at % 200 for at in range(40)]
Config = Callable[..., EngineConfig]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_gguf.write_llama(folder / "llama.gguf", tiny_gguf.Tiny(merges=tiny_gguf.WORDS))
    tiny_gguf.write_llama(folder / "draft.gguf", tiny_gguf.Tiny(merges=tiny_gguf.WORDS, blur=0.1))
    tiny_gguf.write_llama(folder / "other.gguf", tiny_gguf.Tiny(merges=tiny_gguf.WORDS[:-3], extra=("Q Q",), blur=0.1))
    tiny_gguf.write_gemma(folder / "gemma.gguf")
    tiny_gguf.write_mamba(folder / "mamba.gguf")
    tiny_gguf.write_qwen35(folder / "qwen35.gguf")
    tiny_torch.write_llama(folder / "llama")
    tiny_torch.write_llama(folder / "draft", tiny_torch.Tiny(blur=0.1))
    tiny_torch.write_mamba(folder / "mamba")
    return folder


@pytest.fixture(scope="module")
def config(models: Path) -> Config:
    def make(target: str, draft: str | None = None, **options: object) -> EngineConfig:
        more = {"n_ctx": 256, "threads": 1, "calibrate": "idle", "cache_dir": models / "measured", **options}
        if not target.endswith(".gguf"):
            more["weights"] = "fp32"
        return EngineConfig(target=models / target, draft=models / draft if draft else None, **more)  # type: ignore[arg-type]

    return make


def say(engine: Engine, prompt: list[int], length: int = 3) -> Answer:
    return last(engine.answer_ids(prompt, request(Sampling(temperature=0), fixed(length), 12)))


def followed(engine: Engine) -> tuple[list[int], Answer]:
    """What it goes on with, on a prompt behind what it holds."""
    prompt = [*engine.context.ids, 9, 8, 7]
    return prompt, say(engine, prompt)


@pytest.mark.parametrize(
    ("target", "draft", "options"),
    [
        ("llama.gguf", "draft.gguf", {}),
        ("llama.gguf", "draft.gguf", {"kv": "q8_0"}),
        ("llama.gguf", "other.gguf", {}),
        ("llama.gguf", None, {"exact": "strict"}),
        ("gemma.gguf", None, {}),
        ("mamba.gguf", None, {}),
        ("qwen35.gguf", None, {}),
        ("llama", "draft", {}),
        ("llama", "draft.gguf", {}),
        ("mamba", None, {}),
    ],
)
def test_another_process_goes_on_where_this_one_was(
    config: Config, tmp_path: Path, target: str, draft: str | None, options: dict[str, object]
) -> None:
    asked = config(target, draft, **options)
    with closing(Engine.load(asked)) as old:
        say(old, PROMPT)
        held = [cache.length for cache in old.context.caches]
        assert old.keep(tmp_path).reason == ""
        mapped = isinstance(old.pair.draft, MappedModel)
        prompt, answer = followed(old)
    assert mapped or draft != "other.gguf"
    with closing(Engine.load(asked)) as new:
        found = new.resume(tmp_path)
        assert found.reason == ""
        assert [found.target, *([] if found.draft is None else [found.draft])] == held
        again = say(new, prompt)
    assert (again.ids, again.cache, again.verdict) == (answer.ids, answer.cache, answer.verdict)
    assert again.cache.target.reused >= len(PROMPT)


@pytest.mark.parametrize(
    ("target", "other"), [("llama.gguf", {"kv": "q8_0"}), ("llama.gguf", {"flash_attention": "off"})]
)
def test_a_cache_of_another_setting_is_read_again(
    config: Config, tmp_path: Path, target: str, other: dict[str, object]
) -> None:
    with closing(Engine.load(config(target, flash_attention="on"))) as old:
        say(old, PROMPT)
        old.keep(tmp_path)
    with closing(Engine.load(config(target, **{"flash_attention": "on", **other}))) as new:
        found = new.resume(tmp_path)
        assert found.target == 0
        assert f"{next(iter(other)).replace('kv', 'cache type').replace('_', ' ')} " in found.reason
        assert say(new, PROMPT).cache.target.reused == 0


@pytest.mark.parametrize(("target", "draft"), [("llama.gguf", "other.gguf"), ("llama", "draft")])
def test_no_damage_reaches_a_backend(config: Config, tmp_path: Path, target: str, draft: str) -> None:
    """llama.cpp would end the process, or go on with what is wrong."""
    with closing(Engine.load(config(target, draft))) as engine:
        say(engine, PROMPT)
        engine.keep(tmp_path)
        for path in tmp_path.glob("*.cache"):
            role, whole = path.name.partition("-")[0], path.read_bytes()
            for place in {0, 20, 300, 5000, len(whole) // 2, len(whole) - 9, len(whole) - 60, len(whole) - 1}:
                at = min(place, len(whole) - 1)
                for content in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[:at]):
                    path.write_bytes(content)
                    found = engine.resume(tmp_path)
                    assert getattr(found, role) == 0
                    assert "read again" in found.reason
            path.write_bytes(whole)
        assert engine.resume(tmp_path).reason == ""


@pytest.mark.parametrize("draft", ["draft.gguf", "other.gguf"])
def test_llama_cpp_knows_what_a_cache_takes_before_it_is_written(config: Config, tmp_path: Path, draft: str) -> None:
    with closing(Engine.load(config("llama.gguf", draft))) as engine:
        say(engine, PROMPT)
        taken = engine.keep(tmp_path / "one").bytes
        told = [cache.model.saved_size() for cache in engine.context.caches]  # type: ignore[attr-defined]
        assert 0.9 * taken < sum(told) < taken
        assert f"may take {max(told):,}" in engine.keep(tmp_path / "two", max(told)).reason
        assert not (tmp_path / "two").exists()
        assert engine.keep(tmp_path / "two", taken).reason == ""
