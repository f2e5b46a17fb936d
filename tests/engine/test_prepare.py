"""Read while it is typed: whatever was guessed, stopped, typed or deleted, the answer is what it would have been."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.calibration import LEADS_PLAN
from engine.config import Message, Request, Sampling, Speculation
from engine.context import common_prefix
from engine.costs import Costs
from engine.engine import Engine
from engine.errors import DecodeFailed, Interrupted
from engine.prepare import PIECE, sure
from engine.stats import Answer
from engine.verdict import Change
from tests.chat_templates import CHATML, EVERY
from tests.engine.test_turns import Babbler
from tests.fakes import FaultyModel, engine_of, fixed, last

AUTO = Speculation()
LONG = "the quick brown fox jumps over a lazy dog " * 30


def user(text: str) -> Message:
    return Message(role="user", content=text)


def of(answer: Answer) -> Message:
    return Message(role="assistant", content=answer.text, ids=tuple(answer.ids) or None)


def asked(messages: Sequence[Message], speculation: Speculation = AUTO, seed: int = 5, **options: object) -> Request:
    sampling = Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=seed)
    return Request(messages=tuple(messages), sampling=sampling, speculation=speculation, max_tokens=10, **options)  # type: ignore[arg-type]


def engine(template: str | None = CHATML, batch: int = 256, kind: str = "dense", **options: object) -> Engine:
    target, draft = Babbler(template), Babbler(template, blur=0.3)
    for model in (target, draft):
        model.n_batch, model.kind = batch, kind  # type: ignore[assignment]
    return engine_of(target, draft, **{"change": Change(), **options})


def prepare(one: Engine, request: Request, steps: int | None = None) -> None:
    for _ in islice(one.prepare(request), steps):
        pass


def lengths(one: Engine) -> list[int]:
    return [cache.model.length for cache in one.context.caches]


def whole(one: Engine, request: Request) -> Sequence[int]:
    return one._prompt(request).ids


typed = st.lists(
    st.text(st.sampled_from("ab ~é\n<|hello"), max_size=40) | st.sampled_from(["", " ", LONG, LONG[:300], "hello wor"]),
    max_size=4,
)


@pytest.mark.parametrize("kind", ["dense", "recurrent", "sliding"])
@settings(max_examples=40, deadline=None)
@given(
    typed,
    st.sampled_from(["hi", LONG, "hello ~ é", "ab"]),
    st.integers(0, 6),
    st.sampled_from([AUTO, fixed(3), fixed(0)]),
    st.sampled_from([CHATML, EVERY[next(iter(EVERY))], None]),
)
def test_whatever_was_read_ahead_the_answer_is_the_same(
    kind: str, typed: list[str], sent: str, steps: int, speculation: Speculation, template: str | None
) -> None:
    """By the coupled rule, of which drafts change nothing; toys do not mind how a prompt is cut."""
    one, alone = engine(template, 16, kind), engine(template, 16, kind)
    history = [user("what")]
    for other in (one, alone):
        answer = last(other.answer(asked(history, speculation)))
    history.append(of(answer))
    for text in typed:
        prepare(one, asked([*history, user(text)], speculation), steps)
        for cache in one.context.caches:
            assert cache.model._cells == one.context.ids[: cache.length]  # type: ignore[attr-defined]
    request = asked([*history, user(sent)], speculation)
    mine, other = last(one.answer(request)), last(alone.answer(request))
    assert (mine.ids, mine.text) == (other.ids, other.text)
    assert one.context.ids == alone.context.ids


def test_what_was_typed_is_read_before_it_is_sent() -> None:
    one = engine()
    request = asked([user(LONG)])
    prepare(one, request)
    read = lengths(one)
    assert read[0] > 0.9 * len(whole(one, request))
    assert read[1] == read[0], "the draft model as well"
    receipt = last(one.answer(request)).cache
    assert (receipt.target.reused, receipt.draft and receipt.draft.reused) == tuple(read)


def test_a_pass_is_small_and_the_draft_comes_second() -> None:
    one = engine()
    seen: list[tuple[str, int]] = []
    for name, cache in zip(("target", "draft"), one.context.caches, strict=True):
        cache.model.on_pass = lambda tokens, name=name: seen.append((name, len(tokens)))  # type: ignore[attr-defined]
    prepare(one, asked([user(LONG)]))
    assert {count for _, count in seen[:-1] if count != PIECE} <= {seen[-1][1]}
    assert [name for name, _ in seen] == sorted((name for name, _ in seen), reverse=True)


def test_deleting_what_was_typed_costs_what_was_typed_alone() -> None:
    one, history = engine(), [user("what")]
    history.append(of(last(one.answer(asked(history)))))
    before = list(one.context.ids), lengths(one)[0]
    prepare(one, asked([*history, user(LONG)]))
    prepare(one, asked([*history, user("")]))
    assert one.context.ids[: before[1]] == before[0][: before[1]]
    receipt = last(one.answer(asked([*history, user("hi")]))).cache
    assert receipt.target.reused >= before[1]


def test_typing_on_reads_what_is_new() -> None:
    one = engine()
    counts: list[int] = []
    one.pair.target.on_pass = lambda tokens: counts.append(len(tokens))  # type: ignore[attr-defined]
    for end in range(100, len(LONG), 50):
        prepare(one, asked([user(LONG[:end])]))
    request = asked([user(LONG)])
    prepare(one, request)
    assert sum(counts) < 1.2 * len(whole(one, request))


@pytest.mark.parametrize("at", [0, 1, 5])
def test_an_interrupted_pass_leaves_what_was_read_before_it(at: int) -> None:
    one = engine()
    target = FaultyModel(one.pair.target, at=at, error=lambda: Interrupted("stopped"))  # type: ignore[arg-type]
    one.context.target.model = target  # type: ignore[assignment]
    with pytest.raises(Interrupted):
        prepare(one, asked([user(LONG)]))
    assert lengths(one)[0] == at * PIECE
    target.at = None
    request = asked([user(LONG)])
    assert last(one.answer(request)).ids == last(engine().answer(request)).ids


def test_a_pass_that_fails_empties_the_cache_and_the_answer_reads_again() -> None:
    one = engine()
    target = FaultyModel(one.pair.target, at=2, error=lambda: DecodeFailed("no"))  # type: ignore[arg-type]
    one.context.target.model = target  # type: ignore[assignment]
    with suppress(DecodeFailed):
        prepare(one, asked([user(LONG)]))
    request = asked([user(LONG)])
    answer = last(one.answer(request))
    assert answer.cache.target.reused == 0
    assert answer.ids == last(engine().answer(request)).ids


def test_with_speculation_off_only_what_reads_as_it_would_is_read() -> None:
    """Whole batches from where the cache ends, so that every bit is as if nothing had been read ahead."""
    one, alone = engine(batch=100), engine(batch=100)
    passes: dict[int, list[list[int]]] = {0: [], 1: []}
    for number, other in enumerate((one, alone)):
        note = passes[number].append
        other.pair.target.on_pass = lambda tokens, note=note: note(list(tokens))  # type: ignore[attr-defined]
    request = asked([user(LONG)], fixed(0))
    prepare(one, request)
    assert lengths(one)[0] % 100 == 0 < lengths(one)[0]
    assert lengths(one)[1] == 0
    assert not one.context.holds_wide
    last(one.answer(request))
    last(alone.answer(request))
    assert passes[0] == passes[1]


class Passes:
    """By which pass of a model each token of its cache was read: where it began, and how many tokens it had."""

    def __init__(self, model: Babbler) -> None:
        self._model = model
        self._cells: list[tuple[int, int]] = []
        model.on_pass = self._note

    def _note(self, tokens: Sequence[int]) -> None:
        self._cells[self._model.length :] = [(self._model.length, len(tokens))] * len(tokens)

    @property
    def cells(self) -> list[tuple[int, int]]:
        return self._cells[: self._model.length]


@settings(max_examples=40, deadline=None)
@given(typed, st.sampled_from([LONG, LONG[:300] + "and so on", LONG[:90], "hi"]), st.integers(1, 9), st.booleans())
@example(typed=[LONG, f"{LONG[:200]}and so on"], sent=LONG[:90], steps=99, left=False)
def test_with_speculation_off_a_text_that_was_changed_is_read_as_if_nothing_had_been(
    tmp_path_factory: pytest.TempPathFactory, typed: list[str], sent: str, steps: int, left: bool
) -> None:
    """So every bit is that of the answer alone, whatever was typed first, if the conversation is left meanwhile too."""
    one, alone = engine(batch=32), engine(batch=32)
    passes = [Passes(other.pair.target) for other in (one, alone)]  # type: ignore[arg-type]
    answers = [last(other.answer(asked([user("what")], fixed(0)))) for other in (one, alone)]
    history = [user("what"), of(answers[0])]
    for text in typed:
        prepare(one, asked([*history, user(text)], fixed(0)), steps)
    if left:
        folder = tmp_path_factory.mktemp("kept")
        one.keep(folder)
        one.resume(folder)
    for other in (one, alone):
        last(other.answer(asked([*history, user(sent)], fixed(0))))
    assert passes[0].cells == passes[1].cells


def test_a_piece_is_no_wider_than_what_verdicts_were_measured_for() -> None:
    assert max(LEADS_PLAN.widths) >= PIECE


def test_nothing_is_changed_before_whoever_waits_was_seen() -> None:
    """Making the plan may take a while, and a pass once begun takes up what was said meanwhile."""
    one = engine()
    last(one.answer(asked([user("what")])))
    before = list(one.context.ids), lengths(one)
    steps = one.prepare(asked([user(LONG)]))
    next(steps)
    assert (one.context.ids, lengths(one)) == before
    next(steps)
    assert (one.context.ids, lengths(one)) != before


def test_what_was_read_in_other_pieces_is_not_called_identical() -> None:
    one = engine()
    greedy = Request(messages=(user(LONG),), sampling=Sampling(temperature=0), max_tokens=4)
    prepare(one, greedy)
    off = Request(messages=greedy.messages, sampling=greedy.sampling, max_tokens=4, speculation=fixed(0))
    assert one.context.holds_wide
    assert last(one.answer(off)).verdict.kind != "identical"


def test_in_strict_exactness_nothing_is_read() -> None:
    one = engine(exact="strict", width_limit=4)
    prepare(one, asked([user(LONG)]))
    assert lengths(one) == [0, 0]


def test_a_draft_model_that_cannot_pay_reads_nothing() -> None:
    steep = Costs(lambda width, _: float(width))
    one = engine(costs=steep)
    prepare(one, asked([user(LONG)]))
    assert lengths(one)[0] > 0 == lengths(one)[1]
    prepare(one, asked([user(LONG)], fixed(2)))
    assert lengths(one)[1] > 0, "unless it is told to"


def test_a_cache_that_cannot_go_back_reads_what_no_typing_changes() -> None:
    one, history = engine(kind="recurrent"), [user("what")]
    history.append(of(last(one.answer(asked(history)))))
    held = lengths(one)[0]
    for text in ("", "h", LONG, LONG[:100]):
        prepare(one, asked([*history, user(text)]))
        assert lengths(one)[0] >= held
        held = lengths(one)[0]
    assert last(one.answer(asked([*history, user("hi")]))).cache.target.reused == held


def test_a_cache_that_cannot_go_back_reads_nothing_that_continuing_would_change() -> None:
    one, said = engine(kind="recurrent", batch=2), Message(role="assistant", content="hello")
    history = [user("what"), said]
    for text in ("", "h", LONG):
        prepare(one, asked([*history, user(text)]))
    held = lengths(one)[0]
    assert held > 0
    assert last(one.answer(asked(history, go_on=True))).cache.target.reused == held


def test_copies_come_from_what_was_read_ahead_and_not_from_the_conversation_before() -> None:
    target = Babbler(CHATML)
    target.n_batch = 256
    one = engine_of(target)
    last(one.answer(asked([user("lazy cat " * 200)], fixed(0))))
    request = asked([user(LONG)], fixed(4))
    prepare(one, request)
    alone = last(engine_of(Babbler(CHATML)).answer(request)).speculation
    assert alone.drafted
    found = last(one.answer(request)).speculation
    assert (found.drafted, found.accepted, found.by_position) == (alone.drafted, alone.accepted, alone.by_position)


def test_half_an_answer_is_sure_to_its_end() -> None:
    one = engine()
    answer = last(one.answer(asked([user("what")])))
    half = Message(role="assistant", content=answer.text, ids=tuple(answer.ids))
    request = asked([user("what"), half], go_on=True)
    fresh = engine()
    prepare(fresh, request)
    assert fresh.context.ids == list(whole(fresh, request))
    assert lengths(fresh)[0] == len(fresh.context.ids) - 1


def test_what_is_there_already_is_left_alone() -> None:
    """A prompt that was stopped is typed again: what stands behind it may still be wanted."""
    one = engine()
    request = asked([user(LONG)])
    last(one.answer(request))
    before = list(one.context.ids), lengths(one)
    prepare(one, request)
    assert (one.context.ids, lengths(one)) == before


@pytest.mark.parametrize("text", ["", "x" * 40_000])
def test_what_cannot_be_asked_is_not_read(text: str) -> None:
    one = engine()
    prepare(one, Request(messages=(user("first"), Message(role="assistant", content="yes"), user(text)), max_tokens=5))
    assert lengths(one)[0] == (0 if text else lengths(one)[0])
    prepare(one, Request(messages=(), max_tokens=5))


def test_turns_that_have_to_leave_do_so_when_they_are_asked() -> None:
    one = engine()
    one._horizon._n_ctx = one.pair.target.n_ctx = 200  # type: ignore[misc]
    history: list[Message] = []
    while True:
        history.append(user("hello world " * 4))
        request = asked(history)
        if one._prompt(request).hole:
            break
        history.append(of(last(one.answer(request))))
    before = list(one.context.ids), lengths(one)
    prepare(one, request)
    assert (one.context.ids, lengths(one)) == before
    assert last(one.answer(request)).forgotten > 0


@given(st.text(max_size=60), st.text(max_size=20))
def test_what_is_sure_stays_sure_nearly_always(text: str, more: str) -> None:
    """Of a text that is typed on, at most its last tokens turn out otherwise."""
    vocab = Babbler(None).vocab

    def ids(request: Request) -> list[int]:
        return vocab.tokenize(request.messages[-1].content)

    before = list(sure(asked([user(text)]), ids))
    assert len(before) - common_prefix(before, vocab.tokenize(text + more)) <= 2
