"""Sizes and foreign text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text import plain, size


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (98_362_432, "98.4 MB"),
        (1_117_320_768, "1.12 GB"),
        (10**17, "100 PB"),
    ],
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown


@given(st.text(), st.integers(1, 50))
def test_foreign_text_becomes_one_short_printable_line(text: str, limit: int) -> None:
    assert plain(text, limit).isprintable()
    assert len(plain(text, limit)) <= limit


def test_escape_codes_lose_their_power() -> None:
    assert (
        plain("a\x1b[2J\x9b\nb") == "a\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"
    )
