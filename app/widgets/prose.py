"""A model's Markdown, shown and never obeyed: no HTML, no links followed, no text parsed as the window's own markup.

Lines stay lines, code is highlighted only as far as that is cheap, and table cells carry no tooltips (theirs would be
parsed as markup).
"""

from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown
from textual.widgets._markdown import MarkdownFence, MarkdownTable, MarkdownTableCellContents, MarkdownTableContent

from app.widgets.copy_mark import CopyMark
from app.widgets.prose_list import FlatBullets, FlatNumbers
from engine.detokenize import sanitize

STREAMED_CODE = 3_000
"""Characters of a code block beyond which its colours wait for the end of the answer."""
FINISHED_CODE = 40_000
"""Characters of a code block beyond which it stays without colours."""


_LINE_ENDS = {0x2028: "\n", 0x2029: "\n"}


def plain(text: str) -> str:
    """A model's text as it is shown: no control characters, one kind of line end; length unchanged."""
    return sanitize(text).translate(_LINE_ENDS)


def _keep_lines(state: StateCore) -> None:
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


@cache
def parser() -> MarkdownIt:
    """The one parser: CommonMark with tables and strikethrough, HTML as text, line ends kept."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.core.ruler.push("keep_lines", _keep_lines)
    return markdown


def code_blocks(text: str) -> list[str]:
    """All blocks of code of a Markdown text, in order."""
    tokens = parser().parse(plain(text))
    return [token.content.rstrip() for token in tokens if token.type in ("fence", "code_block")]


class ProseFence(MarkdownFence):
    """A code block with a corner that copies it; its language is never guessed: that would try every lexer there is."""

    @dataclass
    class CopyWanted(Message):
        """This code is to be copied."""

        code: str

    def compose(self) -> ComposeResult:
        """The code, and the corner over it."""
        yield from super().compose()
        yield CopyMark()

    def highlight(self, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:  # type: ignore[override]
        """Coloured code, or plain where colours cost too much."""
        prose = self._markdown
        limit = STREAMED_CODE if isinstance(prose, Prose) and prose.streaming else FINISHED_CODE
        words = language.split()
        if not words or len(code) > limit:
            return Content(code.expandtabs(8))
        return super().highlight(code, words[0], ansi=ansi, dark=dark)

    def on_enter(self) -> None:
        """Show the corner."""
        self.set_class(self.is_mouse_over, "-hover")

    def on_leave(self) -> None:
        """Hide it once the mouse is really elsewhere."""
        self.set_class(self.is_mouse_over, "-hover")

    def on_copy_mark_clicked(self, event: CopyMark.Clicked) -> None:
        """Say what is to be copied."""
        event.stop()
        self.post_message(self.CopyWanted(self.code))


class ProseTableContent(MarkdownTableContent):
    """A table without tooltips."""

    def compose(self) -> ComposeResult:
        """The cells, the header's first."""
        for cell in super().compose():
            yield cell.with_tooltip(None)

    async def _update_rows(self, updated_rows: list[list[Content]]) -> None:
        self.styles.grid_size_columns = len(self.headers)
        await self.query_children(f".cell.row{self.last_row}").remove()
        cells = [
            MarkdownTableCellContents(cell, classes=f"row{number} cell")
            for number, row in enumerate(updated_rows, self.last_row)
            for cell in row
        ]
        self.last_row += max(0, len(updated_rows) - 1)
        await self.mount_all(cells)


class ProseTable(MarkdownTable):
    """A table that can grow while it is streamed."""

    def compose(self) -> ComposeResult:
        """The one grid that holds the cells."""
        self._headers, self._rows = self._get_headers_and_rows()
        yield ProseTableContent(self._headers, self._rows)


class Prose(Markdown):
    """Markdown of a model."""

    BLANK = True  # its blocks draw all that there is to see
    BLOCKS = {
        **Markdown.BLOCKS,
        "fence": ProseFence,
        "code_block": ProseFence,
        "table_open": ProseTable,
        "bullet_list_open": FlatBullets,
        "ordered_list_open": FlatNumbers,
    }

    @dataclass
    class LinkChosen(Message):
        """The reader chose a link; nothing has been opened."""

        address: str

    def __init__(self, text: str | None = None, *, streaming: bool = False) -> None:
        super().__init__(plain(text) if text else None, parser_factory=parser, open_links=False)
        self.streaming = streaming

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Tell the address instead of following it."""
        event.stop()
        self.post_message(self.LinkChosen(event.href))
