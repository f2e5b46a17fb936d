"""Think blocks: wherever tags stand, the parts are the same text, and no answer is hidden by one that stays open."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.thinking import TAG, Part, pending, said, split

PIECES = [
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "\n",
    "\n\n",
    "a",
    " b ",
    "```",
    "```py\n",
    "`",
    "~~~",
    "é🙂",
]


def parts(text: str) -> list[tuple[str, str]]:
    return [(part.kind + ("…" if part.open else ""), text[part.start : part.end]) for part in split(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("text", "")]),
        ("plain", [("text", "plain")]),
        ("<think>\nhm\n</think>\n\nYes.", [("thought", "\nhm\n"), ("text", "Yes.")]),
        ("<think>hm</think>Yes.", [("thought", "hm"), ("text", "Yes.")]),
        ("\n <think>hm</think>Yes.", [("thought", "hm"), ("text", "Yes.")]),
        ("<think>\n\n</think>\n\nYes.", [("text", "Yes.")]),
        ("<think>a</think>b\n<think>\nc</think>", [("thought", "a"), ("text", "b\n"), ("thought", "\nc")]),
        ("<think>a</think>\n<think>b</think>c", [("thought", "a"), ("thought", "b"), ("text", "c")]),
        ("<thinking>a</thinking>b", [("thought", "a"), ("text", "b")]),
    ],
)  # fmt: skip
def test_blocks_are_told_from_the_text(text: str, found: list[tuple[str, str]]) -> None:
    assert parts(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>", [("thought…", "")]),
        ("<think>\nhm", [("thought…", "\nhm")]),
        ("<think>a<think>b</think>c", [("thought", "a<think>b"), ("text", "c")]),
        ("<think>a<think>b</think>c</think>d", [("thought", "a<think>b</think>c"), ("text", "d")]),
        ("<think>a</think>b</think>c", [("thought", "a"), ("text", "b</think>c")]),
        ("<think>a</thinking>b", [("thought…", "a</thinking>b")]),
        ("hm\n</think>\n\nYes.", [("thought", "hm\n"), ("text", "Yes.")]),
    ],
)
def test_unclosed_unopened_and_nested_blocks(text: str, found: list[tuple[str, str]]) -> None:
    assert parts(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "Models write <think> and </think> around it.",
        "The tag `<think>` opens, `</think>` closes.",
        "See:\n\n```\n<think>\nhm\n</think>\n```\n",
        "See:\n\n~~~html\n<think>\n</think>\n~~~\n\nand\n\n````\n```\n<think>\n````\n",
        "See:\n\n    <think>\n    hm",
        "a < b and <thin",
        "<THINK>loud</THINK>",
        "<thoughtful>",
    ],
)
def test_tags_in_code_and_in_the_middle_of_text_are_text(text: str) -> None:
    assert parts(text) == [("text", text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>Say `</think>`.</think>Yes.", [("thought", "Say `</think>`."), ("text", "Yes.")]),
        (
            "<think>\n```\n</think>\n```\nso\n</think>\nYes.",
            [("thought", "\n```\n</think>\n```\nso\n"), ("text", "Yes.")],
        ),
        ("<think>\n```py\nx = 1\n</think>\nYes.", [("thought", "\n```py\nx = 1\n"), ("text", "Yes.")]),
        ("<think>\n```\nx\n</think>\n```py\ny\n```\n", [("thought", "\n```\nx\n"), ("text", "```py\ny\n```\n")]),
    ],
)
def test_code_within_a_thought_ends_it_only_where_nothing_else_does(text: str, found: list[tuple[str, str]]) -> None:
    assert parts(text) == found


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_the_parts_are_in_order_and_leave_out_only_tags_and_blanks(text: str) -> None:
    found, at = split(text), 0
    assert found
    for part in found:
        assert at <= part.start <= part.end <= len(text)
        assert not TAG.sub("", text[at : part.start]).strip()
        at = part.end
    assert not TAG.sub("", text[at:]).strip()
    assert all(not part.open for part in found[:-1])


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_what_waits_is_the_beginning_of_a_tag_and_nothing_else(text: str) -> None:
    tags = ["<think>", "</think>", "<thinking>", "</thinking>", "<thought>", "</thought>"]
    starts = [n for n in range(1, 12) for tag in tags if n < len(tag) and text.endswith(tag[:n])]
    assert pending(text) == max(starts, default=0)


def test_an_answer_is_copied_without_its_thoughts_unless_it_is_all_thought() -> None:
    assert said("<think>hm</think>\n\nYes.\n") == "Yes."
    assert said("<think>hm") == "<think>hm"
    assert said("as it is\n") == "as it is"


def test_a_part_that_grows_begins_where_it_began() -> None:
    text = "<think>\nOne.\n\nTwo.\n</think>\n\nYes, *indeed*.\n\n- a\n"
    shown: list[Part] = []
    for end in range(len(text)):
        now = split(text[: end - pending(text[:end])])
        for before, after in zip(shown, now, strict=False):
            assert (before.kind, before.start) == (after.kind, after.start) or before.end == 0
            assert before.end <= after.end
        shown = list(now)
    assert [part.kind for part in shown] == ["thought", "text"]


@pytest.mark.parametrize("opening", ["<think>", "<thinking>", "<thought>"])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("thought…", "")]),
        ("hm", [("thought…", "hm")]),
        ("hm{end}\n\nYes.", [("thought", "hm"), ("text", "Yes.")]),
        ("\n{end}\n\nYes.", [("text", "Yes.")]),
        ("a{end}b\n<think>\nc", [("thought", "a"), ("text", "b\n"), ("thought…", "\nc")]),
        ("Say `{end}`.{end}Yes.", [("thought", "Say `{end}`."), ("text", "Yes.")]),
    ],
)
def test_a_thought_that_the_prompt_opened_ends_with_its_own_tag(
    opening: str, text: str, found: list[tuple[str, str]]
) -> None:
    end = opening.replace("<", "</")
    text = text.replace("{end}", end)
    shown = [(part.kind + ("…" if part.open else ""), text[part.start : part.end]) for part in split(text, opening)]
    assert shown == [(kind, words.replace("{end}", end)) for kind, words in found]


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join), st.sampled_from(["<think>", "<thinking>"]))
def test_a_text_behind_a_tag_falls_into_the_parts_of_both_together(text: str, opening: str) -> None:
    whole = opening + text
    apart = [text[part.start : part.end] for part in split(text, opening)]
    assert apart == [whole[part.start : part.end] for part in split(whole)]
    assert all(0 <= part.start <= part.end <= len(text) for part in split(text, opening))
    assert split(text, "") == split(text) == split(text, "[no tag]")


def test_what_follows_a_thought_of_the_prompt_is_copied_alone() -> None:
    assert said("hm</think>\n\nYes.\n", "<think>") == "Yes."
    assert said("hm", "<think>") == "hm"
