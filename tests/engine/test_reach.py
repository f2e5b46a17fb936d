"""Models that go back only a little, or not at all: what is drafted, what is said, and whose text it is."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.toy import ToyLM
from engine.config import Sampling, Speculation
from engine.engine import Engine
from engine.events import Round
from engine.model import Model
from engine.stats import Answer
from tests.engine.backends.contract import fresh_row, some_ids
from tests.fakes import FaultyModel, engine_of, fixed, fresh, last, request
from tests.tiny_gguf import GEMMA, Tiny, write_gemma, write_llama, write_mamba, write_qwen35

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
CLOSE = 0.1
"""A lead below this is a near tie of a tiny model's: its logits have a standard deviation of 3."""


def bounded(snapshots: int, blur: float = 0.0) -> ToyLM:
    model = ToyLM(16, kind="recurrent", blur=blur)
    model.snapshots = snapshots
    return model


@pytest.mark.parametrize("snapshots", [1, 2, 3, 7])
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=0.9, seed=3)])
@pytest.mark.parametrize("speculation", [fixed(5), Speculation()])
def test_drafts_stay_within_the_reach_and_nothing_is_ever_read_again(
    snapshots: int, sampling: Sampling, speculation: Speculation
) -> None:
    target = FaultyModel(bounded(snapshots))
    engine = engine_of(target, ToyLM(16, blur=0.3))
    asked = request(sampling, speculation, max_tokens=60)
    events = list(engine.answer_ids(PROMPT, asked))
    assert events[-1].answer.ids == fresh(PROMPT, asked, lambda: ToyLM(16))  # type: ignore[union-attr]
    drafted = [event.drafted for event in events if isinstance(event, Round)]
    assert max(drafted) == min(snapshots, 5) or speculation.mode == "auto"
    assert max(drafted) <= snapshots
    assert sum(drafted) > 0
    assert ("rewind", 0) not in target.calls


def test_the_bound_is_said_at_loading_and_where_it_cuts() -> None:
    engine = engine_of(bounded(3), ToyLM(16))
    assert [note for note in engine.loaded.notes if "3 tokens at most" in note and "start of the chat" in note]
    assert "drafts of 5 were cut to 3" in str(last(engine.answer_ids(PROMPT, request(None, fixed(5)))).notes)
    assert last(engine.answer_ids(PROMPT, request(None, fixed(3)))).notes == []
    assert engine_of(ToyLM(16), ToyLM(16)).pair.notes == []


def test_without_any_reach_nothing_is_drafted_and_the_reason_is_said() -> None:
    engine = engine_of(bounded(0), ToyLM(16))
    assert [note for note in engine.loaded.notes if "speculation is off" in note and "start of the chat" in note]
    answer = last(engine.answer_ids(PROMPT, request(None, fixed(3))))
    assert answer.ids == fresh(PROMPT, request(), lambda: ToyLM(16))
    assert answer.speculation.drafted == 0
    assert "speculation is off" in answer.notes[0]


@pytest.mark.parametrize(
    ("target", "draft"), [(0, None), (3, None), (3, 0), (3, 3), (None, 0), (None, 3), (None, None)]
)
def test_the_receipt_tells_what_was_read_again(target: int | None, draft: int | None) -> None:
    """The next turn reads what is new; a change of what was said reads all where the cache cannot go back to it."""

    def make(snapshots: int | None, blur: float) -> ToyLM:
        return ToyLM(16, blur=blur) if snapshots is None else bounded(snapshots, blur)

    engine = engine_of(make(target, 0.0), make(draft, 0.3))
    asked = request(None, fixed(3), max_tokens=20)
    first = last(engine.answer_ids(PROMPT, asked))
    following = [*PROMPT, *first.ids, 7, 7, 7]
    second = last(engine.answer_ids(following, asked))
    assert second.cache.target.reused >= len(PROMPT) + len(first.ids) - 1
    edited = [*PROMPT[:5], 8, 8, 8]
    third = last(engine.answer_ids(edited, asked))
    assert third.cache.target.reused == (5 if target is None else 0)
    for prompt, answer in ((PROMPT, first), (following, second), (edited, third)):
        assert answer.ids == fresh(prompt, asked, lambda: ToyLM(16))


Load = Callable[..., LlamaCppModel]
WRITERS = {
    "llama": (write_llama, {}),
    "flash": (write_llama, {"flash_attention": "on"}),
    "q8_0": (write_llama, {"kv": "q8_0"}),
    "q4_0": (write_llama, {"kv": "q4_0"}),
    "gemma": (write_gemma, {}),
    "window": (write_gemma, {"swa_full": False}),
    "mamba": (write_mamba, {}),
    "qwen35": (write_qwen35, {}),
}


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Opens a tiny model of WRITERS, blurred as a draft is, and closes it at the end."""
    opened: list[LlamaCppModel] = []

    def open_model(name: str, blur: float = 0.0) -> LlamaCppModel:
        write, options = WRITERS[name]
        path = tmp_path / f"{name}-{blur}.gguf"
        if not path.exists():
            tiny = {write_gemma: Tiny(blur=blur, layers=6, template=GEMMA), write_qwen35: Tiny(blur=blur, layers=4)}
            write(path, tiny.get(write, Tiny(blur=blur)))
        opened.append(LlamaCppModel(LlamaCppOptions(path=path, n_ctx=512, threads=1, n_batch=64, **options)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_model
    for model in opened:
        model.close()


def expect_equal_or_tied(model: Model, prompt: list[int], ids: list[int], wanted: list[int]) -> None:
    """The same ids, or at the first that differs, two logits that were as good as equal."""
    at = next((i for i, (a, b) in enumerate(zip(ids, wanted, strict=True)) if a != b), None)
    if at is not None:
        row = np.sort(fresh_row(model, [*prompt, *wanted[:at]]))
        assert row[-1] - row[-2] < CLOSE


def answered(engine: Engine, prompt: list[int], speculation: Speculation) -> Answer:
    never = {token: -float("inf") for token in engine.pair.target.vocab.eog}
    sampling = Sampling(temperature=0, logit_bias=never)
    return last(engine.answer_ids(prompt, request(sampling, speculation, max_tokens=48)))


BOUNDED = {"mamba": 0, "qwen35": 4}
PAIRS = [(name, name) for name in WRITERS] + [("qwen35", "llama"), ("llama", "qwen35"), ("flash", "mamba")]


@pytest.mark.parametrize(("name", "draft"), PAIRS)
def test_drafts_change_no_text_with_any_kind_of_cache(load: Load, name: str, draft: str) -> None:
    """On and off with the same cache type and flash attention; turns that go on, change and return."""
    model, target = load(name), load(name)
    plain, drafting = engine_of(model), engine_of(target, load(draft, 0.2))
    prompt = some_ids(target, 150)
    most = min(BOUNDED.get(name, 6), 6)
    for turn in (prompt, [*prompt[:100], *prompt[:20]], prompt, some_ids(target, 90, seed=5)):
        wanted, answer = answered(plain, turn, fixed(0)), answered(drafting, turn, fixed(6))
        expect_equal_or_tied(load(name), turn, answer.ids, wanted.ids)
        assert target.length == len(drafting.context.ids) - 1
        assert (answer.speculation.drafted > 0) == (most > 0)
        assert len(answer.speculation.by_position) <= (most if draft not in BOUNDED else min(most, 1))


@pytest.mark.parametrize("name", list(WRITERS))
def test_turns_that_have_nothing_in_common_answer_as_a_new_model(load: Load, name: str) -> None:
    """The first turn, an unrelated one, the first one edited; an emptied cache holds nothing."""
    model, new = load(name), load(name)
    engine = engine_of(model)
    first = some_ids(model, 130)
    for turn in (first, some_ids(model, 70, seed=1), [*first[:90], 40, 41]):
        wanted = answered(engine_of(new), turn, fixed(0)).ids
        expect_equal_or_tied(load(name), turn, answered(engine, turn, fixed(0)).ids, wanted)
        new.rewind(0)
    model.rewind(0)
    assert model._memory.held == 0
