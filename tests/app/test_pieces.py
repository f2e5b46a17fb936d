"""Cutting Markdown: nothing is lost, blocks stay what they are, and no piece is long."""

from hypothesis import given
from hypothesis import strategies as st

from app.widgets.pieces import CHARACTERS, CODE_LINES, LINES, Piece, cut, lines_of, lines_taken
from app.widgets.prose import code_blocks, parser

BLOCKS = [
    "# Title\n\n",
    "- a\n- b\n\n- c\n\nend\n\n",
    "```python\nx = 1\n\ny = 2\n```\n\n",
    "text\nmore\n\n",
    "| a |\n|---|\n| 1 |\n\n",
    "1. x\n\n   y\n2. z\n\nend\n\n",
]
texts = st.lists(st.sampled_from(BLOCKS), max_size=40).map("".join)


def kinds(text: str) -> list[tuple[str, str]]:
    """The blocks that the parser sees, outermost and innermost."""
    return [(token.type, token.content) for token in parser().parse(text)]


@given(texts)
def test_a_text_is_cut_between_its_blocks(text: str) -> None:
    pieces = cut(text)
    assert "".join(piece.text for piece in pieces) == text
    assert [kind for piece in pieces for kind in kinds(piece.text)] == kinds(text)
    assert all(piece.text.count("\n") <= LINES + 9 for piece in pieces)
    assert not any(piece.lead or piece.divided for piece in pieces)


OPENINGS = {"```py\n": "```\n", "~~~~ c\n": "~~~~~\n", "  ```\n": "```\n"}


@given(st.integers(1, 500), st.integers(1, 200), st.booleans(), st.sampled_from(list(OPENINGS)), texts)
def test_long_code_is_divided_and_stays_code(lines: int, blank: int, closed: bool, opening: str, after: str) -> None:
    code = "".join("\n" * (number % 9 == 8) * blank + f"line {number}\n" for number in range(lines))
    text = f"before\n\n{opening}{code}" + (f"{OPENINGS[opening]}\n{after}" if closed else "")
    pieces = cut(text)
    assert "".join(piece.text for piece in pieces) == text
    shown = "\n".join(block for piece in pieces for block in code_blocks(piece.lead + piece.text))
    assert shown == "\n".join(code_blocks(text))
    assert sum(piece.lead == opening for piece in pieces) == sum(piece.divided for piece in pieces)
    if blank < CODE_LINES:
        assert all(piece.text.count("\n") <= 2 * CODE_LINES + LINES + 9 for piece in pieces)


@given(st.integers(1, 400), st.sampled_from(["- ", "1. "]))
def test_a_long_list_is_divided_between_its_items(items: int, bullet: str) -> None:
    text = "".join(f"{bullet}item\n  more\n" for _ in range(items))
    pieces = cut(text)
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text.startswith(bullet) and piece.lead == "" for piece in pieces)
    assert all(piece.text.count("\n") <= LINES + 2 for piece in pieces)


@given(st.integers(0, 600), st.integers(1, 600))
def test_what_was_cut_while_it_grew_goes_on_as_it_was(first: int, second: int) -> None:
    """A text cut at one moment, and the rest of it later behind the line that its last piece is read behind."""
    text = "```py\n" + "".join(f"line {number}\n" for number in range(first + second)) + "```\nend"
    *whole, last = cut(text[: 6 + 8 * first])
    rest = text[sum(len(piece.text) for piece in whole) :]
    pieces = [*whole, *cut(rest, last.lead)]
    assert "".join(piece.text for piece in pieces) == text
    shown = "\n".join(block for piece in pieces for block in code_blocks(piece.lead + piece.text))
    assert shown == "\n".join(code_blocks(text))


@given(st.text(alphabet="ab\n `#-", max_size=60))
def test_lines_are_counted_as_the_parser_counts_them(text: str) -> None:
    assert "".join(lines_of(text)) == text
    assert all(line.count("\n") <= 1 for line in lines_of(text))


def test_a_guess_counts_cells() -> None:
    assert lines_taken("x" * 30, 10) == 3
    assert lines_taken("漢" * 30, 10) == 6
    assert lines_taken("a\n\nb", 0) == 3


def test_a_piece_is_long_by_lines_or_by_characters() -> None:
    assert len(cut("a\n\n" * LINES)) > 1
    assert len(cut(("x" * CHARACTERS + "\n\n") * 3)) == 3
    assert cut("a\n\n" * 3) == [Piece("a\n\n" * 3)]
