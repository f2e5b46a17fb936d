"""Markdown of models: streamed in any pieces it ends as it would have been at once, and nothing makes it fail."""

import random

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Markdown

from app.widgets.prose import FINISHED_CODE, STREAMED_CODE, Prose, ProseFence, parser, plain

PIECES = [
    "word ", "**bold", "**", "`code", "`", "\n", "\n\n", "# ", "## head", "- item", "  - deeper", "1. one", "```python",
    "```", "| a | b |", "|---|---|", "| 1 |", "|", "> quote", "---", "![x](y)", "[l](http://e.x)", "<div>",
    "    indented",    "~~", "\t", "***", "[0]: z", "\\", "&amp;", "é", "汉字", "🙂", "\u2028",
]  # fmt: skip


class ProseApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Prose(streaming=True)


def blocks(prose: Prose) -> list[tuple[str, str]]:
    return [(type(block).__name__, str(block.render())) for block in prose.query("MarkdownBlock")]


@pytest.mark.parametrize("seed", range(12))
async def test_any_pieces_can_be_streamed(seed: int) -> None:
    draw = random.Random(seed)
    text = plain("".join(draw.choice(PIECES) for _ in range(120)))
    app = ProseApp()
    async with app.run_test() as pilot:
        prose = app.query_one(Prose)
        stream = Markdown.get_stream(prose)
        start = 0
        while start < len(text):
            step = draw.randrange(1, 9)
            await stream.write(text[start : start + step])
            start += step
        await stream.stop()
        assert prose.source == text
        await prose.update(text)
        await pilot.pause()
        fresh = Prose(text)
        await app.mount(fresh)
        await pilot.pause()
        assert blocks(prose) == blocks(fresh) != []


async def test_a_table_grows_as_it_is_streamed() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n"
    app = ProseApp()
    async with app.run_test() as pilot:
        prose = app.query_one(Prose)
        for letter in text:
            await prose.append(letter)
        await pilot.pause()
        cells = [str(cell.render()) for cell in prose.query("MarkdownTableCellContents")]
        assert cells == ["a", "b", "1", "2", "3", "4", "5", "6"]


async def test_no_language_is_ever_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    def guess(*_: object) -> None:
        raise AssertionError("guessed")

    monkeypatch.setattr("textual.highlight.guess_language", guess)
    app = ProseApp()
    async with app.run_test():
        prose = app.query_one(Prose)
        await prose.update("```\nx = 1\n```\n\n    y = 2\n\n```python title=z\nz\n```\n\n```no-such\n[/]\n```")
        assert [fence.code for fence in prose.query(ProseFence)] == ["x = 1", "y = 2", "z", "[/]"]


@pytest.mark.parametrize(("streaming", "limit"), [(True, STREAMED_CODE), (False, FINISHED_CODE)])
async def test_long_code_stays_without_colours(streaming: bool, limit: int) -> None:
    app = ProseApp()
    async with app.run_test():
        prose = app.query_one(Prose)
        prose.streaming = streaming
        code = "if x: pass\n"
        await prose.update(f"```python\n{code}```\n\n```python\n{code * (limit // 10)}```")
        short, long = (fence._highlighted_code for fence in prose.query(ProseFence))
        assert isinstance(short, Content)
        assert len(short.spans) > 1
        assert long.spans == []


def test_line_ends_are_kept() -> None:
    tokens = parser().parse("one\ntwo  \nthree")[1].children or []
    assert [token.type for token in tokens] == ["text", "hardbreak", "text", "hardbreak", "text"]
