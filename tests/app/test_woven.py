"""Tokens as rows of cells: nothing is lost, nothing too wide, no character cut, and growth changes nothing above it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from app.widgets.woven import Piece, Woven

FAMILY = "👨‍👩‍👧"
FLAG = "🇩🇪"
PIECES = [
    "a",
    "word ",
    "longer-than-a-row-of-cells",
    " ",
    "\n",
    "\n\n",
    ".\n",
    "汉字",
    "é",
    "e\u0301",
    "שלום",
    FAMILY[:2],
    FAMILY[2:],
    "\t",
]


def woven(texts: list[str], width: int = 12) -> Woven:
    made = Woven(width)
    made.add(enumerate(texts))
    return made


def rows(made: Woven) -> list[str]:
    return ["".join(piece.text for piece in row) for row in made.rows]


TEXTS = st.lists(st.sampled_from(PIECES), max_size=24)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(TEXTS, st.integers(2, 30))
def test_no_row_is_wider_than_the_room_and_only_blanks_are_lost(texts: list[str], width: int) -> None:
    made = woven(texts, width)
    assert all(cell_len(row) <= width for row in rows(made))
    shown = "".join("".join(rows(made)).replace("↵", "").split())
    assert shown == "".join("".join(texts).split())


@settings(max_examples=100, derandomize=True, deadline=None)
@given(TEXTS, st.integers(2, 30), st.integers(1, 5))
def test_text_that_grew_is_laid_out_as_if_it_had_come_at_once(texts: list[str], width: int, step: int) -> None:
    grown, numbered = Woven(width), list(enumerate(texts))
    for at in range(0, len(texts), step):
        before = [list(row) for row in grown.rows]
        changed = grown.add(numbered[at : at + step])
        assert [list(row) for row in grown.rows[:changed]] == before[:changed]
    assert rows(grown) == rows(woven(texts, width))


@settings(max_examples=100, derandomize=True, deadline=None)
@given(TEXTS, st.integers(2, 30))
def test_each_cell_belongs_to_the_token_that_is_drawn_there(texts: list[str], width: int) -> None:
    made = woven(texts, width)
    for number in range(len(texts)):
        if (place := made.place(number)) is not None:
            assert made.at(*place) == number
    for y, row in enumerate(made.rows):
        x = 0
        for piece in row:
            for _ in range(cell_len(piece.text)):
                assert made.at(x, y) == piece.token
                x += 1
        assert made.at(x, y) is None


@pytest.mark.parametrize(
    ("texts", "pieces"),
    [
        ([FAMILY[0], FAMILY[1:3], FAMILY[3:], "!"], [(0, FAMILY), (3, "!")]),
        ([FLAG[0], FLAG[1], FLAG], [(0, FLAG), (2, FLAG)]),
        (["👍", "🏽", " ok"], [(0, "👍🏽"), (2, " ok")]),
        (["e", "\u0301t"], [(0, "e\u0301"), (1, "t")]),
        (["汉", "字"], [(0, "汉"), (1, "字")]),
        (["", "x", ""], [(1, "x")]),
    ],
)
def test_a_character_belongs_to_the_token_that_it_begins_in(texts: list[str], pieces: list[tuple[int, str]]) -> None:
    (row,) = woven(texts, 40).rows
    assert list(row) == [Piece(*piece) for piece in pieces]


def test_a_token_of_line_ends_alone_can_be_seen() -> None:
    made = woven(["a.\n", "\n\n", "b"])
    assert rows(made) == ["a.", "↵", "↵", "b"]
    assert made.place(1) == (0, 1)


def test_control_characters_are_signs() -> None:
    assert rows(woven(["\x1b[2J", "\r"])) == ["␛[2J␍"]
