"""The figures of an answer against scripts whose figures are known, and against a clock that is told the time."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ToyLM, ToyVocabulary
from engine.config import Sampling
from engine.events import Round, Tokens
from engine.stats import Answer
from tests.fakes import FakeClock, engine_of, fixed, last, request, script_pair

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LETTERS = ToyVocabulary.letters(24, eog=[23])


def run(mask: Callable[[int], bool], length: int, answer: int = 20, max_tokens: int = 20) -> Answer:
    pair = script_pair(list(range(answer)), mask, LETTERS, len(PROMPT))
    return last(engine_of(*pair).answer_ids(PROMPT, request(None, fixed(length), max_tokens=max_tokens)))


def test_tokens_after_a_refusal_are_not_accepted() -> None:
    mask = [True, False, True, True]
    spec = run(lambda i: mask[i], 4, max_tokens=5).speculation
    # the first round: 4 drafted, 1 accepted, 2 emitted; the second has room for 2 drafts, of which both are right
    assert (spec.drafted, spec.accepted, spec.rounds) == (4 + 2, 1 + 2, 2)
    assert spec.by_position == [1.0, 0.5, 0.0, 0.0]
    assert spec.acceptance_per_test == 3 / 4
    assert spec.mean_tokens_per_round == 5 / 2


def test_all_accepted_emits_one_more() -> None:
    spec = run(lambda _: True, 3, max_tokens=4).speculation
    assert (spec.drafted, spec.accepted, spec.rounds, spec.mean_tokens_per_round) == (3, 3, 1, 4.0)
    assert spec.acceptance_per_test == 1.0


def test_an_end_among_the_drafts_counts_as_cut() -> None:
    answer = run(lambda _: True, 4, answer=1)
    # drafted: the one token and the end; both kept, the end and nothing else cut
    assert answer.ids == [0]
    assert (answer.speculation.drafted, answer.speculation.accepted) == (2, 2)


def test_no_drafts_leave_rates_undefined() -> None:
    spec = run(lambda _: True, 0).speculation
    assert (spec.acceptance_rate, spec.acceptance_per_test, spec.by_source, spec.by_position) == (None, None, {}, [])
    assert spec.mean_tokens_per_round == pytest.approx(20 / 20)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 500), st.integers(1, 6), st.integers(1, 40), st.integers(0, 15))
def test_counts_agree_with_each_other_and_with_the_events(seed: int, length: int, max_tokens: int, end: int) -> None:
    engine = engine_of(ToyLM(16, seed=seed, eog=[end]), ToyLM(16, seed=seed, blur=0.4, eog=[end]))
    *events, finished = engine.answer_ids(
        PROMPT, request(Sampling(temperature=1, seed=seed), fixed(length), max_tokens=max_tokens)
    )
    answer: Answer = finished.answer  # type: ignore[union-attr]
    spec = answer.speculation
    rounds = [event for event in events if isinstance(event, Round)]
    tokens = [event for event in events if isinstance(event, Tokens)]
    assert 0 <= spec.accepted <= spec.drafted == sum(r.drafted for r in rounds)
    assert spec.accepted == sum(r.accepted for r in rounds)
    cut = spec.accepted + spec.rounds - len(answer.ids)
    assert 0 <= cut <= 2
    assert cut == 0 or answer.stop_kind == "eos"
    assert [i for event in tokens for i in event.ids] == answer.ids
    assert "".join(event.text for event in tokens) == answer.text
    origins = [origin for event in tokens for origin in event.origins]
    assert len(origins) == len(answer.ids)
    assert sum(r.emitted for r in rounds) == len(answer.ids)


def test_origins_are_those_of_the_script() -> None:
    pair = script_pair(list(range(20)), lambda i: i != 2, LETTERS, len(PROMPT))
    events = engine_of(*pair).answer_ids(PROMPT, request(None, fixed(3), max_tokens=7))
    bursts = [event.origins for event in events if isinstance(event, Tokens)]
    assert bursts == [["model", "model", "target"], ["model", "model", "model", "target"]]


def test_speed_leaves_out_waiting_and_the_prompt() -> None:
    clock = FakeClock()
    target, _ = script_pair(list(range(24)), lambda _: True, ToyVocabulary.letters(80, eog=[79]), 5)
    target.script = lambda ids: len(ids) % 70
    engine = engine_of(target, load_s=5.0)
    engine._clock = clock
    clock.takes(target, lambda n: 2.0 if n > 1 else 0.1)
    answer = last(engine.answer_ids([1, 2, 3, 4, 5], request(max_tokens=50)))
    timings = answer.timings
    assert timings.load_s == 5.0
    assert timings.prompt_s == pytest.approx(2.0)
    assert timings.ttft_s == pytest.approx(2.1)
    assert timings.decode_s == pytest.approx(4.9)
    assert timings.decode_tps == pytest.approx(10.0)


def test_prompt_speed_counts_what_was_read_and_the_receipt_what_was_reused() -> None:
    clock = FakeClock()
    target = ToyLM(16)
    engine = engine_of(target)
    engine._clock = clock
    prompt = [i % 16 for i in range(1000)]
    last(engine.answer_ids(prompt[:901], request(max_tokens=1)))
    clock.takes(target, lambda n: n / 50 if n > 1 else 0.0)
    answer = last(engine.answer_ids(prompt, request(max_tokens=1)))
    assert (answer.cache.prompt_tokens, answer.cache.target.reused, answer.cache.target.read) == (1000, 901, 99)
    assert answer.timings.prompt_tps == pytest.approx(50)


def test_a_second_turn_reads_nothing_twice_in_either_model() -> None:
    engine = engine_of(ToyLM(16), ToyLM(16, blur=0.3))
    asked = request(None, fixed(3), max_tokens=20)
    first = last(engine.answer_ids(PROMPT, asked))
    longer = [*PROMPT, *first.ids, 1, 2, 3]
    drafted = engine.context.draft
    assert drafted is not None
    before = drafted.length
    second = last(engine.answer_ids(longer, asked))
    assert second.cache.target.read <= 3 + 1
    assert second.cache.draft is not None
    assert second.cache.draft.reused == before
    assert second.cache.draft.reused + second.cache.draft.read == len(longer)


def test_an_answer_of_one_round_has_no_decode_speed() -> None:
    timings = run(lambda _: True, 3, max_tokens=4).timings
    assert timings.decode_tps is None
