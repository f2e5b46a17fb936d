"""Generated ids stand for exactly their text, and only where a template copied it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import TemplateFailed
from engine.splice import Part, kept, stand_ins, untouched
from tests.fakes_vocab import FakeVocabulary

VOCAB = FakeVocabulary()
IDS = st.lists(st.integers(0, VOCAB.size - 1), max_size=12)


def decode(ids: Sequence[int]) -> str:
    return b"".join(map(VOCAB.piece, ids)).decode("utf-8", "replace")


@settings(deadline=None)
@given(IDS)
def test_ids_are_kept_for_their_own_text(ids: list[int]) -> None:
    text = decode(ids)
    assert kept(ids, text, VOCAB.piece) == (len(ids), len(text))


@settings(deadline=None)
@given(IDS, st.text("ab ~é👩", max_size=3), st.data())
def test_kept_ids_decode_to_the_text_they_stand_for(ids: list[int], tail: str, data: st.DataObject) -> None:
    whole = decode(ids)
    text = whole[: data.draw(st.integers(0, len(whole)))] + tail
    count, size = kept(ids, text, VOCAB.piece)
    assert decode(ids[:count]) == text[:size]


@settings(deadline=None)
@given(st.lists(st.sampled_from([" ~", "hello", "é", "👩", " ", "~", "x"]), max_size=8), st.data())
def test_as_many_are_kept_as_the_text_allows(texts: list[str], data: st.DataObject) -> None:
    ids = [token for text in texts for token in VOCAB.tokenize(text)]
    at = data.draw(st.integers(0, len(ids)))
    text = b"".join(map(VOCAB.piece, ids[:at])).decode("utf-8", "ignore")
    count, size = kept(ids, text + "!", VOCAB.piece)
    assert size == len(text)
    assert count <= at


def token(text: str) -> int:
    ids = VOCAB.tokenize(text)
    assert len(ids) == 1
    return ids[0]


@pytest.mark.parametrize(
    ("ids", "text", "result"),
    [
        ([token("hello"), token(" world")], "hello wor", (1, 5)),
        ([token(" "), token("~")], " ~", (2, 2)),
        ([*"👩🏽".encode()], "👩", (4, 1)),
        ([*"a👩".encode()][:3], "a", (1, 1)),
        ([token("a"), 0xE2, 0x82], "a\ufffd", (3, 2)),
        ([token("a"), 0xFF, token("b")], "a\ufffdb", (3, 3)),
        ([token("a"), VOCAB.control["<|im_start|>"], token("b")], "ab", (3, 2)),
        ([token("a"), VOCAB.control["<|im_start|>"], token("b")], "ax", (1, 1)),
        ([token("a"), VOCAB.size, token("b")], "ab", (1, 1)),
        ([-1], "a", (0, 0)),
        ([], "a", (0, 0)),
    ],
)
def test_kept(ids: list[int], text: str, result: tuple[int, int]) -> None:
    assert kept(ids, text, VOCAB.piece) == result


def test_stand_ins_occur_in_no_text() -> None:
    marks = stand_ins(["a\U000f0001", "\U000f0000 \U000f0003"])
    assert [next(marks) for _ in range(3)] == ["\U000f0002", "\U000f0004", "\U000f0005"]


def whole(contents: Sequence[str]) -> list[Part]:
    return [Part(at, 0, len(content)) for at, content in enumerate(contents)]


def find(contents: Sequence[str], render: object) -> dict[int, int]:
    assert callable(render)
    found = untouched(whole(contents), contents, render(contents), render, stand_ins([]))
    return {part.message: at for part, at in found.items()}


@settings(deadline=None)
@given(st.lists(st.text("ab \n", min_size=1, max_size=4), max_size=6))
def test_a_template_that_only_copies_leaves_all_parts_untouched(contents: list[str]) -> None:
    found = find(contents, ":".join)
    assert found == {at: len(":".join(contents[:at])) + (at > 0) for at in range(len(contents))}


@settings(deadline=None)
@given(st.lists(st.text("ab \n", min_size=1, max_size=4), max_size=6))
def test_trimmed_parts_are_not_untouched(contents: list[str]) -> None:
    found = find(contents, lambda new: "\n".join(text.strip() for text in new))
    assert found.keys() == {at for at, text in enumerate(contents) if text == text.strip()}


def test_one_spoiled_part_does_not_spoil_the_others() -> None:
    contents = [f"answer {at}" if at != 5 else "x</t>answer" for at in range(12)]
    found = find(contents, lambda new: "|".join(text.split("</t>")[-1] for text in new))
    assert found.keys() == set(range(12)) - {5}


@pytest.mark.parametrize(
    "render",
    [
        lambda new: new[0] + new[0],
        lambda new: new[0].upper(),
        lambda new: new[0][::-1],
        lambda new: "ab" if new[0] == "ab" else "cd",
        lambda new: new[0] + ("!" if new[0] == "ab" else "?"),
        lambda new: new[0].replace("a", "a "),
        lambda new: "ab",
    ],
    ids=["twice", "capitals", "backwards", "looked at", "looked at for more", "changed", "by chance"],
)
def test_what_is_not_copied_once_is_not_untouched(render: object) -> None:
    assert find(["ab"], render) == {}


def test_a_part_that_is_the_same_backwards_is_not_copied() -> None:
    assert find(["aa"], lambda new: new[0][::-1]) == {}
    assert find(["aa"], lambda new: new[0][0] + "a" + new[0][1:]) == {}


def test_a_part_changed_in_its_middle_is_not_copied_though_its_text_stands_elsewhere() -> None:
    assert find(["aba", "xaba"], lambda new: new[0].replace("b", "c") + new[1]) == {1: 3}


def test_a_template_that_refuses_a_mark_spoils_only_that_part() -> None:
    def render(new: Sequence[str]) -> str:
        if "x" not in new[1]:
            raise TemplateFailed("no x")
        return "".join(new)

    assert find(["aa", "x", "bb"], render) == {0: 0, 2: 3}
