"""Drawings: exactly as wide as asked, and true to their figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.widgets import gauges

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=6)
WIDTH = st.integers(0, 60)


@given(values=st.lists(st.none() | st.floats(0, 1e6), max_size=90), width=st.integers(1, 60), rows=st.integers(1, 3))
def test_columns_have_their_size(values: list[float | None], width: int, rows: int) -> None:
    lines = gauges.columns(values, width, rows)
    assert [len(line) for line in lines] == [width] * rows


def test_columns_rise_with_their_values() -> None:
    assert gauges.columns([0, 1, 2, 4, 8, None, 8], 8) == ["▁▁▂▄█ █ "]
    assert gauges.columns([8, 4, 1], 3, rows=2) == ["█  ", "██▂"]
    assert gauges.columns([0.5], 1, top=1.0) == ["▄"]


def test_columns_that_do_not_fit_are_averaged() -> None:
    assert gauges.columns([1, 3, 8, 8], 2) == ["▂█"]


@given(shares=SHARES, width=WIDTH)
def test_cells_are_all_given_and_nothing_small_is_lost(shares: list[float], width: int) -> None:
    given_cells = gauges.cells(shares, width)
    total = sum(shares)
    assert sum(given_cells) == (width if total > 0 else 0)
    for share, cells in zip(shares, given_cells, strict=True):
        assert cells >= 0
        assert share > 0 or cells == 0
        if share > 0 and width >= len(shares):
            assert cells >= 1
    if total > 0 and all(width * share / total >= 1 for share in shares):
        assert all(abs(cells - width * share / total) < 1 for share, cells in zip(shares, given_cells, strict=True))


@given(share=st.none() | st.floats(-1, 2), width=WIDTH)
def test_a_bar_has_its_width(share: float | None, width: int) -> None:
    assert gauges.bar(share, width, "red").cell_length == width


@pytest.mark.parametrize(("share", "full"), [(None, 0), (0.0, 0), (0.5, 5), (1.0, 10), (3.0, 10)])
def test_a_bar_is_as_full_as_its_share(share: float | None, full: int) -> None:
    assert gauges.bar(share, 10, "red").plain.count("━") == full


@given(needed=st.none() | st.floats(0, 2), observed=st.none() | st.floats(0, 1), width=st.integers(1, 40))
def test_a_gauge_has_its_width(needed: float | None, observed: float | None, width: int) -> None:
    assert gauges.gauge(needed, observed, width).cell_length == width


def test_what_may_come_on_top_of_a_bar_is_broken() -> None:
    assert gauges.bar(0.5, 10, "red", 0.2).plain == "━━━━━╍╍───"
    assert gauges.bar(0.5, 10, "red", 7.0).plain == "━━━━━╍╍╍╍╍"


def test_a_gauge_marks_what_is_needed() -> None:
    assert gauges.gauge(0.5, 0.8, 10).plain == "━━━━━┃━━──"
    assert gauges.gauge(1.0, 0.2, 10).plain == "━━───────┃"
    assert gauges.gauge(None, 0.2, 10).plain == "━━────────"
    styles = [{str(span.style) for span in gauges.gauge(0.5, has, 10).spans} for has in (0.8, 0.2)]
    assert "$success" in styles[0]
    assert "$warning" in styles[1]
