"""A trace tells of each token whose it is and what the models thought of it, and asking for it changes nothing."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.backends.toy import EarlyLM, ToyLM, ToyVocabulary
from engine.config import Message, Request, Sampling, Speculation
from engine.events import AnswerEvent, Finished, Round, Tokens, TokenTrace
from engine.model import FloatArray
from engine.narrow import Candidates
from engine.trace import PIECE, chances
from tests.chat_templates import CHATML
from tests.engine.narrowing import NarrowToy, pick
from tests.engine.rows import plain, steady
from tests.engine.test_turns import Babbler
from tests.fakes import engine_of, fixed, request, script_pair

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4]
SIZE = 24
LETTERS = ToyVocabulary.letters(SIZE, eog=[23])
CLOSE = {"rel": 1e-4, "abs": 1e-9}
LOGITS = st.one_of(st.sampled_from([-math.inf, -3e38, 0.0, 3e38]), st.floats(-30, 30, width=32))


def softmax(row: FloatArray) -> list[float]:
    """The slow way."""
    values = [float(value) for value in row]
    peak = max(values)
    weights = [math.exp(value - peak) for value in values]
    return [weight / math.fsum(weights) for weight in weights]


# One row


@steady
@given(
    st.lists(LOGITS, min_size=1, max_size=20), st.lists(st.sampled_from([99.0, math.nan]), max_size=2), st.booleans()
)
def test_chances_are_the_softmax_of_the_real_logits(values: list[float], padding: list[float], told: bool) -> None:
    if max(values) == -math.inf:
        return
    row = np.array([*values, *padding], np.float32)
    wanted = softmax(row[: len(values)])
    tokens = list(range(len(values)))
    assert chances(len(values), row, tokens) == pytest.approx(wanted, **CLOSE)
    if told and max(map(abs, values)) > 1e6:
        return  # then the sum's logarithm rounds too far
    narrow = pick(row, len(values), 1, [], lambda: row)
    mass = float(np.logaddexp.reduce(row[: len(values)].astype(np.float64)))
    told_of = Candidates.of(narrow.ids, narrow.logits, narrow.border, narrow.whole, (lambda: mass) if told else None)
    assert chances(len(values), told_of, tokens) == pytest.approx(wanted, **CLOSE)


def test_a_wide_row_is_added_up_whole() -> None:
    row = np.zeros(2 * PIECE + 5, np.float32)
    assert chances(row.size, row, [0, row.size - 1]) == pytest.approx([1 / row.size] * 2)


def test_what_was_selected_is_not_fetched_again() -> None:
    row = np.arange(10, dtype=np.float32)
    narrow = pick(row, 10, 3, [2], lambda: pytest.fail("the whole row was fetched"))
    mass = float(np.logaddexp.reduce(row))
    found = Candidates.of(narrow.ids, narrow.logits, narrow.border, narrow.whole, lambda: mass)
    assert chances(10, found, [9, 2, 7]) == pytest.approx([softmax(row)[at] for at in (9, 2, 7)])


# Whole answers

PAIRS = {
    "draft model": lambda seed: (ToyLM(SIZE, seed=seed), ToyLM(SIZE, seed=seed, blur=0.3), None),
    "narrow rows": lambda seed: (NarrowToy(SIZE * 8, seed=seed), NarrowToy(SIZE * 8, seed=seed, blur=0.2), None),
    "early exit": lambda seed: (EarlyLM(SIZE, seed=seed), None, 6),
    "lookup": lambda seed: (ToyLM(4, seed=seed), None, None),
}
SAMPLINGS = {
    "greedy": Sampling(temperature=0, repeat_penalty=1.2),
    "rejection": Sampling(temperature=0.8, seed=5, logit_bias={1: 2.0}),
    "coupled": Sampling(temperature=1.3, top_k=0, top_p=1.0, min_p=0.0, seed=6),
}


def asked(name: str, speculation: Speculation, max_tokens: int = 40, trace: bool = True) -> Request:
    rule = "rejection" if name == "rejection" else "coupled"
    made = request(SAMPLINGS[name], structs.replace(speculation, rule=rule), max_tokens)
    return structs.replace(made, trace=trace)


def traced(events: Sequence[AnswerEvent]) -> list[TokenTrace]:
    return [told for event in events if isinstance(event, Tokens) for told in event.trace]


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("pair", PAIRS)
def test_chances_are_those_of_the_models_own_rows(pair: str, name: str) -> None:
    target, draft, layers = PAIRS[pair](3)
    prompt = [token % target.vocab.size for token in PROMPT]
    kinds = {"kept": 0, "refused": 0, "own": 0}
    events = list(engine_of(target, draft, exit_layers=layers).answer_ids(prompt, asked(name, fixed(3))))
    told, ids = traced(events), events[-1].answer.ids  # type: ignore[union-attr]
    origins = [origin for event in events if isinstance(event, Tokens) for origin in event.origins]
    assert [one.origin for one in told] == origins
    for at, (one, token) in enumerate(zip(told, ids, strict=True)):
        before = [*prompt, *ids[:at]]
        rows = {"model": draft and draft.row(before), "exit": layers and target.early_row(before, layers)}  # type: ignore[union-attr]
        assert one.target == pytest.approx(softmax(target.row(before))[token], **CLOSE)
        if one.origin in rows:
            assert one.draft == pytest.approx(softmax(rows[one.origin])[token], **CLOSE)
        else:
            assert one.draft is None
        kinds["own" if one.origin == "target" else "kept"] += 1
        if one.refused:
            kinds["refused"] += 1
            other = next(t for t in range(target.vocab.size) if target.vocab.piece(t).decode() == one.refused.text)
            assert other != token
            assert one.origin == "target"
            assert one.refused.target == pytest.approx(softmax(target.row(before))[other], **CLOSE)
            row = next((row for row in rows.values() if row is not None and row is not False), None)
            if row is None:
                assert one.refused.draft is None
            else:
                assert one.refused.draft == pytest.approx(softmax(row)[other], **CLOSE)
    assert all(kinds.values())


def test_a_refusal_stands_where_its_round_stopped() -> None:
    pair = script_pair(list(range(12)), lambda i: i not in (2, 3, 9), LETTERS, len(PROMPT))
    events = list(engine_of(*pair).answer_ids(PROMPT, asked("greedy", fixed(3), max_tokens=12)))
    told = traced(events)
    assert "".join(one.text for one in told) == "abcdefghijkl"
    assert {at: one.refused.text for at, one in enumerate(told) if one.refused} == {2: "d", 3: "e", 9: "k"}
    for at, one in enumerate(told):
        assert one.target == pytest.approx(1.0)
        assert one.draft == (pytest.approx(1.0) if one.origin == "model" else None)
        if one.refused:
            assert one.refused.target < 1e-12, at
            assert one.refused.draft == pytest.approx(1.0)


def test_a_refused_end_has_the_name_of_its_token() -> None:
    vocab = ToyVocabulary([b"a", b"b", b""], {"<|end|>": 2}, eog=[2])
    target, draft = script_pair([0, 1, 0, 1], lambda _: True, vocab, 1)
    draft.script = lambda _: 2
    *events, finished = engine_of(target, draft).answer_ids([0], asked("greedy", fixed(2), max_tokens=4))
    assert isinstance(finished, Finished)
    assert [one.refused and one.refused.text for one in traced(events)] == [*["<|end|>"] * 3, None]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    name=st.sampled_from([*SAMPLINGS]),
    pair=st.sampled_from([*PAIRS]),
    length=st.integers(0, 5),
    stop=st.sampled_from([(), ("ab",), ("c",)]),
)
def test_asking_for_it_changes_nothing(seed: int, name: str, pair: str, length: int, stop: tuple[str, ...]) -> None:
    def run(trace: bool) -> list[AnswerEvent]:
        target, draft, layers = PAIRS[pair](seed)
        made = structs.replace(asked(name, fixed(length), trace=trace), stop=stop)
        prompt = [token % target.vocab.size for token in PROMPT]
        return list(engine_of(target, draft, exit_layers=layers).answer_ids(prompt, made))

    with_it, without = run(True), run(False)
    assert not traced(without)
    same = [[(e.text, e.ids, e.origins) for e in events if isinstance(e, Tokens)] for events in (with_it, without)]
    # the last of its events may hold nothing but what could not be told before
    assert same[0][: len(same[1])] == same[1]
    assert not any(text or ids for text, ids, _ in same[0][len(same[1]) :])
    one, other = (events[-1].answer for events in (with_it, without))  # type: ignore[union-attr]
    assert (one.ids, one.text, one.finish_reason, one.verdict) == (
        other.ids,
        other.text,
        other.finish_reason,
        other.verdict,
    )
    figures = [(e.drafted, e.accepted, e.emitted, e.plan) for e in with_it if isinstance(e, Round)]
    assert figures == [(e.drafted, e.accepted, e.emitted, e.plan) for e in without if isinstance(e, Round)]


# The text

STOPS = st.sampled_from([(), ("ab",), (" ~", "\n\n"), ("é",), ("\ufffd",), ("a\ufffd", "👩")])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999), stop=STOPS, length=st.sampled_from([0, 3]), cut=st.integers(0, 12), n=st.integers(1, 30)
)
def test_the_texts_of_the_tokens_make_the_text(seed: int, stop: tuple[str, ...], length: int, cut: int, n: int) -> None:
    """Whatever bytes the tokens hold, wherever a stop cuts them, and however the answer ends."""
    engine = engine_of(Babbler(CHATML, seed), Babbler(CHATML, seed, 0.3))
    made = Request(
        messages=(Message(role="user", content="hi"),),
        sampling=plain(seed=seed),
        speculation=fixed(length),
        stop=stop,
        max_tokens=n,
        trace=True,
    )
    shown = told = ""
    rounds = 0
    for event in engine.answer(made):
        if isinstance(event, Tokens):
            shown += event.text
            told += "".join(one.text for one in event.trace)
            assert shown.startswith(told)
            rounds += len(event.trace)
        elif isinstance(event, Round) and (cut := cut - 1) == 0:
            engine.cancel()
        elif isinstance(event, Finished):
            assert told == shown == event.answer.text
            assert rounds == len(event.answer.ids)


def test_a_token_is_told_with_its_round_unless_a_character_or_a_stop_is_open() -> None:
    vocab = ToyVocabulary([b"a", "é".encode()[:1], "é".encode()[1:], b"s", b"t", b""], eog=[5])
    target, _ = script_pair([0, 1, 2, 3, 0, 3], lambda _: True, vocab, 1)
    made = structs.replace(request(Sampling(temperature=0), max_tokens=6, stop=("st",)), trace=True)
    events = [event for event in engine_of(target).answer_ids([0], made) if isinstance(event, Tokens)]
    assert [[one.text for one in event.trace] for event in events] == [["a"], [], ["é", ""], [], ["s", "a"], [], ["s"]]
    assert [event.ids for event in events] == [[0], [1], [2], [3], [0], [3], []]


def test_a_stop_takes_back_what_was_not_told() -> None:
    vocab = ToyVocabulary([b"a", b"xs", b"to", b"p", b""], eog=[4])
    target, _ = script_pair([0, 1, 2, 3, 0], lambda _: True, vocab, 1)
    made = structs.replace(request(Sampling(temperature=0), max_tokens=6, stop=("stop",)), trace=True)
    *events, finished = engine_of(target).answer_ids([0], made)
    assert isinstance(finished, Finished)
    assert [one.text for one in traced(events)] == ["a", "x"]
    assert finished.answer.ids == [0, 1]


def test_one_round_asks_no_more_than_it_has_to() -> None:
    """One row for each token that is emitted: what was drafted beyond a refusal is not looked at."""
    from engine import trace
    from engine.verify import Proposal

    seen: list[tuple[float, list[int]]] = []

    def of(row: FloatArray, tokens: Sequence[int]) -> list[float]:
        seen.append((float(row[0]), list(tokens)))
        return [0.5] * len(tokens)

    rows = np.arange(5, dtype=np.float32)[:, None]
    drafts = [Proposal(token, None, 0.25) for token in (7, 8, 9, 10)]
    found = trace.seen(partial(of), rows, drafts, [7, 8, 3])
    assert seen == [(0.0, [7]), (1.0, [8]), (2.0, [3, 9])]
    assert found == [(0.5, 0.25, None), (0.5, 0.25, None), (0.5, None, (9, 0.5, 0.25))]
