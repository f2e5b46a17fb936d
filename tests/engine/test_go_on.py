"""An answer that goes on: as if it had never been broken off, and nothing is read again."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling
from engine.engine import Engine
from engine.errors import ConfigError, PromptTooLong
from engine.events import TokenTrace
from engine.forget import Horizon
from engine.joining import whole_text, whole_trace
from engine.prompt import Chat
from engine.stats import Answer
from tests.chat_templates import CHATML, EVERY, THINKING
from tests.engine.test_turns import CONTROL, Babbler
from tests.fakes import engine_of, fixed, last
from tests.fakes_vocab import FakeVocabulary

SAMPLINGS = {
    "greedy": Sampling(temperature=0, repeat_penalty=1.1),
    "coupled": Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=4),
    "penalties": Sampling(temperature=1.2, frequency_penalty=1.5, presence_penalty=0.7, seed=5),
}
QUESTION = Message(role="user", content="hi")


def half(text: str, ids: Sequence[int] = ()) -> Message:
    return Message(role="assistant", content=text, ids=tuple(ids) or None)


def pair(template: str | None, seed: int, n_ctx: int = 4096) -> Engine:
    return engine_of(Babbler(template, seed, n_ctx=n_ctx), Babbler(template, seed, 0.3, n_ctx=n_ctx))


@pytest.mark.parametrize("name", [*EVERY, "none"])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 999),
    settings_of=st.sampled_from([*SAMPLINGS]),
    length=st.sampled_from([0, 3]),
    stop=st.sampled_from([(), ("ab",), (" ~", "\n\n"), ("é",)]),
    cut=st.integers(0, 16),
)
def test_it_says_what_it_would_have_said_and_reads_nothing_again(
    name: str, seed: int, settings_of: str, length: int, stop: tuple[str, ...], cut: int
) -> None:
    template = EVERY.get(name)
    asked = Request(
        messages=(QUESTION,), sampling=SAMPLINGS[settings_of], speculation=fixed(length), max_tokens=16, stop=stop
    )
    whole = last(pair(template, seed).answer(asked))
    engine = pair(template, seed)
    first = last(engine.answer(structs.replace(asked, max_tokens=cut)))
    if first.finish_reason == "stop":
        return
    held = list(engine.context.ids)
    rest = last(engine.answer(going_on(asked, first, 16 - cut)))
    assert [*first.ids, *rest.ids] == whole.ids or (whole.ids == first.ids[: len(whole.ids)] and not rest.ids)
    assert (rest.finish_reason, rest.stop_kind) == (whole.finish_reason, whole.stop_kind)
    assert whole_text(first.text, rest) == whole.text
    assert engine.context.ids[: len(held)] == held[: len(engine.context.ids)]
    assert rest.cache.prompt_tokens == len(held)
    assert rest.cache.target.read <= 1


@pytest.mark.parametrize("seed", range(5))
def test_penalties_know_what_was_said_before(seed: int) -> None:
    asked = Request(messages=(QUESTION,), sampling=SAMPLINGS["penalties"], max_tokens=40)
    whole = last(pair(CHATML, seed).answer(asked))
    engine = pair(CHATML, seed)
    first = last(engine.answer(structs.replace(asked, max_tokens=12)))
    assert [*first.ids, *last(engine.answer(going_on(asked, first, 28))).ids] == whole.ids


def going_on(asked: Request, so_far: Answer, more: int) -> Request:
    messages = (*asked.messages, half(so_far.text, so_far.ids))
    return structs.replace(asked, messages=messages, go_on=True, max_tokens=more)


def test_a_template_that_strips_thoughts_leaves_them_in_what_goes_on() -> None:
    engine = pair(THINKING, 1)
    text = "<think>\nhm </think>\n\nyes"
    ids = engine.pair.target.vocab.tokenize(text)
    chat = Chat(engine.pair.target.vocab)
    request = Request(messages=(QUESTION, half(text, ids)), go_on=True, max_tokens=3, sampling=SAMPLINGS["coupled"])
    answer = last(engine.answer(request))
    prompt = [*chat.ids([QUESTION]), *ids]
    assert engine.context.ids == prompt + answer.ids
    assert answer.cache.prompt_tokens == len(prompt)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", ["ab", " ab", "é ~", "", "<|im_end|>\n<s>ab"])
def test_a_text_without_ids_stands_where_the_answer_begins(name: str, text: str) -> None:
    vocab = FakeVocabulary(control=CONTROL, eog=("</s>", "<|im_end|>"), bos="<s>", chat_template=EVERY[name])
    chat = Chat(vocab)
    found = Horizon(chat, 4096).prompt([QUESTION, half(text)], 5, (), True)
    assert list(found.ids) == [*chat.ids([QUESTION]), *vocab.tokenize(text)]
    assert list(found.beginning) == vocab.tokenize(text)
    assert not set(found.beginning) & set(vocab.control.values())


def test_ids_stand_for_as_much_of_the_text_as_they_spell() -> None:
    vocab = FakeVocabulary(chat_template=CHATML)
    chat = Chat(vocab)
    ids = vocab.tokenize("hello world")
    assert chat.begun(half("hello world", ids)) == ids
    assert chat.begun(half("hello wor", ids)) == [*vocab.tokenize("hello"), *vocab.tokenize(" wor")]
    assert chat.begun(half("hello\udc80", ids)) == [*vocab.tokenize("hello"), *vocab.tokenize("\ufffd")]
    assert chat.begun(half("edited", ids)) == vocab.tokenize("edited")
    foreign = [vocab.size + 5]
    assert chat.begun(half("ab", foreign)) == vocab.tokenize("ab")


@given(st.integers(1, 12), st.integers(1, 60), st.integers(60, 160))
@settings(deadline=None, max_examples=25)
def test_a_long_beginning_takes_the_place_of_old_turns(turns: int, size: int, n_ctx: int) -> None:
    vocab = FakeVocabulary(chat_template=CHATML)
    chat, begun = Chat(vocab), "x" * size
    talk = [m for n in range(turns) for m in (Message(role="user", content=f"q{n}"), half(f"a{n}"))][:-1]
    alone = len(chat.ids(talk[-1:])) + size
    if alone >= n_ctx:
        with pytest.raises(PromptTooLong, match=f"{alone} tokens"):
            Horizon(chat, n_ctx).prompt([*talk, half(begun)], 20, (), True)
        return
    found = Horizon(chat, n_ctx).prompt([*talk, half(begun)], 20, (), True)
    assert list(found.ids) == [*chat.ids(talk[found.forgotten :]), *vocab.tokenize(begun)]
    room = min(20, n_ctx // 4)
    assert len(found.ids) + room <= n_ctx or found.forgotten == len(talk) - 1
    assert (found.forgotten > 0) == (turns > 1 and len(chat.ids(talk)) + size + room > n_ctx)


def test_old_turns_leave_the_cache_and_the_half_answer_stays_in_it() -> None:
    engine = pair(CHATML, 2, n_ctx=140)
    endless = structs.replace(SAMPLINGS["coupled"], logit_bias=dict.fromkeys(engine.pair.target.vocab.eog, -math.inf))
    asked = Request(messages=(QUESTION,), sampling=endless, max_tokens=10, speculation=fixed(2))
    first = last(engine.answer(asked))
    asked = structs.replace(asked, messages=(QUESTION, half(first.text, first.ids), QUESTION))
    so_far = last(engine.answer(asked))
    told = []
    for _ in range(8):
        before = len(engine.context.ids)
        more = last(engine.answer(going_on(asked, so_far, 10)))
        assert more.cache.target.read <= 1
        so_far = structs.replace(so_far, text=whole_text(so_far.text, more), ids=[*so_far.ids, *more.ids])
        told.append((more.forgotten, len(engine.context.ids) > before))
    assert told[0] == (0, True)
    assert told[-1] == (2, True)
    assert (2, False) in told


def test_turns_that_leave_for_a_long_answer_leave_the_cache_though_others_left_for_its_question() -> None:
    engine = pair(CHATML, 2, n_ctx=200)
    endless = structs.replace(SAMPLINGS["coupled"], logit_bias=dict.fromkeys(engine.pair.target.vocab.eog, -math.inf))
    asked = Request(messages=(QUESTION,), sampling=endless, max_tokens=10, speculation=fixed(2))
    while not (so_far := last(engine.answer(asked))).forgotten:
        asked = structs.replace(asked, messages=(*asked.messages, half(so_far.text, so_far.ids), QUESTION))
    told = [so_far.forgotten]
    while so_far.finish_reason == "length":
        more = last(engine.answer(going_on(asked, so_far, 10)))
        assert more.cache.target.read <= 1
        so_far = structs.replace(more, text=whole_text(so_far.text, more), ids=[*so_far.ids, *more.ids])
        told.append(more.forgotten)
    assert told == sorted(told), "none comes back"
    assert len({*told}) > 2


def test_a_trace_goes_on_as_the_text_does() -> None:
    def one(text: str) -> TokenTrace:
        return TokenTrace(origin="target", text=text, target=0.5)

    more = structs.replace(last(pair(CHATML, 1).answer(Request(messages=(QUESTION,), max_tokens=1))), text="é", ids=[7])
    for replaces in range(5):
        more = structs.replace(more, replaces=replaces)
        told = whole_trace([one("a"), one("bc"), one(""), one("d\ufffd")], more, [one("é")])
        assert "".join(token.text for token in told) == whole_text("abcd\ufffd", more)
        assert whole_text("abcd\ufffd", more) == "abcd\ufffd"[: 5 - replaces] + "é"
        assert len(told) == 5


def test_a_context_that_fills_up_is_told_from_a_length() -> None:
    def ends(n_ctx: int, more: int) -> str:
        engine = engine_of(ToyLM(8))
        engine.pair.target.n_ctx = n_ctx  # type: ignore[misc]
        engine._horizon.prompt = lambda *_: structs_of([1, 2, 3, 4, 5, 6], 3)  # type: ignore[method-assign]
        request = Request(
            messages=(QUESTION, half("abc")), go_on=True, max_tokens=more, sampling=Sampling(temperature=0)
        )
        return last(engine.answer(request)).finish_reason

    assert ends(10, 4) == "length"
    assert ends(10, 5) == "context_full"


def structs_of(ids: list[int], begun: int):  # type: ignore[no-untyped-def]
    from engine.forget import Prompt

    return Prompt(ids, begun=begun)


def test_only_an_answer_goes_on() -> None:
    with pytest.raises(ConfigError):
        Request(messages=(QUESTION,), go_on=True)
