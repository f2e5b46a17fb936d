"""Markdown of models: streamed in any pieces it ends as it would have been at once, and nothing makes it fail."""

import random

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Markdown

from app.widgets.prose import FINISHED_CODE, STREAMED_CODE, Prose, ProseFence, parser, plain
from app.widgets.prose_list import FlatBullets, FlatNumbers, Hanging

PIECES = [
    "word ", "**bold", "**", "`code", "`", "\n", "\n\n", "# ", "## head", "- item", "  - deeper", "1. one", "```python",
    "```", "| a | b |", "|---|---|", "| 1 |", "|", "> quote", "---", "![x](y)", "[l](http://e.x)", "<div>",
    "    indented",    "~~", "\t", "***", "[0]: z", "\\", "&amp;", "é", "汉字", "🙂", "\u2028",
]  # fmt: skip


class ProseApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Prose(streaming=True)


def drawn(visual: object) -> str:
    return visual.laid_out(60).plain if isinstance(visual, Hanging) else str(visual)


def blocks(prose: Prose) -> list[tuple[str, str]]:
    return [(type(block).__name__, drawn(block.render())) for block in prose.query("MarkdownBlock")]


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


def drawn_at(block: FlatBullets | FlatNumbers, width: int) -> str:
    visual = block.render()
    assert isinstance(visual, Hanging)
    return visual.laid_out(width).plain


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


async def test_lists_hang_and_nest_in_one_widget() -> None:
    text = "- one **two** three four five six seven eight nine ten\n  - deep\n    1. deeper\n- \n- end\n\n  more\n"
    app = ProseApp()
    async with app.run_test(size=(30, 30)) as pilot:
        prose = app.query_one(Prose)
        for letter in text:
            await prose.append(letter)
        await pilot.pause()
        (only,) = prose.query("MarkdownBlock")
        assert isinstance(only, FlatBullets)
        assert drawn_at(only, 20) == (
            " • one two three\n   four five six\n   seven eight nine\n   ten\n"
            "    ▪ deep\n       1. deeper\n • \n • end\n   more"
        )
        assert only.size.height == drawn_at(only, only.content_size.width).count("\n") + 1
        only.text_select_all()
        assert "deeper" in (app.screen.get_selected_text() or "")


async def test_numbers_go_on_from_the_first_and_stand_flush_right() -> None:
    app = ProseApp()
    async with app.run_test() as pilot:
        prose = app.query_one(Prose)
        await prose.update("9. a\n1. b\n1. [c](http://e.x)")
        await pilot.pause()
        (only,) = prose.query("MarkdownBlock")
        assert isinstance(only, FlatNumbers)
        assert drawn_at(only, 20) == "  9. a\n 10. b\n 11. c"
        await pilot.click(FlatNumbers, offset=(5, 2))
        assert prose.query(FlatNumbers)


async def test_a_list_with_code_in_it_is_left_to_widgets_also_when_it_gets_it_late() -> None:
    text = "- plain\n- with\n  ```py\n  x\n  ```\n"
    app = ProseApp()
    async with app.run_test() as pilot:
        prose = app.query_one(Prose)
        for letter in text:
            await prose.append(letter)
        await prose.update(text)
        await pilot.pause()
        assert prose.query_one(ProseFence).code == "x"
        assert not prose.query_one(FlatBullets).flat


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


def test_text_is_shown_with_one_kind_of_line_end_and_no_control_characters() -> None:
    assert plain("a\u2028b\u2029c\nd\x1be") == "a\nb\nc\nd␛e"


def test_line_ends_are_kept() -> None:
    tokens = parser().parse("one\ntwo  \nthree")[1].children or []
    assert [token.type for token in tokens] == ["text", "hardbreak", "text", "hardbreak", "text"]
