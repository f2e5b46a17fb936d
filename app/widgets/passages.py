"""A long answer in passages: pieces of Markdown that end where a block of it ends, of which those near the view are
widgets.

The passages' texts, one after another, are the answer's text.  Only the last one is ever parsed again while an answer
is written, so that a piece of text costs the same however long the answer is.
"""

import asyncio

from textual.widgets._markdown import MarkdownBlock
from textual.worker import Worker

from app.widgets.column import Column, discard
from app.widgets.pieces import Piece, block_parser, can_end, cut, lines_taken
from app.widgets.prose import STREAMED_CODE, Prose, ProseFence, code_blocks, plain
from app.widgets.row import Row

SIDES = 5
"""Cells beside the text."""


async def shorten(prose: Prose, text: str) -> None:
    """Show the first blocks alone, which make up this text; all anew where a block is divided or lacks its colours."""
    count = sum(token.level == 0 and token.nesting >= 0 for token in block_parser().parse(text))
    blocks = [child for child in prose.children if isinstance(child, MarkdownBlock)]
    plain_code = any(isinstance(block, ProseFence) and len(block.code) > STREAMED_CODE for block in blocks)
    if plain_code or len(blocks) <= count:
        await prose.update(text)
    else:
        prose._markdown = text
        await discard(prose, blocks[count:])


class Passage(Row):
    """A row that is a piece of Markdown."""

    def __init__(self, piece: Piece, *, open: bool = False) -> None:
        super().__init__(self._built, self._guessed, kept=open)
        self.piece = piece

    @property
    def piece(self) -> Piece:
        """What it shows."""
        return self._piece

    @piece.setter
    def piece(self, piece: Piece) -> None:
        self._piece = piece
        self.lap = int(piece.divided)  # the blank line below a block is not below a part of one

    @property
    def source(self) -> str:
        """The Markdown of its widget."""
        return self.piece.lead + self.piece.text

    def _built(self) -> Prose:
        """One that is open gets its text by `append`, since Markdown that was set can't be appended to."""
        return Prose(None if self.kept else self.source, streaming=self.kept)

    def _guessed(self, width: int) -> int:
        return lines_taken(self.piece.text.rstrip("\n"), width - SIDES) + 1 - self.lap

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
        if last.kept and last.prose is not None and last.source:
            await last.prose.append(last.source)

    @property
    def source(self) -> str:
        """The text of all passages."""
        return "".join(row.piece.text for row in self._passages)

    @property
    def _passages(self) -> list[Passage]:
        return [row for row in self.rows if isinstance(row, Passage)]

    @property
    def _last(self) -> Passage:
        return self._passages[-1]

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
        row.piece = row.piece._replace(text=row.piece.text + text)
        if row.prose is not None:
            await row.prose.append(text)
            if can_end(row.piece, row.prose._last_parsed_line):
                await self._part(row, row.prose)

    async def _part(self, row: Passage, prose: Prose) -> None:
        """End a passage where it can be ended; what is open goes on in the next one."""
        first, *more = cut(row.piece.text, row.piece.lead)
        if not more:
            return
        row.piece, row.kept = first, False
        *whole, last = more
        following = Passage(last, open=True)
        with self.app.batch_update():
            prose.streaming = False
            await shorten(prose, row.source)
            for piece in whole:
                await self.put(Passage(piece))
            await self.put(following)
            if following.prose is not None:
                await following.prose.append(following.source)
            await self.fill()

    async def finish(self, text: str) -> None:
        """End the writing; what is shown is this text, whatever came before."""
        self._ended = True
        self._news.set()
        if self._writer is not None:
            await self._writer.wait()
        rest, stay, lead, last = plain(text), list[Row](), "", self._last
        for row in self._passages:
            lead = row.piece.lead
            if row is last or not rest.startswith(row.piece.text):
                break
            rest = rest[len(row.piece.text) :]
            stay.append(row)
        last.piece, *more = cut(rest, lead)
        last.kept = False
        if last.prose is not None:
            last.prose.streaming = False
            await last.prose.update(last.source)
        await self.exchange([*stay, last, *(Passage(piece) for piece in more)])
        await self.fill()

    def on_prose_fence_copy_wanted(self, event: ProseFence.CopyWanted) -> None:
        """Of code that is divided, all of it is copied."""
        blocks = code_blocks(self.source)
        if event.code not in blocks:
            event.code = next((block for block in blocks if event.code in block), event.code)
