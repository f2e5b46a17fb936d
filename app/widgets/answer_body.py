"""The text of one answer: its prose, and its think blocks folded away.

One invariant: the widgets, in order, are those of `thinking.split` of the text that was shown so far.  A text that
grows mostly makes its last part grow; where its parts turn out otherwise, widgets are made anew from the first that
differs.
"""

from textual.app import ComposeResult
from textual.containers import Vertical

from app.settings import Thoughts
from app.thinking import Part, pending, split
from app.widgets.passages import Passages
from app.widgets.thought import Thought


class AnswerBody(Vertical):
    """Prose and thoughts, streamed or whole."""

    BLANK = True  # else Textual draws a blank line for every line of it, seen or not

    def __init__(self, text: str, opening: str = "", *, streaming: bool, thoughts: Thoughts = "folded") -> None:
        """`opening`: the tag by which the prompt opened a thought, in which the text begins; empty: none."""
        super().__init__()
        self._text, self._opening, self._streaming, self._shown = text, opening, streaming, thoughts
        self._parts = split(text, opening)
        self._widgets = [self._widget(part) for part in self._parts]

    def compose(self) -> ComposeResult:
        """The parts, in order."""
        yield from self._widgets

    @property
    def thoughts(self) -> list[tuple[Part, Thought]]:
        """Each think block and its widget."""
        pairs = zip(self._parts, self._widgets, strict=True)
        return [(part, widget) for part, widget in pairs if isinstance(widget, Thought)]

    async def write(self, text: str, opening: str = "", tokens: int = 0) -> None:
        """Show this text, which begins with what is shown, and is so many tokens longer; more is to come.

        What may be the beginning of a tag waits.
        """
        if not self._streaming:
            self._streaming = True
            await self._replace(len(self._parts) - 1, self._parts)
        self._text, self._opening = text, opening
        await self._fit(text[: len(text) - pending(text)])
        last = self._widgets[-1]
        if isinstance(last, Thought):
            last.tokens += tokens

    async def finish(self, text: str, opening: str = "") -> None:
        """Show the whole text; what was streamed is drawn anew."""
        streamed, self._streaming = self._streaming, False
        self._text, self._opening = text, opening
        await self._fit(text)
        if streamed:
            for part, widget in zip(self._parts, self._widgets, strict=True):
                await widget.finish(text[part.start : part.end])
        self._settle()

    def show_thoughts(self, thoughts: Thoughts) -> None:
        """Fold and unfold them so, but for those that the reader folded or unfolded."""
        self._shown = thoughts
        self._settle()

    def _settle(self) -> None:
        for part, thought in self.thoughts:
            thought.settle(self._folded(part))

    def _folded(self, part: Part) -> bool:
        """Whether a thought is folded: not where they are wanted open, nor where it is all there is."""
        if self._shown == "open":
            return False
        if part.open and self._streaming:
            return self._shown == "folded"
        return self._streaming or any(one.kind == "text" for one in self._parts)

    def _widget(self, part: Part) -> Passages | Thought:
        text = self._text[part.start : part.end]
        if part.kind == "text":
            return Passages(text, streaming=self._streaming)
        return Thought(text, growing=part.open and self._streaming, folded=self._folded(part))

    async def _fit(self, text: str) -> None:
        """Make the widgets those of this text, which is the one shown or the first part of it."""
        old, new, same = self._parts, split(text, self._opening), 0
        while same < min(len(new), len(old)) and new[same] == old[same]:
            same += 1
        if same < min(len(new), len(old)) and _grown(old[same], new[same]):
            await self._grow(old[same], new[same], self._widgets[same], text)
            same += 1
        await self._replace(same, new)

    async def _replace(self, start: int, parts: tuple[Part, ...]) -> None:
        """Keep the widgets before `start`, and make the others anew from these parts."""
        self._parts = parts
        gone, added = self._widgets[start:], [self._widget(part) for part in parts[start:]]
        self._widgets[start:] = added
        for widget in gone:
            await widget.remove()
        if added:
            await self.mount_all(added)

    async def _grow(self, before: Part, now: Part, widget: Passages | Thought, text: str) -> None:
        if more := text[before.end : now.end]:
            await widget.write(more)
        if isinstance(widget, Thought) and before.open and not now.open:
            await widget.finish(text[now.start : now.end])
            widget.settle(self._folded(now))


def _grown(before: Part, now: Part) -> bool:
    """Whether a part is another one with more text."""
    return (before.kind, before.start) == (now.kind, now.start) and before.end <= now.end and before.open >= now.open
