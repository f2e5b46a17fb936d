"""A long answer in passages: pieces of Markdown that end where a block of it ends, of which those near the view are
widgets.

The passages' texts, one after another, are the answer's text.  Only the last one is ever parsed again while an answer
is written, so that a piece of text costs the same however long the answer is.
"""

import asyncio
from functools import cache

from markdown_it import MarkdownIt
from rich.cells import cell_len
from textual.worker import Worker

from app.widgets.column import Column
from app.widgets.prose import Prose, plain
from app.widgets.row import Row

LINES = 40
"""Lines of a passage beyond which the next block begins another one."""
CHARACTERS = 4_000
"""The same in characters."""
SIDES = 5
"""Cells beside the text."""


def lines_of(text: str) -> list[str]:
    """The lines with their ends, counted as the parser counts them."""
    *whole, last = text.split("\n")
    return [*(line + "\n" for line in whole), *([last] if last else [])]


def lines_taken(text: str, width: int) -> int:
    """About how many lines a text takes at a width in cells."""
    room = max(1, width)
    cells = len if text.isascii() else cell_len
    return sum(1 + max(0, cells(line) - 1) // room for line in text.split("\n"))


def is_long(text: str) -> bool:
    """Whether a passage of this text is long enough."""
    return len(text) > CHARACTERS or text.count("\n") > LINES


@cache
def block_parser() -> MarkdownIt:
    """The parser without what goes on inside of blocks."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table"])
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


def cut(text: str) -> list[str]:
    """The passages of a whole answer."""
    if not is_long(text):
        return [text]
    lines = lines_of(text)
    starts = [token.map[0] for token in block_parser().parse(text) if token.level == 0 and token.map]
    pieces, begin = [], 0
    for start in starts:
        if start > begin and is_long("".join(lines[begin:start])):
            pieces.append("".join(lines[begin:start]))
            begin = start
    return [*pieces, "".join(lines[begin:])]


class Passage(Row):
    """A row that is a piece of Markdown."""

    def __init__(self, text: str, *, open: bool = False) -> None:
        super().__init__(self._built, self._guessed, kept=open)
        self.text = text

    def _built(self) -> Prose:
        """One that is open gets its text by `append`, since Markdown that was set can't be appended to."""
        return Prose(None if self.kept else self.text, streaming=self.kept)

    def _guessed(self, width: int) -> int:
        return lines_taken(self.text.rstrip("\n"), width - SIDES) + 1

    @property
    def prose(self) -> Prose | None:
        """The widget, while there is one."""
        return self.widget if isinstance(self.widget, Prose) else None


class Passages(Column):
    """The Markdown of one answer, whole or being written; its face is that of `Prose`."""

    def __init__(self, text: str = "", *, streaming: bool = False) -> None:
        """`streaming`: more is to come."""
        self._pending: list[str] = []
        self._news = asyncio.Event()
        self._ended = not streaming
        self._writer: Worker[None] | None = None
        *whole, last = cut(plain(text))
        super().__init__([*(Passage(piece) for piece in whole), Passage(last, open=streaming)])

    async def on_mount(self) -> None:
        """Show the beginning of what is still to grow."""
        last = self._last
        if last.kept and last.prose is not None and last.text:
            await last.prose.append(last.text)

    @property
    def source(self) -> str:
        """The text of all passages."""
        return "".join(row.text for row in self.rows if isinstance(row, Passage))

    @property
    def _last(self) -> Passage:
        last = self.rows[-1]
        assert isinstance(last, Passage)
        return last

    async def write(self, text: str) -> None:
        """Take in more text; it is shown as soon as what came before it is."""
        self._pending.append(plain(text))
        self._news.set()
        if self._writer is None:
            self._writer = self.run_worker(self._write(), group="write")

    async def _write(self) -> None:
        while self._pending or not self._ended:
            text = "".join(self._pending)
            self._pending.clear()
            if text:
                await self._append(text)
            else:
                self._news.clear()
                await self._news.wait()

    async def _append(self, text: str) -> None:
        row = self._last
        row.text += text
        if row.prose is not None:
            await row.prose.append(text)
            if is_long(row.text):
                await self._part(row, row.prose)

    async def _part(self, row: Passage, prose: Prose) -> None:
        """End a passage before the block that is open, which begins the next one."""
        lines = lines_of(row.text)
        start = prose._last_parsed_line
        if not 0 < start < len(lines):
            return
        row.kept = False
        row.text, *more = cut("".join(lines[:start]))
        following = Passage("".join(lines[start:]), open=True)
        with self.app.batch_update():
            prose.streaming = False
            await prose.update(row.text)
            for piece in more:
                await self.put(Passage(piece))
            await self.put(following)
            if following.prose is not None:
                await following.prose.append(following.text)
            await self.fill()

    async def finish(self, text: str) -> None:
        """End the writing; what is shown is this text, whatever came before."""
        self._ended = True
        self._news.set()
        if self._writer is not None:
            await self._writer.wait()
        rest, stay = plain(text), list[Row]()
        for row in self.rows[:-1]:
            assert isinstance(row, Passage)
            if not rest.startswith(row.text):
                break
            rest = rest[len(row.text) :]
            stay.append(row)
        last = self._last
        last.text, *more = cut(rest)
        last.kept = False
        if last.prose is not None:
            last.prose.streaming = False
            await last.prose.update(last.text)
        await self.exchange([*stay, last, *(Passage(piece) for piece in more)])
        await self.fill()
