"""Mistakes of others, on the real loop: what the verifier is handed, what penalties count, and ends inside a block."""

from collections.abc import Sequence

import numpy as np
import pytest

from engine.backends.toy import ToyLM, ToyModel, ToyVocabulary
from engine.config import Sampling
from engine.events import Tokens
from engine.sampling import Distribution
from engine.verify import Generator, Rejection
from tests.engine.loops import Loop, Parts
from tests.engine.rounds import Path
from tests.engine.rows import dense, reference
from tests.fakes import engine_of, fixed, fresh, last, request, script_pair

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LETTERS = ToyVocabulary.letters(24, eog=[23])


# What the verifier is handed (row A03)


class Handed(Rejection):
    """Notes the rows that were drawn from, and checks those that are handed in with the tokens."""

    def __init__(self, seed: int) -> None:
        super().__init__(Generator(seed, 0))
        self.drawn: list[tuple[int, Distribution]] = []
        self.judged = 0

    def propose(self, draft: Distribution, position: int) -> int:
        self.drawn.append((position, draft))
        return super().propose(draft, position)

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        assert draft is not None
        assert any(draft is row and position == place for place, row in self.drawn)
        assert draft.probs.sum() == pytest.approx(1)
        assert draft.prob(token) > 0
        self.judged += 1
        return super().judge(token, target, draft, position)


@pytest.mark.parametrize("sampling", [Sampling(temperature=0.7, top_k=3, top_p=0.9), Sampling(temperature=0)])
def test_the_draft_row_in_the_ratio_is_the_one_that_was_drawn_from(sampling: Sampling) -> None:
    rules: list[Handed] = []

    def handed(path: Path) -> Handed:
        rules.append(Handed(len(rules)))
        return rules[-1]

    loop = Loop(sampling, 3, size=6, room=12, parts=Parts(rule=handed))
    for _ in range(20):
        loop.play(Path([]))
    assert sum(rule.judged for rule in rules) > 50
    for position, row in rules[0].drawn[:1]:  # the first is drafted after the prompt
        assert position == len(loop.prompt)
        wanted = reference(loop.draft.row(loop.prompt).tolist(), 6, sampling)
        np.testing.assert_allclose(dense(row, 6), wanted, rtol=0, atol=1e-12)
        assert row.probs.size < 6


# What penalties count (row A05)


@pytest.mark.parametrize("length", [2, 8, 48])
@pytest.mark.parametrize("drafted", [True, False])
@pytest.mark.parametrize("sampling", [
    Sampling(temperature=0, frequency_penalty=2.0),
    Sampling(temperature=0, presence_penalty=1.5),
    Sampling(temperature=0, repeat_penalty=1.3),
    Sampling(temperature=0, repeat_penalty=1.3, repeat_last=5, frequency_penalty=2.0, presence_penalty=1.5),
])  # fmt: skip
def test_penalties_under_drafts_are_those_without(sampling: Sampling, drafted: bool, length: int) -> None:
    for seed in range(5):
        draft = ToyLM(16, seed=seed, blur=0.2) if drafted else None
        asked = request(sampling, fixed(length), max_tokens=60)
        answer = last(engine_of(ToyLM(16, seed=seed), draft).answer_ids(PROMPT * 2, asked))
        assert answer.ids == fresh(PROMPT * 2, asked, lambda seed=seed: ToyLM(16, seed=seed))
        assert not drafted or 0 < answer.speculation.accepted < answer.speculation.drafted


# Ends inside a block (row A07)


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("copied", [False, True])
def test_nothing_after_an_end_is_shown_or_kept(copied: bool, at: int) -> None:
    """Both models agree on some tokens, an end and more tokens; the end comes at each place of a block of 4."""
    answer = [*range(10, 10 + at), 23, 1, 2, 3, 4, 5, 6, 7]
    prompt = [*PROMPT, *answer, *PROMPT] if copied else PROMPT
    target, draft = script_pair(answer, lambda _: True, LETTERS, len(prompt))
    engine = engine_of(target, None if copied else draft)
    *events, finished = engine.answer_ids(prompt, request(None, fixed(4)))
    assert (finished.answer.ids, finished.answer.stop_kind) == (answer[:at], "eos")  # type: ignore[union-attr]
    assert [i for event in events if isinstance(event, Tokens) for i in event.ids] == answer[:at]
    assert engine.context.ids == [*prompt, *answer[:at]]
    for cache in engine.context.caches:
        assert isinstance(cache.model, ToyModel)
        assert cache.model._cells == engine.context.ids[: cache.length]
    follow = [*engine.context.ids, 8]
    for model in (target, draft):
        model.script = lambda ids: (7 * len(ids)) % 22
    assert last(engine.answer_ids(follow, request(None, fixed(4)))).ids == _script(follow)


def _script(prompt: Sequence[int]) -> list[int]:
    return [(7 * at) % 22 for at in range(len(prompt), len(prompt) + 24)]


@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(temperature=1.0, seed=3)])
def test_an_end_of_the_draft_alone_ends_nothing(sampling: Sampling) -> None:
    for seed in range(20):
        draft = ToyLM(8, seed=seed, blur=0.2, eog=[5])
        engine = engine_of(ToyLM(8, seed=seed, eog=[7]), draft)
        asked = request(sampling, fixed(4))
        assert last(engine.answer_ids(PROMPT[:3], asked)).ids == fresh(
            PROMPT[:3], asked, lambda seed=seed: ToyLM(8, seed=seed, eog=[7])
        )
