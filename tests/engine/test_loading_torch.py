"""From a config to a pair on torch, on tiny random checkpoints and files: the same way as on llama.cpp."""

import re
from pathlib import Path

import pytest

from engine.backends.transformers import TorchModel
from engine.config import EngineConfig, Sampling
from engine.engine import Engine
from engine.errors import ConfigError, LoadFailed, PairMismatch
from engine.events import Loading
from tests import tiny_gguf, tiny_torch
from tests.fakes import fixed, last, request

PROMPT = [1, 2, 3, 4, 5]
GREEDY = Sampling(temperature=0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target whose name has dots, drafts of its vocabulary as folder and as file, and a pair that does not fit."""
    folder = tmp_path_factory.mktemp("models")
    tiny_torch.write_llama(folder / "target-1.5b")
    tiny_torch.write_llama(folder / "draft", tiny_torch.Tiny(blur=0.1))
    tiny_torch.write_llama(folder / "letters", tiny_torch.Tiny(merges=("~ ~",)))
    tiny_torch.write_llama(folder / "words", tiny_torch.Tiny(merges=tiny_gguf.WORDS))
    tiny_gguf.write_llama(folder / "file.gguf")
    return folder


def config(target: Path, draft: Path | None = None, **options: object) -> EngineConfig:
    more = {"weights": "fp32", "require_draft": draft is not None, **options}
    return EngineConfig(target=target, draft=draft, n_ctx=256, threads=1, **more)  # type: ignore[arg-type]


def test_a_pair_of_checkpoints_drafts_and_says_how_it_runs(models: Path) -> None:
    engine = Engine.load(config(models / "target-1.5b", models / "draft"))
    answer = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(3))))
    assert (answer.target, answer.draft) == ("target-1.5b", "draft")
    assert answer.speculation.by_source["model"].accepted > 0
    settings = answer.settings
    assert (settings.engine, settings.weights, settings.kv, settings.device) == ("torch", "fp32", "f32", "cpu")
    engine.close()


@pytest.fixture(scope="module")
def deep(models: Path) -> Path:
    """A target of more layers."""
    return tiny_torch.write_llama(models / "deep", tiny_torch.Tiny(layers=4, seed=3))


@pytest.mark.parametrize("layers", [1, 3])
def test_the_targets_own_first_layers_draft_and_the_text_stays(deep: Path, layers: int) -> None:
    engine = Engine.load(config(deep, exit_layers=layers))
    assert any(f"after {layers} of 4 layers its choice is" in note for note in engine.loaded.notes)
    answer = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(3), max_tokens=40)))
    assert answer.speculation.by_source["exit"].drafted > 0
    assert answer.cache.target.read == len(PROMPT)
    plain = last(engine.answer_ids([*PROMPT, 6], request(GREEDY, max_tokens=2)))
    assert plain.cache.target.reused == len(PROMPT)
    assert last(engine.answer_ids(PROMPT, request(GREEDY, max_tokens=40))).ids == answer.ids
    engine.close()


def test_an_early_exit_that_cannot_be_is_refused_or_left_out(deep: Path, models: Path) -> None:
    with pytest.raises(ConfigError, match=r"4 layers, so after 4 .*--exit-layers 1 to 3"):
        Engine.load(config(deep, exit_layers=4))
    engine = Engine.load(config(tiny_torch.write_mamba(models / "mamba"), exit_layers=0))
    assert engine.pair.exit_layers is None
    assert any(note.startswith("early exit is not used") for note in engine.loaded.notes)
    engine.close()


def test_strict_exactness_runs_all_layers_in_one_pass(deep: Path) -> None:
    engine = Engine.load(config(deep, exit_layers=2, exact="strict"))
    assert engine.pair.exit_layers is None
    assert any("early exit is not used: in strict" in note for note in engine.loaded.notes)
    engine.close()


def test_a_draft_that_is_the_target_is_always_right(models: Path) -> None:
    engine = Engine.load(config(models / "target-1.5b", models / "target-1.5b"))
    drafts = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(3)))).speculation.by_source["model"]
    assert drafts.accepted == drafts.drafted > 0
    engine.close()


@pytest.mark.parametrize(
    ("target", "draft", "options", "note"),
    [
        ("target-1.5b", "file.gguf", {}, "the draft model runs on llama.cpp, the target on torch"),
        ("file.gguf", "draft", {"weights": "auto"}, "the draft model runs on torch, the target on llama.cpp"),
        ("file.gguf", "file.gguf", {"backend": "torch"}, "the draft model runs on llama.cpp, the target on torch"),
    ],
)
def test_a_mixed_pair_drafts_and_says_so(
    models: Path, target: str, draft: str, options: dict[str, object], note: str
) -> None:
    engine = Engine.load(config(models / target, models / draft, **options))
    assert note in engine.loaded.notes
    answer = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(3))))
    drafts = answer.speculation.by_source["model"]
    assert drafts.drafted > 0
    if target == draft:  # the same weights on two engines
        assert drafts.accepted == drafts.drafted
    engine.close()


def test_a_file_runs_on_both_engines_with_the_same_text(models: Path) -> None:
    texts = []
    for backend in ("llamacpp", "torch"):
        weights = "fp32" if backend == "torch" else "auto"
        engine = Engine.load(config(models / "file.gguf", backend=backend, weights=weights))
        assert isinstance(engine.pair.target, TorchModel) is (backend == "torch")
        texts.append(last(engine.answer_ids(PROMPT, request(GREEDY))).ids)
        engine.close()
    assert texts[0] == texts[1]


def test_a_draft_that_does_not_fit_is_refused_or_left_out_with_the_reason(models: Path) -> None:
    reason = "letters cannot draft for words: only .* the first difference: token 256 is"
    with pytest.raises(PairMismatch, match=reason):
        Engine.load(config(models / "words", models / "letters"))
    engine = Engine.load(config(models / "words", models / "letters", require_draft=False))
    assert engine.loaded.draft is None
    assert any(re.search(reason, note) for note in engine.loaded.notes)
    engine.close()


def test_what_is_measured_is_kept_for_this_engine_alone(models: Path, tmp_path: Path) -> None:
    told: list[Loading] = []
    measured = []
    for options in ({"backend": "llamacpp", "weights": "auto"}, {"backend": "torch"}, {"backend": "torch"}):
        told.clear()
        engine = Engine.load(config(models / "file.gguf", cache_dir=tmp_path / "kept", **options), told.append)
        assert engine.pair.change is not None
        measured.append(any("exactness" in event.what for event in told))
        engine.close()
    assert measured == [True, True, False]


def test_strict_takes_the_setting_that_there_is_and_stays_within_its_widths(models: Path, tmp_path: Path) -> None:
    told: list[Loading] = []
    for measured in (True, False):
        told.clear()
        strict = config(models / "target-1.5b", models / "draft", exact="strict", cache_dir=tmp_path / "kept")
        engine = Engine.load(strict, told.append)
        assert any("exactness" in event.what for event in told) is measured
        width = engine.pair.width_limit
        assert width is not None
        assert any("strict exactness (a f32 cache" in note for note in engine.loaded.notes)
        on = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(16))))
        assert max([len(on.speculation.by_position), 0]) <= width - 1
        engine.close()
        engine = Engine.load(strict)
        assert last(engine.answer_ids(PROMPT, request(GREEDY))).ids == on.ids
        assert on.verdict.kind == "identical"
        engine.close()


def test_early_exit_reaches_the_pair(models: Path) -> None:
    for layers in (None, 1):
        engine = Engine.load(config(models / "target-1.5b", exit_layers=layers))
        assert engine.pair.exit_layers == layers
        engine.close()


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"kv": "q8_0"}, ConfigError), ({"gpu_layers": 3}, ConfigError), ({"backend": "llamacpp"}, LoadFailed)],
)
def test_what_cannot_be_is_said_before_anything_is_loaded(
    models: Path, options: dict[str, object], kind: type[Exception]
) -> None:
    told: list[Loading] = []
    with pytest.raises(kind):
        Engine.load(config(models / "target-1.5b", **options), told.append)
    assert told == []
