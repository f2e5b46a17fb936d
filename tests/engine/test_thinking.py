"""Thinking is turned on and off where the chat template asks, and nowhere else."""

import pytest

from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling
from engine.prompt import Chat
from tests.chat_templates import CHATML, EVERY
from tests.fakes import engine_of, last
from tests.fakes_vocab import FakeVocabulary

ASKS = (
    CHATML
    + "{%- if enable_thinking is defined and enable_thinking is false %}"
    + "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
)
"""As most do that can think."""
ASKS_OTHERWISE = (
    "{%- if not thinking is defined %}{% set thinking = false %}{% endif %}"
    + CHATML
    + ("{%- if thinking %}{{- '<think>\\n' }}{%- endif %}")
)
OF_ITS_OWN = "{%- set thinking = messages[0].content %}{{ thinking }}" + CHATML
QUESTION = [Message(role="user", content="hi")]


def shown(template: str, thinking: bool | None) -> str:
    vocab = FakeVocabulary(chat_template=template)
    return vocab.show(Chat(vocab).ids(QUESTION, thinking)).rpartition("assistant\n")[2]


def test_a_template_that_asks_is_told() -> None:
    assert [shown(ASKS, thinking) for thinking in (None, True, False)] == ["", "", "<think>\n\n</think>\n\n"]
    assert [shown(ASKS_OTHERWISE, thinking) for thinking in (None, True, False)] == ["", "<think>\n", ""]


@pytest.mark.parametrize("template", [*EVERY.values(), OF_ITS_OWN])
def test_others_hear_nothing_of_it(template: str) -> None:
    vocab = FakeVocabulary(control=("<s>", "</s>", "<|im_start|>", "<|im_end|>"), bos="<s>", chat_template=template)
    chat = Chat(vocab)
    assert not chat.thinks
    assert chat.ids(QUESTION, True) == chat.ids(QUESTION, False) == chat.ids(QUESTION)


@pytest.mark.parametrize(
    ("template", "thinks"),
    [(ASKS, True), (ASKS_OTHERWISE, True), (OF_ITS_OWN, False), (CHATML, False), (None, False), ("{{ }", False)],
)
def test_whether_it_thinks_is_known_at_load(template: str | None, thinks: bool) -> None:
    model = ToyLM(4)
    model.vocab = FakeVocabulary(chat_template=template)  # type: ignore[assignment]
    engine = engine_of(model)
    assert engine.loaded.thinks == thinks


@pytest.mark.parametrize("thinking", [None, True, False])
def test_the_request_says_so(thinking: bool | None) -> None:
    class Wide(ToyLM):
        def __init__(self) -> None:
            super().__init__(4)
            self.vocab = FakeVocabulary(chat_template=ASKS)  # type: ignore[assignment]

    engine = engine_of(Wide())
    vocab = engine.pair.target.vocab
    answer = last(
        engine.answer(
            Request(messages=tuple(QUESTION), sampling=Sampling(temperature=0), max_tokens=1, thinking=thinking)
        )
    )
    prompt = engine.context.ids[: answer.cache.prompt_tokens]
    assert prompt == Chat(vocab).ids(QUESTION, thinking)
