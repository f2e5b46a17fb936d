"""Control texts: what a message hides can begin none, end none and be none, however a template cuts and joins it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.control import ControlTexts, Match

CONTROL = {"<|a|>": 1, "<|a|>b": 2, "[INST]": 3, "</s>": 4, "|>b<": 5, "#": 6}
TEXT = st.text("<|a>b[INST]/s# \n", max_size=12)
texts = ControlTexts(CONTROL)


def hide(content: str, control: ControlTexts = texts) -> str:
    """Hidden characters as signs of their own in a private area."""
    return control.hide(content, lambda character: chr(0xF0000 + ord(character)))


def show(text: str) -> str:
    return "".join(chr(ord(c) - 0xF0000) if ord(c) >= 0xF0000 else c for c in text)


@settings(deadline=None)
@given(TEXT)
def test_hiding_changes_no_length_and_can_be_undone(content: str) -> None:
    assert len(hide(content)) == len(content)
    assert show(hide(content)) == content


@settings(deadline=None)
@given(st.lists(TEXT, max_size=4), st.data())
def test_no_cut_or_join_of_messages_makes_a_control_text(contents: list[str], data: st.DataObject) -> None:
    hidden = [hide(content) for content in contents]
    cut = [
        text[: data.draw(st.integers(0, len(text)))] + text[data.draw(st.integers(0, len(text))) :] for text in hidden
    ]
    assert texts.find("".join(cut)) == []


@settings(deadline=None)
@given(st.sampled_from(list(CONTROL)), st.data(), TEXT, st.sampled_from(["", " ", "\n "]))
def test_a_message_cannot_end_what_a_template_began(control: str, data: st.DataObject, rest: str, blank: str) -> None:
    at = data.draw(st.integers(1, len(control)))
    content = control[at:] + rest
    began = control[:at]
    if content.strip():
        assert texts.find(began + hide(blank + content).strip()) == texts.find(began + "é")


@settings(deadline=None)
@given(st.sampled_from(list(CONTROL)), st.data())
def test_a_message_cannot_stand_in_the_middle_of_one(control: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(control)))
    end = data.draw(st.integers(at + 1, len(control) + 1))
    if control[at:end].strip():
        assert texts.find(control[:at] + hide(control[at:end]) + control[end:]) == texts.find(control[:at])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x<|a|>y", [Match(1, 6, 1)]),
        ("<|a|>b", [Match(0, 6, 2)]),
        ("<|a|><|a|>", [Match(0, 5, 1), Match(5, 10, 1)]),
        ("[INST][/INST]", [Match(0, 6, 3)]),
        ("<|a|>b<", [Match(0, 6, 2)]),
        ("a|>b<#", [Match(1, 5, 5), Match(5, 6, 6)]),
        ("<|a", []),
        ("", []),
    ],
)
def test_of_overlapping_control_texts_the_longest_is_found(text: str, found: list[Match]) -> None:
    assert texts.find(text) == found


def test_a_longer_one_wins_over_an_earlier_one() -> None:
    assert ControlTexts({"abc": 1, "cdefg": 2}).find("abcdefg") == [Match(2, 7, 2)]


def test_what_a_template_looks_for_stays_as_it_is() -> None:
    control = ControlTexts({"<|a|>": 1, "</s>": 2}, {"</think>", "<", "<|", "<|a|>x", "</s", "nothing"})
    assert hide("a</think>b", control) == "a</think>b"
    for content in ("a<|a|>x", "a<|", "a<", "a</s>", "a</s", "a<<|a|>"):
        assert control.find(hide(content, control) + "a|>/s>") == []
        assert "<" not in hide(content, control)


def test_a_vocabulary_without_control_tokens_hides_and_finds_nothing() -> None:
    none = ControlTexts({"": 3}, {"</think>"})
    assert hide("<|a|>", none) == "<|a|>"
    assert none.find("<|a|>") == []


def test_harmless_text_is_left_alone() -> None:
    assert hide("Why is a sky blue?\n") == "Why is a sky blue?\n"
