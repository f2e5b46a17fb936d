"""The engine on real weights: SmolLM2 in every run, the coder pair where it was fetched."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from engine.config import EngineConfig, Message, Request, Sampling, Speculation
from engine.context import common_prefix
from engine.engine import Engine
from engine.stats import Answer
from tests.fakes import fixed, last

QUESTIONS = (
    "Write a Python function that returns the longest common prefix of a list of strings.",
    "Explain how a refrigerator works to a ten-year-old.",
    "Repeat this line three times: the quick brown fox jumps over the lazy dog",
)
SAMPLINGS = [Sampling(temperature=0), Sampling(temperature=0.8, seed=7)]


def ask(engine: Engine, messages: str | list[Message], sampling: Sampling, speculation: Speculation, n: int) -> Answer:
    conversation = [Message(role="user", content=messages)] if isinstance(messages, str) else messages
    return last(
        engine.answer(Request(messages=tuple(conversation), sampling=sampling, speculation=speculation, max_tokens=n))
    )


@pytest.fixture(scope="module")
def measurements(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measurements")


@pytest.fixture(scope="module")
def tiny(tiny_path: Path, measurements: Path) -> Iterator[Engine]:
    engine = Engine.load(EngineConfig(target=tiny_path, exact="strict", n_ctx=2048, cache_dir=measurements))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def twins(tiny_path: Path) -> Iterator[Engine]:
    engine = Engine.load(EngineConfig(target=tiny_path, draft=tiny_path, n_ctx=1024))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def pair(pair_paths: tuple[Path, Path], measurements: Path) -> Iterator[Engine]:
    target, draft = pair_paths
    engine = Engine.load(EngineConfig(target=target, draft=draft, exact="strict", n_ctx=2048, cache_dir=measurements))
    yield engine
    engine.close()


def check_same_text(engine: Engine, modes: list[Speculation], n: int) -> None:
    drafted = 0
    for question in QUESTIONS:
        for sampling in SAMPLINGS:
            off = ask(engine, question, sampling, fixed(0), n)
            for mode in modes:
                on = ask(engine, question, sampling, mode, n)
                assert on.ids == off.ids, (question, mode)
                drafted += on.speculation.drafted
            assert ask(engine, question, sampling, fixed(0), n).ids == off.ids
    assert drafted > 0


@pytest.mark.tiny
def test_strict_text_is_the_same_with_lookup_on_the_tiny_model(tiny: Engine) -> None:
    check_same_text(tiny, [fixed(2), fixed(5), Speculation()], 96)


@pytest.mark.tiny
@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=1, top_p=1, min_p=0, seed=3)])
def test_a_real_draft_equal_to_its_target_is_kept(twins: Engine, sampling: Sampling) -> None:
    always = Speculation(mode="fixed", length=4, rule="rejection")
    done = ask(twins, QUESTIONS[1], sampling, always, 80).speculation
    # the target's pass is wider than the draft's, so rounding may part them at a near tie
    assert done.acceptance_per_test is not None
    assert done.acceptance_per_test > 0.9


@pytest.mark.tiny
def test_a_text_that_drafting_changed_changed_at_a_near_tie(twins: Engine) -> None:
    kinds = [check_verdict(twins, question, 96) for question in QUESTIONS]
    assert set(kinds) <= {"clear", "near_ties"}


@pytest.mark.tiny
def test_a_second_turn_reads_only_what_is_new(twins: Engine) -> None:
    check_turns(twins)


@pytest.mark.pair
def test_strict_text_is_the_same_on_the_coder_pair(pair: Engine) -> None:
    check_same_text(pair, [fixed(1), fixed(2), Speculation()], 64)


@pytest.mark.pair
def test_strict_text_is_the_same_with_a_draft_of_another_vocabulary(
    pair_paths: tuple[Path, Path], tiny_path: Path, measurements: Path
) -> None:
    config = EngineConfig(
        target=pair_paths[0], draft=tiny_path, require_draft=True, exact="strict", n_ctx=2048, cache_dir=measurements
    )
    with closing(Engine.load(config)) as engine:
        assert any("through a map: 86% of the tokens" in note for note in engine.loaded.notes)
        check_same_text(engine, [fixed(2)], 64)
        done = ask(engine, QUESTIONS[0], Sampling(temperature=0), fixed(2), 96).speculation
        assert done.acceptance_per_test is not None
        assert done.acceptance_per_test > 0.3


@pytest.mark.pair
def test_turns_of_the_coder_pair_read_only_what_is_new(pair: Engine) -> None:
    check_turns(pair)


@pytest.mark.pair
def test_the_draft_is_accepted_on_code(pair: Engine) -> None:
    done = ask(pair, QUESTIONS[0], Sampling(temperature=0), fixed(2), 96).speculation
    assert done.acceptance_per_test is not None
    assert done.acceptance_per_test > 0.7


def check_verdict(engine: Engine, question: str, n: int) -> str:
    """The verdict on an answer with drafts, after a look at whether it names the place where it left the plain one."""
    off, on = (ask(engine, question, Sampling(temperature=0), fixed(length), n) for length in (0, 5))
    assert off.verdict.kind == "identical"
    assert on.speculation.drafted > 0
    if on.ids != off.ids:
        assert common_prefix(on.ids, off.ids) in on.verdict.near_ties
    return on.verdict.kind


def check_turns(engine: Engine) -> None:
    messages: list[Message] = []
    drafted_so_far = 0
    vocab = engine.pair.target.vocab
    for turn, text in enumerate(("Name three rivers.", "Which one is the longest?", "And the shortest?")):
        messages.append(Message(role="user", content=text))
        answer = ask(engine, messages, Sampling(temperature=0), fixed(2), 32)
        messages.append(Message(role="assistant", content=answer.text, ids=tuple(answer.ids)))
        if turn:
            assert answer.cache.target.read <= len(vocab.tokenize(text)) + 24
            assert answer.cache.draft is not None
            assert answer.cache.draft.reused >= drafted_so_far
        assert engine.pair.draft is not None
        drafted_so_far = engine.pair.draft.length
