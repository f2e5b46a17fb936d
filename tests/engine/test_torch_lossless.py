"""Losslessness on torch: answers of tiny networks by any source of drafts are those without any."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.toy import ToyLM
from engine.config import Request, Sampling, Speculation
from engine.engine import Engine
from engine.model import FloatArray
from engine.pair import OFF
from engine.pairing import compare
from engine.stats import Answer, Source
from tests import tiny_gguf, tiny_torch
from tests.engine.conversations import CUT_WITHIN, Conversation, Talk
from tests.engine.loops import Chancy, Loop, Parts, coupled
from tests.engine.rounds import error
from tests.engine.rows import PLAIN
from tests.engine.torch_toys import BLURS, FAMILIES, N_CTX, Family, TorchToy, Write
from tests.fakes import engine_of, fixed, last, request
from tests.tiny_torch import Tiny

PROMPT = [3, 1, 4, 1, 5, 2, 6, 3, 1, 4, 1, 5, 7, 0, 3, 1, 4]
LETTERS = 8
PAIRS = {
    "llama": (tiny_gguf.write_llama, tiny_torch.write_llama),
    "gemma3": (tiny_gguf.write_gemma, tiny_torch.write_gemma3),
}
SETTINGS = {
    "plain": PLAIN,
    "all": Sampling(
        temperature=1.3, top_k=3, top_p=0.93, min_p=0.05, repeat_penalty=1.2, repeat_last=5, frequency_penalty=0.6
    ),
}
MODES = (fixed(1), fixed(3), fixed(7), Speculation())
ASKED = [*((None, mode) for mode in MODES), *((seed, MODES[seed % len(MODES)]) for seed in range(6))]
"""Seeds and modes of the answers; None: greedy."""
TALKS = 20
EXACT = 1e-6


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    yield from opened(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    yield from opened("gemma3", tmp_path_factory)


def opened(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Family]:
    family = Family.of(name, tmp_path_factory.mktemp(name))
    yield family
    for model in family.models:
        model.close()


# Single answers


def asked(seed: int | None, speculation: Speculation) -> Request:
    """Greedy without a seed, else with the coupled rule."""
    sampling = Sampling(temperature=0) if seed is None else Sampling(temperature=0.8, top_p=1, min_p=0, seed=seed)
    return request(sampling, speculation, max_tokens=20)


def check_answers(engines: Sequence[Engine], plain: Engine) -> None:
    """Each answer with drafts is the one without, and each engine keeps some drafts and refuses others."""
    wanted = {seed: last(plain.answer_ids(PROMPT, asked(seed, fixed(0)))).ids for seed, _ in ASKED}
    for engine in engines:
        drafted = accepted = 0
        for seed, mode in ASKED:
            answer = last(engine.answer_ids(PROMPT, asked(seed, mode)))
            assert answer.ids == wanted[seed]
            drafted += answer.speculation.drafted
            accepted += answer.speculation.accepted
        assert 0 < accepted < drafted


@pytest.mark.parametrize("source", ["lookup", "model", "exit"])
def test_answers_with_drafts_are_those_without(family: Family, source: str) -> None:
    exits = range(1, family.target.layers) if source == "exit" else [None]
    draft = family.drafts[BLURS[0]] if source == "model" else None
    family.spell(LETTERS)
    engines = [engine_of(family.target, draft, exit_layers=layers) for layers in exits]
    check_answers(engines, engine_of(family.fresh))


def test_answers_from_narrow_rows_are_those_from_whole_ones(family: Family) -> None:
    family.spell(LETTERS)
    family.target.narrows = family.drafts[BLURS[0]].narrows = True
    engine = engine_of(family.target, family.drafts[BLURS[0]])
    family.target.narrows = family.drafts[BLURS[0]].narrows = False
    assert all(cache.narrow for cache in engine.context.caches)
    check_answers([engine], engine_of(family.fresh))


@pytest.mark.parametrize("write", [tiny_torch.write_mamba, tiny_torch.write_hybrid])
def test_a_target_that_keeps_a_state_drafts_nothing_and_says_so(write: Write, tmp_path: Path) -> None:
    target, fresh, draft = (TorchToy(tmp_path, write, Tiny(blur=blur)).spells(LETTERS) for blur in (0, 0, 0.1))
    engine, prompt = engine_of(target, draft), list(PROMPT)
    assert any(OFF in note for note in engine.loaded.notes)
    for turn, mode in enumerate(MODES):
        answer = last(engine.answer_ids(prompt, asked(turn, mode)))
        assert answer.speculation.drafted == 0
        assert any(OFF in note for note in answer.notes)
        assert answer.ids == last(engine_of(fresh).answer_ids(prompt, asked(turn, fixed(0)))).ids
        assert not turn or answer.cache.target.reused >= len(prompt) - len(PROMPT) - 1
        prompt += [*answer.ids, *PROMPT]


@pytest.mark.parametrize("write", [tiny_torch.write_mamba, tiny_torch.write_hybrid])
def test_a_draft_that_keeps_a_state_proposes_one_token_at_a_time(family: Family, write: Write, tmp_path: Path) -> None:
    family.spell(LETTERS)
    engine = engine_of(family.target, TorchToy(tmp_path, write, Tiny()).spells(LETTERS))
    assert any("one token at a time" in note for note in engine.loaded.notes)
    check_answers([engine], engine_of(family.fresh))
    engine.pair.draft.close()


# Two engines in one pair


def test_a_torch_draft_of_a_toy(family: Family) -> None:
    toy = [ToyLM(LETTERS, n_ctx=N_CTX) for _ in range(2)]
    check_answers([engine_of(toy[0], family.spell(LETTERS).fresh)], engine_of(toy[1]))


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_draft_on_llama_cpp_of_a_torch_target(name: str, tmp_path: Path) -> None:
    """The vocabularies are equal, so nothing is mapped."""
    write_file, write_folder = PAIRS[name]
    path = write_file(tmp_path / "draft.gguf")
    draft = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=N_CTX, threads=1))
    target, fresh = (TorchToy(tmp_path, write_folder, FAMILIES[name][1]) for _ in range(2))
    assert compare(target.vocab, draft.vocab).kind == "equal"
    engine, plain = engine_of(target, draft), engine_of(fresh)
    for seed, mode in ASKED:
        answer = last(engine.answer_ids(PROMPT, asked(seed, mode)))
        assert answer.ids == last(plain.answer_ids(PROMPT, asked(seed, fixed(0)))).ids
    assert last(engine.answer_ids(PROMPT, asked(None, fixed(3)))).speculation.by_source["model"].drafted > 0
    for model in (target, fresh, draft):
        model.close()


# Conversations


@pytest.mark.parametrize("layers", [None, 1])
def test_a_second_turn_reads_nothing_twice(family: Family, layers: int | None) -> None:
    family.spell(LETTERS)
    engine = engine_of(family.target, family.drafts[BLURS[0]], exit_layers=layers)
    prompt = list(PROMPT)
    for turn, mode in enumerate(MODES[:3]):
        held = [cache.length for cache in engine.context.caches]
        with places(family.target) as by_target, places(family.drafts[BLURS[0]]) as by_draft:
            answer = last(engine.answer_ids(prompt, asked(turn, mode)))
        assert min(by_target) >= held[0] == answer.cache.target.reused >= len(prompt) - len(PROMPT) - 1
        assert answer.cache.target.read == len(prompt) - held[0]
        assert answer.cache.draft is not None
        assert min([*by_draft, held[1]]) >= held[1] == answer.cache.draft.reused
        assert layers or engine.context.caches[1].length >= len(prompt)
        prompt += [*answer.ids, *PROMPT]


@contextmanager
def places(model: TorchToy) -> Iterator[list[int]]:
    """Where the passes of a model begin."""
    found: list[int] = []
    forward = model.forward

    def noting(tokens: Sequence[int], rows: int) -> FloatArray:
        found.append(model.length)
        return forward(tokens, rows)

    model.forward = noting  # type: ignore[method-assign]
    yield found
    model.forward = forward  # type: ignore[method-assign]


@dataclass
class TorchTalk(Talk):
    """A conversation with a family."""

    family: Family | None = None

    @classmethod
    def about(cls, family: Family, seed: int) -> "TorchTalk":
        talk = cls(**vars(Talk.of(seed)), family=family)
        family.spell(talk.size, talk.eog)
        for model in family.models:
            model.n_ctx = talk.n_ctx
        for model in family.drafts.values():
            model.n_ctx = talk.n_ctx - 4
        family.target.n_batch = 8
        return talk

    def engine(self) -> Engine:
        assert self.family is not None
        draft = None if self.blur is None else self.family.drafts[self.blur]
        layers = self.seed % self.family.target.layers
        return engine_of(self.family.target, draft, exit_layers=layers or None)

    def fresh(self, prompt: Sequence[int], max_tokens: int) -> Answer:
        assert self.family is not None
        key = tuple(prompt), max_tokens
        if key not in self.known:
            engine = engine_of(self.family.fresh)
            self.known[key] = last(engine.answer_ids(prompt, self.request(max_tokens, fixed(0))))
        return self.known[key]


def test_conversations_that_are_broken_off_somewhere(family: Family) -> None:
    seen: Counter[str] = Counter()
    for seed in range(TALKS):
        conversation = Conversation(TorchTalk.about(family, seed), random.Random(seed).randrange(CUT_WITHIN))
        for turn in conversation.turns():
            fresh = conversation.talk.fresh(turn.prompt, turn.max_tokens)
            said = turn.held[len(turn.prompt) :]
            if turn.broken:
                assert said[: len(fresh.ids)] == fresh.ids[: len(said)]
            else:
                assert turn.answer is not None
                assert (turn.answer.ids, turn.answer.finish_reason) == (fresh.ids, fresh.finish_reason)
                seen["drafted"] += turn.answer.speculation.drafted
                seen["accepted"] += turn.answer.speculation.accepted
            for cache in conversation.engine.context.caches:
                assert cache.length == cache.model.length <= len(turn.held)
    assert 0 < seen["accepted"] < seen["drafted"]


# All chance


@dataclass(frozen=True)
class TorchLoop(Loop):
    """The real loop over all chance, on a target with windows and its draft."""

    family: Family | None = None

    @property
    def target(self) -> TorchToy:  # type: ignore[override]
        assert self.family is not None
        return self.family.spell(self.size, self.eog).target

    @property
    def draft(self) -> TorchToy:  # type: ignore[override]
        assert self.family is not None
        return self.family.drafts[self.blur]


@pytest.mark.parametrize("name", ["plain", "all"])
@pytest.mark.parametrize("parts", [Parts(), Parts(planner=Chancy), Parts(rule=coupled)])
@pytest.mark.parametrize("sources", [("model",), ("exit",), ("lookup", "model", "exit")])
def test_answers_have_the_targets_own_distribution(
    windows: Family, sources: tuple[Source, ...], parts: Parts, name: str
) -> None:
    size = 2 if parts.planner is Chancy else 3
    loop = TorchLoop(SETTINGS[name], 2, sources, size=size, room=3, eog=(1,), family=windows, parts=parts)
    found = loop.over_whole_runs()
    assert sum(found.values()) == pytest.approx(1, abs=EXACT)
    assert error(found, loop.law()) < EXACT
