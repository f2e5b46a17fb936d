"""Stop strings, cancels, penalties and small drafts through the whole engine: shown, kept and counted agree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.demo import TEMPLATE
from engine.backends.toy import ScriptLM, ToyLM, ToyVocabulary
from engine.config import Message, Request, Sampling, Speculation
from engine.engine import Engine
from engine.errors import PromptTooLong
from engine.events import Reading, Round, Tokens
from engine.stats import Answer
from tests.engine.slow import first_stop
from tests.fakes import FakeClock, engine_of, fixed, fresh, last, request, script_pair
from tests.fakes_vocab import FakeVocabulary

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
LETTERS = ToyVocabulary.letters(24, eog=[23])
"""Token i is the letter i of the alphabet."""


def said(engine: Engine, asked: Request, prompt: Sequence[int] = PROMPT) -> tuple[Answer, list[Tokens | Round]]:
    *events, finished = engine.answer_ids(prompt, asked)
    return finished.answer, [e for e in events if isinstance(e, Tokens | Round)]  # type: ignore[union-attr]


STOPS = [
    (("d",), "abc", [0, 1, 2]),
    (("cd",), "ab", [0, 1]),
    (("bcdefg",), "a", [0]),
    (("a",), "", []),
    (("gh", "ef"), "abcd", [0, 1, 2, 3]),
    (("efgx",), "abcdefghij", list(range(10))),
    (("jkz",), "abcdefghij", list(range(10))),
]


@pytest.mark.parametrize(("stops", "text", "ids"), STOPS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("right", [lambda _: True, lambda i: i % 3 != 2])
def test_a_stop_string_is_never_shown_and_cuts_ids_and_caches(
    stops: tuple[str, ...], text: str, ids: list[int], length: int, right: Callable[[int], bool]
) -> None:
    target, draft = script_pair(list(range(10)), right, LETTERS, len(PROMPT))
    engine = engine_of(target, draft)
    answer, events = said(engine, request(None, fixed(length), stop=stops))
    assert (answer.text, answer.ids) == (text, ids)
    assert "".join(event.text for event in events if isinstance(event, Tokens)) == text
    assert (answer.finish_reason, answer.stop_kind) == ("stop", "string" if text != "abcdefghij" else "eos")
    assert engine.context.ids == PROMPT + ids
    assert target.length == len(PROMPT) + len(ids) - (answer.stop_kind == "string")
    assert draft._cells == engine.context.ids[: draft.length]
    assert answer.cache.target.reused + answer.cache.target.read == len(PROMPT)
    follow = [*engine.context.ids, 5]
    again = request(None, fixed(length))
    target.script = draft.script = lambda seen: (len(seen) * 7) % 22
    assert last(engine.answer_ids(follow, again)).ids == [(i * 7) % 22 for i in range(len(follow), len(follow) + 24)]


def test_what_was_held_back_is_shown_at_the_end() -> None:
    target, _ = script_pair(list(range(4)), lambda _: True, LETTERS, len(PROMPT))
    answer, events = said(engine_of(target), request(stop=("dzz",), max_tokens=4))
    assert answer.text == "abcd" == "".join(e.text for e in events if isinstance(e, Tokens))


PENALTIES = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.9]),
    seed=st.integers(0, 50),
    top_k=st.sampled_from([0, 3, 8]),
    repeat_penalty=st.sampled_from([1.0, 1.3, 2.0]),
    repeat_last=st.sampled_from([0, 3, 64]),
    frequency_penalty=st.sampled_from([0.0, 2.0, -1.0]),
    presence_penalty=st.sampled_from([0.0, 1.5]),
    logit_bias=st.sampled_from([{}, {2: -float("inf"), 5: 3.0}]),
)


@settings(max_examples=80, deadline=None)
@given(sampling=PENALTIES, length=st.sampled_from([1, 2, 5, 8]), seed=st.integers(0, 99), auto=st.booleans())
def test_every_setting_gives_the_same_text_with_drafts(sampling: Sampling, length: int, seed: int, auto: bool) -> None:
    asked = request(sampling, Speculation() if auto else fixed(length))
    target, draft = ToyLM(12, seed=seed), ToyLM(12, seed=seed, blur=0.3)
    assert last(engine_of(target, draft).answer_ids(PROMPT, asked)).ids == fresh(
        PROMPT, asked, lambda: ToyLM(12, seed=seed)
    )


@settings(max_examples=30, deadline=None)
@given(sampling=PENALTIES, seed=st.integers(0, 99))
def test_a_draft_equal_to_its_target_is_kept_at_every_setting(sampling: Sampling, seed: int) -> None:
    for rule in ("rejection", "coupled"):
        speculation = Speculation(mode="fixed", length=3, rule=rule)  # type: ignore[arg-type]
        answer = last(
            engine_of(ToyLM(12, seed=seed), ToyLM(12, seed=seed)).answer_ids(PROMPT, request(sampling, speculation))
        )
        assert answer.speculation.acceptance_rate == 1.0


def test_penalties_count_the_answer_alone_where_they_should() -> None:
    model = ToyLM(12)
    plain = last(engine_of(model).answer_ids([0] * 20, request(max_tokens=1)))
    counted = request(Sampling(temperature=0, frequency_penalty=50.0), max_tokens=12)
    ids = last(engine_of(ToyLM(12)).answer_ids([0] * 20, counted)).ids
    assert ids[0] == plain.ids[0]
    assert sorted(ids) == list(range(12))


@pytest.mark.parametrize("length", [1, 3, 8])
def test_a_draft_with_a_smaller_context_stops_drafting_at_its_end(length: int) -> None:
    target, draft = ToyLM(16, seed=4), ToyLM(16, seed=4, n_ctx=20)
    asked = request(None, fixed(length), max_tokens=30)
    answer, events = said(engine_of(target, draft), asked)
    assert answer.ids == fresh(PROMPT, asked, lambda: ToyLM(16, seed=4))
    rounds = [event for event in events if isinstance(event, Round)]
    assert rounds[0].drafted == length
    assert all(r.source != "model" for r in rounds if r.context - r.emitted >= 20)
    assert rounds[-1].context > 21


@pytest.mark.parametrize("speculation", [Speculation(mode="fixed", length=64), Speculation()])
def test_no_pass_is_wider_than_the_batch(speculation: Speculation) -> None:
    prompt = list(range(16)) * 12
    target = ToyLM(16)
    target.row = lambda ids: ToyLM.row(target, [ids[-1]]) * 0 + [40.0 * (i == (ids[-1] + 1) % 16) for i in range(16)]  # type: ignore[method-assign]
    for size in (8, 64):
        target.n_batch = size
        engine = engine_of(target)
        engine._clock = FakeClock()
        answer = last(engine.answer_ids(prompt, request(None, speculation, max_tokens=200)))
        assert len(answer.ids) == 200
        assert answer.speculation.drafted > 100


def test_a_fully_kept_round_costs_the_draft_no_extra_pass() -> None:
    target, draft = script_pair(list(range(20)), lambda _: True, LETTERS, len(PROMPT))
    passes: list[int] = []
    draft.on_pass = lambda tokens: passes.append(len(tokens))
    engine = engine_of(target, draft)
    passes.clear()
    *events, _ = engine.answer_ids(PROMPT, request(None, fixed(1), max_tokens=20))
    assert len(passes) == 10
    assert not [e for e in events if isinstance(e, Reading) and e.model == "draft"]


def test_a_cancel_in_the_prompt_ends_there_and_is_forgotten() -> None:
    target = ToyLM(16)
    target.n_batch = 10
    engine = engine_of(target)
    prompt = [i % 16 for i in range(60)]
    target.on_pass = lambda _tokens: engine.cancel() if target.length == 20 else None
    answer = last(engine.answer_ids(prompt, request()))
    assert (answer.finish_reason, answer.ids, target.length) == ("cancelled", [], 20)
    target.on_pass = None
    assert last(engine.answer_ids(prompt, request())).ids == fresh(prompt, request(), lambda: ToyLM(16))


def test_a_cancel_before_the_start_ends_that_answer_alone() -> None:
    engine = engine_of(ToyLM(16))
    engine.cancel()
    assert last(engine.answer_ids(PROMPT, request())).finish_reason == "cancelled"
    assert last(engine.answer_ids(PROMPT, request())).finish_reason == "length"


def test_a_cancel_is_forgotten_with_a_request_that_was_refused() -> None:
    engine = engine_of(ToyLM(16, n_ctx=32))
    engine.cancel()
    with pytest.raises(PromptTooLong, match="32"):
        last(engine.answer_ids([1] * 40, request()))
    with pytest.raises(ValueError, match="at least one"):
        last(engine.answer_ids([], request()))
    assert last(engine.answer_ids(PROMPT, request())).finish_reason == "length"


@pytest.mark.parametrize("at", range(1, 8))
def test_a_cancel_between_passes_of_the_draft_stops_it_at_once(at: int) -> None:
    target, draft = ToyLM(16), ToyLM(16, blur=0.3)
    engine = engine_of(target, draft)
    passes = []

    def count(tokens: Sequence[int]) -> None:
        passes.append(len(tokens))
        if len(passes) == at:
            engine._cancelled.set()  # as a cancel that comes just after the flag of the pass was cleared

    draft.on_pass = count
    answer = last(engine.answer_ids(PROMPT, request(None, fixed(12), max_tokens=40)))
    assert answer.finish_reason == "cancelled"
    assert len(passes) == at
    for cache in engine.context.caches:
        assert cache.model._cells == engine.context.ids[: cache.length]  # type: ignore[attr-defined]


def test_each_round_tells_the_setting_that_it_was_made_under() -> None:
    engine = engine_of(ToyLM(16), ToyLM(16))
    rounds = []
    for event in engine.answer_ids(PROMPT, request(None, fixed(0), max_tokens=12)):
        if isinstance(event, Round):
            rounds.append(event)
            engine.set_speculation(fixed(3))
    assert (rounds[0].speculation.mode, rounds[0].drafted) == ("off", 0)
    assert all((r.speculation.mode, r.drafted) == ("fixed", 3) for r in rounds[1:3])


def test_regenerating_reads_one_token_and_has_no_prompt_speed() -> None:
    engine = engine_of(ToyLM(16))
    first = last(engine.answer_ids(PROMPT, request()))
    again = last(engine.answer_ids(PROMPT, request()))
    assert again.ids == first.ids
    assert (again.cache.target.reused, again.cache.target.read) == (len(PROMPT) - 1, 1)
    assert again.timings.prompt_tps is None


@pytest.mark.parametrize("length", [0, 3])
def test_an_answer_cut_by_a_stop_is_continued_as_its_own_ids(length: int) -> None:
    """Through messages and template: the second turn's prompt begins with the first one's ids."""
    vocab = FakeVocabulary(chat_template=TEMPLATE)
    answer = vocab.tokenize("hello world ~ user é👩 STOP more")

    class Speaker(ToyLM):
        def row(self, ids):  # type: ignore[no-untyped-def]
            row = super().row(ids) * 0
            opened = max(i for i, t in enumerate(ids) if t == vocab.control["<|im_start|>"])
            at = len(ids) - opened - 1 - len(vocab.tokenize("assistant\n"))
            row[answer[at] if 0 <= at < len(answer) else vocab.control["<|im_end|>"]] = 30
            return row

    model = Speaker(vocab.size)
    model.vocab = vocab  # type: ignore[assignment]
    engine = engine_of(model)

    def ask(*messages: Message) -> Answer:
        return last(
            engine.answer(
                Request(messages=messages, sampling=Sampling(temperature=0), speculation=fixed(length), stop=(" STOP",))
            )
        )

    question = Message(role="user", content="hello?")
    first = ask(question)
    assert first.text == "hello world ~ user é👩"
    held = list(engine.context.ids)
    second = ask(question, Message(role="assistant", content=first.text, ids=tuple(first.ids)), question)
    assert engine.context.ids[: len(held)] == held
    assert second.cache.target.reused >= len(held) - 1


def test_identical_is_said_only_while_no_wide_pass_is_in_the_cache() -> None:
    engine = engine_of(ToyLM(16), ToyLM(16, blur=0.3))
    first = last(engine.answer_ids(PROMPT, request(None, fixed(0))))
    assert first.verdict.kind == "identical"
    drafted = last(engine.answer_ids([*PROMPT, *first.ids, 1], request(None, fixed(3))))
    assert drafted.verdict.kind == "unmeasured"
    after = last(engine.answer_ids([*engine.context.ids, 2], request(None, fixed(0))))
    assert (after.speculation.drafted, after.verdict.kind) == (0, "unmeasured")
    assert last(engine.answer_ids([*PROMPT, *first.ids], request(None, fixed(0)))).verdict.kind == "identical"
    assert last(engine.answer_ids(PROMPT, request(Sampling(), fixed(0)))).verdict.kind == "not_greedy"


def test_strict_answers_are_identical_with_drafts() -> None:
    engine = engine_of(ToyLM(16), ToyLM(16, blur=0.3), exact="strict", width_limit=4)
    answer = last(engine.answer_ids(PROMPT, request(None, fixed(3))))
    assert answer.speculation.drafted > 0
    assert answer.verdict.kind == "identical"


@dataclass(frozen=True)
class Scene:
    """What a target says, cut into tokens anywhere, and everything that can end it."""

    pieces: list[bytes]
    stops: tuple[str, ...]
    max_tokens: int
    room: int
    """Cells of the context after the prompt."""
    end: int
    """Which of the ends of the vocabulary comes after the last piece."""

    @property
    def vocab(self) -> ToyVocabulary:
        """The pieces in order, then two ends."""
        size = len(self.pieces)
        return ToyVocabulary([*self.pieces, b"", b""], eog=[size, size + 1])

    def expected(self) -> tuple[list[int], str, tuple[str, str | None]]:
        """Ids, text and ending, found the slow way: one token after the other, the whole text looked at each time."""
        limit = min(self.max_tokens, self.room)
        for count in range(1, min(limit, len(self.pieces)) + 1):
            text = b"".join(self.pieces[:count]).decode("utf-8", "ignore")
            if (cut := first_stop(text, self.stops)) is not None:
                shown, at = text[:cut], 0
                kept = 0
                while at < len(shown.encode()):
                    at, kept = at + len(self.pieces[kept]), kept + 1
                return list(range(kept)), shown, ("stop", "string")
        count = min(limit, len(self.pieces))
        text = b"".join(self.pieces[:count]).decode("utf-8", "replace")
        full = "length" if self.max_tokens <= self.room else "context_full"
        return list(range(count)), text, ("stop", "eos") if count < limit else (full, None)


WRITTEN = "aab é👩‍💻 STOP\nUser: 漢字"


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    raw = draw(st.text(WRITTEN, max_size=14)).encode()
    borders = sorted(draw(st.sets(st.integers(0, len(raw)), max_size=14)) | {0, len(raw)})
    pieces = [raw[a:b] for a, b in pairwise(borders) if a < b]
    text = raw.decode()
    inside = st.tuples(st.integers(0, len(text)), st.integers(1, 4)).map(lambda at: text[at[0] : sum(at)])
    stops = draw(st.lists(st.one_of(inside, st.text(WRITTEN, max_size=3)).filter(len), max_size=2))
    around = st.integers(max(0, len(pieces) - 2), len(pieces) + 2)
    limits = st.one_of(st.just(99), around, st.integers(0, 6))
    return Scene(pieces, tuple(stops), draw(limits), max(1, draw(limits)), draw(st.integers(0, 1)))


@settings(max_examples=400, deadline=None)
@given(
    scene=scenes(),
    wrong=st.lists(st.sampled_from(["", "", "next", "end", "other end"]), min_size=1, max_size=6),
    length=st.sampled_from([0, 1, 2, 3, 7, None]),
)
def test_an_answer_ends_where_it_must_whatever_is_drafted(scene: Scene, wrong: list[str], length: int | None) -> None:
    """Ends within a block and as its last token, two stops, limits to the token, characters cut anywhere."""
    vocab, size, start = scene.vocab, len(scene.pieces), 3
    ends = (size + scene.end, size + 1 - scene.end)

    def wanted(ids: Sequence[int]) -> int:
        at = len(ids) - start
        return at if at < size else ends[0]

    def guessed(ids: Sequence[int]) -> int:
        kind = wrong[len(ids) % len(wrong)]
        return {"": wanted(ids), "next": (wanted(ids) + 1) % size, "end": ends[0], "other end": ends[1]}[kind]

    if not size:
        return
    target, draft = ScriptLM(vocab, wanted), ScriptLM(vocab, guessed)
    target.n_ctx = draft.n_ctx = start + scene.room
    engine = engine_of(target, draft)
    speculation = Speculation() if length is None else fixed(length)
    asked = request(None, speculation, max_tokens=scene.max_tokens, stop=scene.stops)
    answer, events = said(engine, asked, [0] * start)
    ids, text, ending = scene.expected()
    assert (answer.ids, answer.text, (answer.finish_reason, answer.stop_kind)) == (ids, text, ending)
    shown = ""
    for event in events:
        if isinstance(event, Tokens):
            shown += event.text
            assert text.startswith(shown)
            assert not set(event.ids) & set(ends)
    assert shown == text
    assert engine.context.ids == [*[0] * start, *ids]
    for cache in engine.context.caches:
        assert cache.model._cells == engine.context.ids[: cache.length]  # type: ignore[attr-defined]
    assert 0 <= answer.speculation.accepted <= answer.speculation.drafted


def test_any_end_token_ends_and_the_same_marks_as_text_are_shown() -> None:
    marks = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "</s>")
    vocab = FakeVocabulary(control=marks, eog=("<|endoftext|>", "<|im_end|>", "</s>"), chat_template=TEMPLATE)
    spelled = "use ```<|im_end|></s>``` here"
    for mark in ("<|endoftext|>", "<|im_end|>", "</s>"):
        reply = [*vocab.tokenize(spelled), vocab.control[mark], *vocab.tokenize(" never")]

        def wanted(ids: Sequence[int], reply: list[int] = reply) -> int:
            return reply[len(ids) - len(PROMPT)]

        model = ScriptLM(vocab, wanted)  # type: ignore[arg-type]
        for length in (0, 4):
            answer, _ = said(engine_of(model), request(None, fixed(length), max_tokens=99))
            assert (answer.text, answer.stop_kind) == (spelled, "eos")
