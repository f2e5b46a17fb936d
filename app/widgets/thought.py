"""One think block of an answer: a line that says how long it thought, and below it, unfolded, what it thought."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from app import figures
from app.themes import MUTED
from app.widgets.passages import Passages


class Thought(Vertical):
    """A think block; its text is Markdown, mounted only while it is unfolded."""

    folded: reactive[bool] = reactive(True, init=False)
    tokens: reactive[int] = reactive(0)
    """How many tokens it has so far; 0: not known."""
    seconds: reactive[float | None] = reactive[float | None](None)
    """About how long it took, once that is known."""

    def __init__(self, text: str, *, growing: bool, folded: bool = True) -> None:
        super().__init__()
        self.set_reactive(Thought.folded, folded)
        self._text, self._growing, self._chosen = text, growing, False
        self._head = Static(classes="head", markup=False)
        self._head.tooltip = Content("Show or hide what it thought")
        self._prose: Passages | None = None

    def compose(self) -> ComposeResult:
        """The line, and the thoughts where they are unfolded."""
        yield self._head
        if not self.folded:
            self._prose = Passages(self._text, streaming=self._growing)
            yield self._prose

    def on_mount(self) -> None:
        """Say what it is."""
        self._say()

    def toggle(self) -> None:
        """Fold or unfold it, as the reader wants it; from now on it stays so."""
        self._chosen = True
        self.folded = not self.folded

    def settle(self, folded: bool) -> None:
        """Fold or unfold it, unless the reader did."""
        if not self._chosen:
            self.folded = folded

    async def watch_folded(self, folded: bool) -> None:
        """Mount the thoughts, or take them away."""
        self._say()
        if folded:
            self._prose = None
            await self.query(Passages).remove()
        else:
            await self._unfold()

    async def _unfold(self) -> None:
        shown = self._text
        prose = Passages(shown, streaming=self._growing)
        await self.mount(prose)
        self._prose = prose
        if rest := self._text[len(shown) :]:
            await prose.write(rest)

    def watch_tokens(self) -> None:
        """Say how many."""
        self._say()

    def watch_seconds(self) -> None:
        """Say how long."""
        self._say()

    async def write(self, text: str) -> None:
        """Append text to the thoughts."""
        self._text += text
        if self._prose is not None:
            await self._prose.write(text)

    async def finish(self, text: str) -> None:
        """The block is whole."""
        self._text, self._growing = text, False
        self._say()
        if self._prose is not None:
            await self._prose.finish(text)

    def _say(self) -> None:
        parts = ["thinking …" if self._growing else "thought"]
        if self.tokens:
            parts.append(figures.count(self.tokens, "token"))
        if self.seconds is not None:
            parts.append(f"about {figures.wait(self.seconds)}")
        sign = "▸" if self.folded else "▾"
        self._head.update(Content.assemble((f"{sign} ", "$text-accent"), (" · ".join(parts), MUTED)))

    def on_click(self, event: events.Click) -> None:
        """A click on the line folds or unfolds."""
        if event.widget is self._head:
            event.stop()
            self.toggle()
