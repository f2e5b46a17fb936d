"""From a config to a pair, on tiny random files: what fits drafts, what does not is left out with a reason."""

import re
from pathlib import Path

import msgspec
import pytest

from engine import loading
from engine.config import EngineConfig, Sampling
from engine.engine import Engine
from engine.errors import LoadFailed, ModelError, PairMismatch
from engine.events import Loading
from engine.flash import FlashChoice
from engine.mapped import MappedModel
from engine.opening import Opened, open_model
from tests.fakes import fixed, last, request
from tests.tiny_gguf import WORDS, Tiny, write_gemma, write_llama

PROMPT = [1, 2, 3, 4, 5]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target.gguf"
    write_llama(path, Tiny(seed=1))
    return path


def config(target: Path, draft: Path | None = None, **options: object) -> EngineConfig:
    return EngineConfig(target=target, draft=draft, n_ctx=256, threads=1, **options)  # type: ignore[arg-type]


def test_a_pair_that_fits_drafts(target: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    write_llama(draft, Tiny(seed=1, blur=0.1))
    engine = Engine.load(config(target, draft))
    answer = last(engine.answer_ids(PROMPT, request(Sampling(temperature=0), fixed(3))))
    assert (answer.target, answer.draft) == ("target", "draft")
    assert answer.speculation.by_source["model"].drafted > 0
    engine.close()


def broken(path: Path) -> str:
    path.write_bytes(b"no model at all")
    return "draft"


def few_tokens(path: Path) -> str:
    """Of the words that the target writes it has but the letters."""
    write_llama(path, Tiny(seed=1, merges=("~ ~",)))
    return "cannot draft for target.*: only .* which is too few; the first difference: token 256 is 'Th' in the target"


@pytest.mark.parametrize("make", [broken, few_tokens])
def test_a_draft_that_cannot_be_used_is_refused_or_left_out_with_the_reason(
    make: object, target: Path, tmp_path: Path
) -> None:
    draft = tmp_path / "draft.gguf"
    write_llama(target, Tiny(seed=1, merges=WORDS))
    reason = make(draft)  # type: ignore[operator]
    with pytest.raises((LoadFailed, PairMismatch), match=reason):
        Engine.load(config(target, draft, require_draft=True))
    engine = Engine.load(config(target, draft))
    assert engine.loaded.draft is None
    assert any(re.search(reason, note) for note in engine.loaded.notes)
    assert len(last(engine.answer_ids(PROMPT, request(max_tokens=4))).ids) <= 4
    engine.close()


def test_a_draft_of_another_family_drafts_through_a_map(target: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    write_gemma(draft)
    engine = Engine.load(config(target, draft, require_draft=True))
    assert any(re.search("drafts go through a map: [89].% of the tokens", note) for note in engine.loaded.notes)
    assert isinstance(engine.pair.draft, MappedModel)
    answer = last(engine.answer_ids(PROMPT, request(Sampling(temperature=0), fixed(3))))
    assert answer.speculation.by_source["model"].drafted > 0
    engine.close()


def test_strict_is_measured_once_and_kept(target: Path, tmp_path: Path) -> None:
    told: list[Loading] = []
    for measured in (True, False):
        told.clear()
        engine = Engine.load(config(target, exact="strict", cache_dir=tmp_path / "kept"), told.append)
        assert any("exactness" in event.what for event in told) is measured
        assert engine.pair.width_limit is not None
        assert any("strict exactness" in note for note in engine.loaded.notes)
        answer = last(engine.answer_ids(PROMPT, request(Sampling(temperature=0), fixed(2))))
        assert answer.verdict.kind == "identical"
        assert answer.settings.exact == "strict"
        engine.close()


@pytest.mark.parametrize(("family", "right"), [("llama", True), ("smollm3", False)])
def test_whether_caches_shift_is_tried_once_and_kept(tmp_path: Path, family: str, right: bool) -> None:
    """In the least context, too; strict exactness, which does not shift, says nothing of others."""
    write_llama(tmp_path / "target.gguf", Tiny(layers=4, family=family))
    write_llama(tmp_path / "draft.gguf", Tiny(layers=4, family=family, blur=0.1))
    one = config(tmp_path / "target.gguf", tmp_path / "draft.gguf", cache_dir=tmp_path / "kept")
    seen = []
    for options in ({"exact": "strict"}, {"n_ctx": 16}, {}, {}):
        told: list[Loading] = []
        engine = Engine.load(msgspec.structs.replace(one, **options), told.append)
        shifts = [model.shifts for model in (engine.pair.target, engine.pair.draft)]  # type: ignore[union-attr]
        seen.append((shifts, sum("cache" in event.what for event in told)))
        engine.close()
    assert seen == [([False] * 2, 0), ([right] * 2, 2), ([right] * 2, 0), ([right] * 2, 0)]


def test_what_was_measured_in_a_small_context_is_no_verdict_on_a_large_one(target: Path, tmp_path: Path) -> None:
    told: list[Loading] = []
    found = []
    for n_ctx in (64, 160, 512, 160):
        told.clear()
        options = EngineConfig(target=target, n_ctx=n_ctx, threads=1, cache_dir=tmp_path / "kept")
        engine = Engine.load(options, told.append)
        found.append((engine.pair.change, any("exactness" in event.what for event in told)))
        engine.close()
    (none, _), (short, _), (both, _), again = found
    assert none is None
    assert short is not None
    assert both is not None
    assert both.lead >= short.lead
    assert both.logit >= short.logit
    assert again == (both, False)


def test_what_the_user_chose_holds_in_strict(target: Path) -> None:
    engine = Engine.load(config(target, exact="strict", kv="f16", flash_attention="off"))
    assert (engine.pair.kv, engine.pair.flash_attention) == ("f16", "off")
    engine.close()


def test_a_missing_file_and_a_folder_for_llamacpp_are_said(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="no model file"):
        Engine.load(config(tmp_path / "none.gguf"))
    with pytest.raises(LoadFailed, match=r"is a folder and llama\.cpp reads GGUF files: take --engine torch"):
        Engine.load(config(tmp_path, backend="llamacpp"))


@pytest.mark.parametrize("at", ["draft", "speed", "exactness", "cache"])
def test_a_load_that_fails_closes_what_was_opened(
    at: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = write_llama(tmp_path / "draft.gguf", Tiny(seed=1, blur=0.1))
    opened: list[Opened] = []

    def open_and_note(*arguments: object) -> Opened:
        opened.append(open_model(*arguments))  # type: ignore[arg-type]
        return opened[-1]

    def refuse(event: Loading) -> None:
        if at in event.what:
            raise KeyboardInterrupt

    monkeypatch.setattr(loading, "open_model", open_and_note)
    with pytest.raises(KeyboardInterrupt):
        Engine.load(config(target, draft), refuse)
    assert len(opened) == (1 if at == "draft" else 2)
    for one in opened:
        with pytest.raises(ModelError, match="closed"):
            one.model.forward([1], 1)


def test_the_demo_answers_without_files() -> None:
    from engine.config import Message, Request

    engine = Engine.load(EngineConfig(target=Path("demo"), backend="demo"))
    answer = last(engine.answer(Request(messages=(Message(role="user", content="hello"),), max_tokens=40)))
    assert answer.text.startswith("Hello!")
    assert answer.speculation.drafted > 0


def test_what_was_found_to_be_faster_holds_for_the_target_from_the_next_load_on(target: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    write_llama(draft, Tiny(seed=1, blur=0.1))
    idle = config(target, draft, cache_dir=tmp_path / "kept", calibrate="idle")
    engine = Engine.load(idle)
    study = engine.pair.study
    assert study is not None
    assert study._flash is not None
    assert engine.pair.flash_attention == "off"
    study._flash._keep(FlashChoice(flash_attention="on", context=128, ratio=0.5))
    engine.close()
    for options, expected in (({}, "on"), ({"flash_attention": "off"}, "off"), ({"exact": "strict"}, None)):
        again = Engine.load(msgspec.structs.replace(idle, **options))
        assert again.pair.study is not None
        assert again.pair.study._flash is None
        assert expected in (None, again.pair.flash_attention)
        assert again.pair.draft is not None
        assert again.pair.draft.flash_attention == (again.pair.flash_attention if expected is None else "off")
        again.close()


def test_a_load_that_leaves_measuring_for_idle_time_learns_then_what_another_measures_at_once(
    target: Path, tmp_path: Path
) -> None:
    idle = Engine.load(config(target, cache_dir=tmp_path / "kept", calibrate="idle"))
    assert idle.pair.change is None
    for _ in idle.study():
        pass
    at_once = Engine.load(config(target))
    assert idle.pair.change == at_once.pair.change is not None
    idle.close()
    at_once.close()
    again = Engine.load(config(target, cache_dir=tmp_path / "kept", calibrate="idle"))
    assert again.pair.change == idle.pair.change
    again.close()
