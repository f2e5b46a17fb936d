"""One answer: streamed Markdown while it is written, one full update at its end, and a line of figures below.

What is shown at the end is the entry's text, whatever came over the stream.
"""

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from app import figures
from app.transcript import Entry
from app.widgets.prose import Prose, plain


class AnswerMessage(Vertical):
    """An answer, finished (an entry) or being written (None)."""

    def __init__(self, entry: Entry | None = None) -> None:
        super().__init__(classes="" if entry else "-writing")
        self._entry = entry
        self._prose = Prose(entry.text if entry else None, streaming=entry is None)
        self._receipt = Static(self._about(entry), classes="receipt", markup=False)
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        """The text, then its figures."""
        yield self._prose
        yield self._receipt

    async def write(self, text: str) -> None:
        """Append text to the answer."""
        if self._stream is None:
            self._stream = Markdown.get_stream(self._prose)
        await self._stream.write(plain(text))

    async def finish(self, entry: Entry) -> None:
        """End the stream and show the whole answer."""
        self._entry = entry
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None
        self._prose.streaming = False
        await self._prose.update(plain(entry.text))
        self._receipt.update(self._about(entry))
        self.remove_class("-writing")

    @staticmethod
    def _about(entry: Entry | None) -> Content:
        if entry is None:
            return Content()
        said = figures.summary(entry.answer) if entry.answer else ""
        flag = Content.styled(entry.ending, "$text-warning") if entry.ending else Content()
        return Content(" · ").join([part for part in (flag, Content(said)) if part])
