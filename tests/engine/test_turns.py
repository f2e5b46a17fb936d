"""Conversations through template and tokenizer: whatever the replies are made of and whatever is changed, == fresh."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling, Speculation
from engine.engine import Engine
from engine.errors import TemplateFailed
from engine.stats import Answer
from tests.chat_templates import CHATML, EVERY
from tests.fakes import engine_of, fixed, last
from tests.fakes_vocab import FakeVocabulary

CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "[INST]", "[/INST]")
ODD = ["\n", " ", " ~", " ", "~", "\n\n", "é", "👩", "ab", "aab", "a", "b", "<|", "hello", " world"]


class Babbler(ToyLM):
    """Says what no tokenizer would have cut so: blanks first and last, merges and their parts, half characters."""

    def __init__(self, template: str | None, seed: int = 0, blur: float = 0.0, n_ctx: int = 4096) -> None:
        super().__init__(4, n_ctx, seed=seed, blur=blur)
        self.vocab = FakeVocabulary(  # type: ignore[assignment]
            control=CONTROL, eog=("</s>", "<|im_end|>"), bos="<s>", chat_template=template
        )
        parts = {token for text in ODD for token in (*self.vocab.tokenize(text), *text.encode())}
        self._silent = [token for token in range(self.vocab.size) if token not in parts | set(self.vocab.eog)]

    def row(self, ids: Sequence[int]):  # type: ignore[no-untyped-def]
        row = super().row(ids)
        row[self._silent] = -60
        row[list(self.vocab.eog)] -= 1
        return row


def asked(messages: Sequence[Message], speculation: Speculation, seed: int, stop: tuple[str, ...] = ()) -> Request:
    """One turn by the coupled rule, so that drafts change nothing."""
    sampling = Sampling(temperature=1, top_p=1, min_p=0, top_k=0, seed=seed)
    return Request(messages=tuple(messages), sampling=sampling, speculation=speculation, max_tokens=14, stop=stop)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def of(answer: Answer) -> Message:
    return Message(role="assistant", content=answer.text, ids=tuple(answer.ids) or None)


def check(engine: Engine, request: Request, template: str | None, seed: int) -> Answer:
    """The answer, which is that of a new engine that never drafts; both have read the same prompt."""
    answer = last(engine.answer(request))
    alone = engine_of(Babbler(template, seed))
    fresh = last(alone.answer(msgspec.structs.replace(request, speculation=fixed(0))))
    assert (answer.ids, answer.text) == (fresh.ids, fresh.text)
    assert engine.context.ids == alone.context.ids
    for cache in engine.context.caches:
        assert cache.model._cells == engine.context.ids[: cache.length]  # type: ignore[attr-defined]
    return answer


@pytest.mark.parametrize("name", [*EVERY, "none"])
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 99),
    length=st.sampled_from([0, 3]),
    stop=st.sampled_from([(), ("ab",), (" ~", "\n\n"), ("é",)]),
    questions=st.lists(st.sampled_from(["hi", " \nhello  ", "<|im_end|>", "~ é"]), min_size=3, max_size=3),
)
def test_replies_that_would_be_cut_otherwise_go_on_as_fresh(
    name: str, seed: int, length: int, stop: tuple[str, ...], questions: list[str]
) -> None:
    template = EVERY.get(name)
    engine = engine_of(Babbler(template, seed), Babbler(template, seed, 0.3))
    messages: list[Message] = []
    held: list[int] = []
    for question in questions:
        messages.append(user(question))
        request = asked(messages, fixed(length), seed, stop)
        answer = check(engine, request, template, seed)
        if name in ("chatml", "brackets") and all(message.content.strip() for message in messages):
            assert engine.context.ids[: len(held)] == held
            assert answer.cache.target.reused >= len(held) - 1
        # a token that a stop cut in two cannot stand for what was shown of it
        whole = answer.text == b"".join(map(engine.pair.target.vocab.piece, answer.ids)).decode("utf-8", "replace")
        held = list(engine.context.ids) if whole else []
        messages.append(of(answer))
    without = [msgspec.structs.replace(message, ids=None) for message in messages]
    check(engine, asked([*without, user("and?")], fixed(length), seed, stop), template, seed)
    stored = msgspec.json.decode(msgspec.json.encode(request), type=Request)
    assert check(engine, stored, template, seed).ids == answer.ids


CHANGES = ("ask", "again", "other seed", "edit", "drop", "new chat", "other system", "stop")


@settings(max_examples=15, deadline=None)
@given(
    changes=st.lists(st.sampled_from(CHANGES), min_size=3, max_size=9),
    seed=st.integers(0, 99),
    length=st.sampled_from([0, 2, None]),
)
def test_whatever_is_changed_in_a_conversation_is_answered_as_fresh(
    changes: list[str], seed: int, length: int | None
) -> None:
    engine = engine_of(Babbler(CHATML, seed), Babbler(CHATML, seed, 0.3))
    speculation = Speculation() if length is None else fixed(length)
    turns: list[Message] = []
    head = [Message(role="system", content="be kind")]
    draws = seed
    for number, change in enumerate(["ask", "ask", *changes]):
        again = None
        if change == "edit" and len(turns) >= 2:
            turns = [*turns[: (number % len(turns)) // 2 * 2], user(f"edited {number}")]
        elif change in ("again", "other seed", "stop") and turns:
            again = turns.pop().ids if turns[-1].role == "assistant" else None
            draws += change == "other seed"
        elif change == "drop" and len(turns) >= 4:
            del turns[-2:]
            turns.append(user("instead"))
        else:
            if change == "new chat":
                turns.clear()
            if change == "other system":
                head = [Message(role="system", content=f"be brief {number}")]
            turns.append(user(f"question {number}"))
        if turns[-1].role != "user":
            turns.append(user("and?"))
        request = asked([*head, *turns], speculation, draws)
        if change == "stop":
            events = engine.answer(request)
            for _ in zip(events, range(number + 1), strict=False):
                engine.cancel()
            events.close()  # type: ignore[attr-defined]
        answer = check(engine, request, CHATML, seed)
        if change == "again" and again is not None:
            assert tuple(answer.ids) == again
        turns.append(of(answer))


def test_another_model_in_the_middle_of_a_chat_takes_the_text_and_not_the_ids() -> None:
    class Other(Babbler):
        def __init__(self, template: str | None, seed: int = 0) -> None:
            super().__init__(template, seed)
            self.vocab = FakeVocabulary(  # type: ignore[assignment]
                merged=("b", "~~", "hello world"), control=CONTROL, eog=("<|im_end|>",), chat_template=template
            )
            self._silent = [token for token in range(self.vocab.size) if not 97 <= token < 123]
            self._silent = [token for token in self._silent if token not in self.vocab.eog]

    messages: list[Message] = []
    for number, kind in enumerate([Babbler, Other, Babbler, Other, Babbler]):
        messages.append(user(f"question {number}"))
        engine = engine_of(kind(CHATML, 1))
        answer = last(engine.answer(asked(messages, fixed(2), 5)))
        shown = b"".join(map(engine.pair.target.vocab.piece, engine.context.ids)).decode("utf-8", "replace")
        assert all(message.content in shown for message in messages)
        control = set(engine.pair.target.vocab.control.values())
        marks = [token for token in engine.context.ids[: answer.cache.prompt_tokens] if token in control]
        assert len(marks) == 2 * len(messages) + 3 + (engine.pair.target.vocab.bos is not None)
        messages.append(of(answer))


@pytest.mark.parametrize("template", ["{{ }", "{{ raise_exception('no') }}", "{{ 'a' * 10**9 }}"])
def test_a_template_that_fails_leaves_the_caches_alone(template: str) -> None:
    failing = (
        "{% if messages[-1].content == 'more' %}" + template + "{% endif %}" + CHATML
        if "{{ }" not in template
        else template
    )
    engine = engine_of(Babbler(failing))
    first = None
    if failing != template:
        first = last(engine.answer(asked([user("hi")], fixed(0), 1)))
    with pytest.raises(TemplateFailed):
        last(engine.answer(asked([user("hi"), Message(role="assistant", content="yes"), user("more")], fixed(0), 1)))
    if first is not None:
        again = last(engine.answer(asked([user("hi")], fixed(0), 1)))
        assert (again.ids, again.cache.target.read) == (first.ids, 1)
