"""The torch engine on real weights: SmolLM2 from its GGUF file, in 32 bits, against transformers' own generate."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

import torch
from transformers import DynamicCache

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.transformers import TorchModel, TorchOptions
from engine.config import Message, Request, Sampling, Speculation
from engine.engine import Engine
from engine.pair import Pair
from engine.pairing import compare
from engine.stats import Answer
from tests.fakes import fixed, last

pytestmark = pytest.mark.tiny
QUESTIONS = (
    "Repeat this line three times: the quick brown fox jumps over the lazy dog",
    "Write a Python function that returns the longest common prefix of a list of strings.",
)
TOKENS = 40
EXIT = 10


@pytest.fixture(scope="module")
def target(tiny_path: Path) -> Iterator[TorchModel]:
    model = TorchModel(TorchOptions(path=tiny_path, n_ctx=1024, weights="fp32", gpu=False))
    yield model
    model.close()


@pytest.fixture(scope="module")
def draft(tiny_path: Path) -> Iterator[LlamaCppModel]:
    """The same weights on the other engine."""
    model = LlamaCppModel(LlamaCppOptions(path=tiny_path, n_ctx=1024))
    yield model
    model.close()


def ask(engine: Engine, messages: list[Message], speculation: Speculation) -> Answer:
    greedy = Sampling(temperature=0)
    request = Request(messages=tuple(messages), sampling=greedy, speculation=speculation, max_tokens=TOKENS)
    return last(engine.answer(request))


def user(text: str) -> Message:
    return Message(role="user", content=text)


def generated(target: TorchModel, prompt: list[int]) -> list[int]:
    """What transformers itself goes on with, without what ends the answer."""
    module = target._alive().module
    cache = DynamicCache(config=module.config)
    ids = torch.tensor([prompt])
    said = module.generate(
        ids, attention_mask=torch.ones_like(ids), cache=cache, max_new_tokens=TOKENS, do_sample=False
    )[0]
    return [token for token in said[len(prompt) :].tolist() if token not in target.vocab.eog]


def test_vocabularies_of_both_engines_are_equal(target: TorchModel, draft: LlamaCppModel) -> None:
    assert compare(target.vocab, draft.vocab).kind == "equal"
    assert target.reach is None
    assert target.layers == 30


def test_greedy_answers_are_those_of_generate_by_any_source_of_drafts(target: TorchModel, draft: LlamaCppModel) -> None:
    plain = Engine(Pair(target))
    engines = {"lookup": plain, "model": Engine(Pair(target, draft)), "exit": Engine(Pair(target, exit_layers=EXIT))}
    drafted = dict.fromkeys(engines, 0)
    for question in QUESTIONS:
        target.rewind(0)
        off = ask(plain, [user(question)], fixed(0))
        prompt = plain.context.ids[: off.cache.prompt_tokens]
        assert off.ids == generated(target, prompt)
        for source, engine in engines.items():
            target.rewind(0)  # the engines share it
            answer = ask(engine, [user(question)], fixed(4))
            assert answer.ids == off.ids
            drafted[source] += answer.speculation.by_source[source].drafted
    assert all(drafted.values())


def test_the_same_weights_on_llama_cpp_are_nearly_always_right(target: TorchModel, draft: LlamaCppModel) -> None:
    done = ask(Engine(Pair(target, draft)), [user(QUESTIONS[1])], fixed(4)).speculation
    assert done.acceptance_per_test is not None
    assert done.acceptance_per_test > 0.9


def test_a_second_turn_reads_only_what_is_new_in_both(target: TorchModel, draft: LlamaCppModel) -> None:
    engine = Engine(Pair(target, draft))
    messages: list[Message] = []
    for turn, text in enumerate(("Name three rivers.", "Which one is the longest?", "And the shortest?")):
        messages.append(user(text))
        held = [cache.length for cache in engine.context.caches]
        answer = ask(engine, messages, fixed(3))
        messages.append(Message(role="assistant", content=answer.text, ids=tuple(answer.ids)))
        assert answer.cache.draft is not None
        if turn:
            for receipt, before in zip((answer.cache.target, answer.cache.draft), held, strict=True):
                assert receipt.reused == before
                assert receipt.read <= len(target.vocab.tokenize(text)) + 24


@pytest.mark.parametrize("weights", ["bf16", "nf4", "int8"])
def test_weights_in_fewer_bits_still_know_their_capital(tiny_path: Path, weights: str) -> None:
    """They are opened at all: trials must not take roundings for faults."""
    options = TorchOptions(path=tiny_path, n_ctx=512, weights=weights, gpu=False)  # type: ignore[arg-type]
    with closing(TorchModel(options)) as model:
        assert model.reach is None
        assert model.layers == 30
        row = model.forward(model.vocab.tokenize("The capital of France is"), 1)[0]
        assert model.vocab.piece(int(row.argmax())) == b" Paris"
