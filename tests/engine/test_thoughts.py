"""A prompt that ends with an open think tag: every event and the record say so, and nothing else does."""

import pytest
from msgspec import structs

from engine.backends.toy import ToyLM
from engine.config import Message, Request, Sampling
from engine.events import Finished, Reading
from engine.joining import whole_answer
from engine.thoughts import opening
from tests.chat_templates import CHATML
from tests.fakes import engine_of, last
from tests.fakes_client import answer
from tests.fakes_vocab import FakeVocabulary

OPENS = CHATML + "{{- '<think>\\n' }}"
ASKS = CHATML + "{{- '<thought>\\n\\n' if thinking else '<think>\\n\\n</think>\\n\\n' }}"
QUESTION = Message(role="user", content="Is <think> a tag?")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ""),
        ("assistant\n", ""),
        ("assistant\n<think>", "<think>"),
        ("assistant\n<think>\n\n", "<think>"),
        ("<thinking>\n", "<thinking>"),
        ("é" * 40 + "<thought> ", "<thought>"),
        ("<think>\n\n</think>\n\n", ""),
        ("<think>\nhm", ""),
        ("</think>", ""),
        ("<thoughtful>", ""),
        ("think>", ""),
    ],
)
def test_the_tag_is_at_the_very_end(text: str, found: str) -> None:
    vocab = FakeVocabulary()
    assert opening(vocab, vocab.tokenize(text)) == found


def test_a_tag_that_is_a_token_of_its_own_counts_as_well() -> None:
    vocab = FakeVocabulary(control=("<think>", "</think>"))
    tag, end = vocab.control["<think>"], vocab.control["</think>"]
    assert opening(vocab, [*vocab.tokenize("ab"), tag, *vocab.tokenize("\n")]) == "<think>"
    assert opening(vocab, [tag, *vocab.tokenize("\n"), end]) == ""


class Thinker(ToyLM):
    def __init__(self, template: str) -> None:
        super().__init__(4)
        self.vocab = FakeVocabulary(chat_template=template)  # type: ignore[assignment]


def asked(thinking: bool | None = None) -> Request:
    return Request(messages=(QUESTION,), sampling=Sampling(temperature=0), max_tokens=3, thinking=thinking)


@pytest.mark.parametrize(
    ("template", "thinking", "found"),
    [(CHATML, None, ""), (OPENS, None, "<think>"), (ASKS, True, "<thought>"), (ASKS, False, ""), (ASKS, None, "")],
)
def test_the_first_event_and_the_record_say_so(template: str, thinking: bool | None, found: str) -> None:
    events = list(engine_of(Thinker(template), Thinker(template)).answer(asked(thinking)))
    assert isinstance(events[0], Reading)
    assert {event.opening for event in events if isinstance(event, Reading)} == {found}
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.opening == found


@pytest.mark.parametrize("begun", ["hm", "hm\n</think>\n\n<think>", ""])
def test_what_goes_on_begins_as_its_prompt_ends_whatever_was_said_of_it(begun: str) -> None:
    half = Message(role="assistant", content=begun)
    for template, found in ((OPENS, "<think>"), (CHATML, "")):
        request = structs.replace(asked(), messages=(QUESTION, half), go_on=True)
        assert last(engine_of(Thinker(template)).answer(request)).opening == found


def test_the_whole_begins_as_the_first_half_did() -> None:
    opened, plain = answer("a", opening="<think>"), answer("b")
    assert whole_answer(opened, "a", plain).opening == "<think>"
    assert whole_answer(plain, "b", opened).opening == ""
    assert whole_answer(None, "b", opened).opening == "<think>"
