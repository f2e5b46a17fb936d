"""Foreign text in a line: never wider than asked, never acting, its places kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from app.cells import LEAD, cut, excerpt, marked, one_line, spread

TEXTS = [
    "",
    "plain",
    "[b]x[/]",
    "日本語のとても長い題名です",
    "👨‍👩‍👧‍👦 family 🇩🇪",
    "שלום עולם",
    "a\tb\nc\x1b[2J\u202egnp.exe",
    "é" * 50,
]
ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
anything = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(), max_size=200))


@given(anything)
def test_a_line_keeps_its_length_and_nothing_in_it_acts(text: str) -> None:
    line = one_line(text)
    assert len(line) == len(text)
    assert not ACTING.search(line)


@given(anything, st.integers(0, 60))
def test_what_is_cut_is_no_wider_and_says_so(text: str, width: int) -> None:
    line = cut(text, width)
    assert cell_len(line.plain) <= width
    assert not ACTING.search(line.plain)
    if line.plain != one_line(text):
        assert line.plain == "" or line.plain.endswith("…")


@given(anything, st.integers(1, 60))
def test_a_spread_line_is_as_wide_as_asked(text: str, width: int) -> None:
    line = spread(cut(text, 200), Content("R"), width)
    assert line.cell_length == width
    assert line.plain.endswith("R")


@given(anything, st.data(), st.integers(4, 60))
def test_the_match_is_on_the_first_line_of_an_excerpt(text: str, data: st.DataObject, width: int) -> None:
    first = data.draw(st.integers(0, max(0, len(text) - 1)))
    lines = excerpt(marked(text, [(first, first + 1)], "bold"), first, width, 2)
    assert len(lines) <= 2
    assert all(line.cell_length <= width for line in lines)


def test_an_excerpt_begins_shortly_before_a_late_match_at_a_word() -> None:
    text = "one two three four five six seven eight nine ten eleven needle twelve thirteen fourteen fifteen"
    start = text.index("needle")
    first, second = excerpt(marked(text, [(start, start + 6)], "bold"), start, 24, 2)
    assert first.plain.startswith("…eleven needle")
    assert first.plain.index("needle") <= LEAD + 1
    assert second.plain.endswith("…")
    (span,) = [span for span in first.spans if span.style == "bold"]
    assert first.plain[span.start : span.end] == "needle"


@pytest.mark.parametrize(("text", "shown"), [("日本語" * 10, 9), ("👍" * 10, 9)])
def test_wide_letters_count_twice(text: str, shown: int) -> None:
    assert cut(text, 10).cell_length in {shown, 10}
    assert cut(text, 10).plain.endswith("…")
