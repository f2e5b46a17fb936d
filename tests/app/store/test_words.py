import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.words import Query, indexed, terms


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hello, World!", "hello world"),
        ("Façade — NAÏVE", "facade naive"),
        ("Straße", "strasse"),
        ("snake_case x1", "snake case x1"),
        ("東京タワー", "東 京 タ ワ ー"),
        ("がぎ かき", "が ぎ か き"),
        ("ｶﾅ", "カ ナ"),
        ("說speculative詞", "說 speculative 詞"),
        ("كَتَبَ الرســالة", "كتب الرسالة"),
        ("שָׁלוֹם", "שלום"),
        ("हिन्दी", "हिनदी"),
        ("สวัสดี", "ส ว ั ส ด ี"),
        ("ship it 🚀🎉", "ship it 🚀 🎉"),
        ("① ㈠", "1 一"),
        ("\0\x1b[2J \ud800", "2j"),
        ("'\"*()^-: _", ""),
    ],
)
def test_terms_are_words_without_case_and_accents(text: str, kept: str) -> None:
    assert indexed(text) == kept


@given(st.text())
def test_a_term_is_what_fts5_takes_for_one(text: str) -> None:
    for term in terms(text):
        assert term.folded
        assert all(c.isalnum() if c.isascii() else not c.isspace() or c > "\x7f" for c in term.folded)
        assert '"' not in term.folded
        assert 0 <= term.start < term.end <= len(text)


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("plan", '"plan"*'),
        ("The Plan", '"the" AND "plan"*'),
        ("snake_ca", '"snake ca"*'),
        ("東京 tow", '"東 京" AND "tow"*'),
        ('a" OR b NOT "c*', '"a" AND "or" AND "b" AND "not" AND "c"*'),
        ("NEAR(a b)", '"near a" AND "b"*'),
    ],
)
def test_a_query_means_no_more_than_its_words(query: str, match: str) -> None:
    assert Query(query).match() == match


@pytest.mark.parametrize("nothing", ["", " ", "?!", '"', "\x1b"])
def test_a_query_without_a_word_asks_for_nothing(nothing: str) -> None:
    assert not Query(nothing)


def marked(query: str, text: str, width: int = 120) -> str:
    """The excerpt with brackets around what matches."""
    shown, spans = Query(query).excerpt(text, width)
    for start, end in reversed(spans):
        shown = f"{shown[:start]}[{shown[start:end]}]{shown[end:]}"
    return shown


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("plan", "One plan,\n\n  two Planners", "One [plan], two [Planners]"),
        ("the plan", "the plan of the planet", "[the] [plan] of [the] [planet]"),
        ("京タ", "東京タワー", "東[京タ]ワー"),
        ("日日", "日日日", "[日日日]"),
        ("كتب", "هو كَتَبَ", "هو [كَتَبَ]"),
        ("snake_ca", "a snake_case", "a [snake_case]"),
        ("nowhere", "some text", "some text"),
        ("x", "\x1b[2J x", "␛[2J [x]"),
    ],
)
def test_an_excerpt_shows_what_matches(query: str, text: str, shown: str) -> None:
    assert marked(query, text) == shown


def test_an_excerpt_is_cut_around_the_place_with_most_words() -> None:
    text = "the train " * 50 + "and the planner comes " + "the train " * 50
    shown = marked("the planner", text, 60)
    assert "[the] [planner]" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(Query("the planner").excerpt(text, 60)[0]) == 62


@given(st.text(), st.text(max_size=8), st.integers(4, 60))
def test_spans_lie_in_the_excerpt_in_order(text: str, query: str, width: int) -> None:
    shown, spans = Query(query).excerpt(text, width)
    assert len(shown) <= width + 2
    assert "\n" not in shown
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < end for start, end in spans)
    assert not edges or (edges[0] >= 0 and edges[-1] <= len(shown))


@given(st.text(min_size=1, max_size=40), st.data())
def test_each_word_of_a_text_is_marked_in_it(text: str, data: st.DataObject) -> None:
    line = " ".join(text.split())
    found = list(terms(line))
    if found:
        term = data.draw(st.sampled_from(found))
        _, spans = Query(line[term.start : term.end]).excerpt(line)
        assert any(start <= term.start and term.end <= end for start, end in spans)
