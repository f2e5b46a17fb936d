"""One answer: streamed while it is written, drawn anew at its end, with a line of figures below.

What is shown at the end is the entry's text, whatever came over the stream.  Coloured, it shows the tokens that the
text was made of in place of the text; where they are not known it asks for them, and shows the text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from app import figures, thinking
from app.settings import Thoughts
from app.transcript import Entry
from app.widgets.answer_body import AnswerBody
from app.widgets.chat_message import ChatMessage
from app.widgets.coloured_answer import ColouredAnswer, quoted
from app.widgets.prose import ProseFence, code_blocks
from engine.events import TokenTrace


class AnswerMessage(ChatMessage):
    """An answer, finished (an entry) or being written (None)."""

    BINDINGS = [
        Binding("t", "thoughts", "Thoughts", id="message.thoughts", tooltip="Show or hide what the model thought"),
        Binding("y", "copy_code", "Copy code", id="message.code", tooltip="Copy a block of code, then the next one"),
        Binding(
            "right", "token(1)", "Next token", id="message.token", show=False,
            tooltip="Show the chances of the next token of a coloured answer",
        ),
        Binding(
            "left", "token(-1)", "Token before", id="message.token_before", show=False,
            tooltip="Show the chances of the token before, of a coloured answer",
        ),
        Binding(
            "n", "refused(1)", "Next refusal", id="message.refused", show=False,
            tooltip="Show the next token that stands in the place of a refused draft",
        ),
        Binding(
            "p", "refused(-1)", "Refusal before", id="message.refused_before", show=False,
            tooltip="Show the token before that stands in the place of a refused draft",
        ),
    ]  # fmt: skip

    @dataclass
    class TraceWanted(ChatMessage.Wanted):
        """The tokens are to be shown and are not known here: `show_trace` takes them."""

    coloured: reactive[bool] = reactive(False, init=False)
    """Whether the tokens are shown in place of the text."""

    def __init__(self, entry: Entry | None = None, *, coloured: bool = False, thoughts: Thoughts = "folded") -> None:
        super().__init__(entry)
        self.set_reactive(AnswerMessage.coloured, coloured)
        self.set_class(entry is None, "-writing")
        self._text = entry.text if entry else ""
        self._opening = entry.opening if entry else ""
        self._trace = list(entry.trace) if entry else []
        self._body = AnswerBody(self._text, self._opening, streaming=entry is None, thoughts=thoughts)
        self._tokens: ColouredAnswer | None = None
        self._receipt = Static(self._about(), classes="receipt", markup=False)
        self._code = -1

    def compose(self) -> ComposeResult:
        """The text, its figures, and the line below."""
        yield self._body
        yield self._receipt
        yield self.foot

    async def on_mount(self) -> None:
        """Say how long it thought; show the tokens where they are wanted."""
        self._say_thoughts()
        await self.watch_coloured()

    @property
    def text(self) -> str:
        """All of it so far, whatever part of it is drawn."""
        return self._text

    # While it is written

    async def write(self, text: str, trace: Sequence[TokenTrace] = (), opening: str = "") -> None:
        """Append text, and tokens as far as they are known; a finished answer is gone on with.

        `opening`: the tag by which its prompt opened a thought, in which the whole of it begins; empty: none.
        """
        async with self.lock:
            self.add_class("-writing")
            self._text += text
            self._opening = opening = opening or self._opening
            self._trace += trace
            if self._tokens is not None:
                self._tokens.add(trace)
            else:
                await self._body.write(self._text, opening, len(trace))
                await self._show_tokens()

    async def finish(self, entry: Entry) -> None:
        """End the stream and show the whole answer."""
        async with self.lock:
            self.entry, self._text, self._opening = entry, entry.text, entry.opening
            self._trace = list(entry.trace) or self._trace
            if self._tokens is None:
                await self._body.finish(entry.text, entry.opening)
            self._say_thoughts()
            self._receipt.update(self._about())
            self._show_foot()
            self.remove_class("-writing")

    async def show_trace(self, trace: Sequence[TokenTrace]) -> None:
        """Take the tokens of a finished answer; none where they were not kept."""
        async with self.lock:
            self._trace = list(trace)
            await self._show_tokens()

    def show_thoughts(self, thoughts: Thoughts) -> None:
        """Fold and unfold them so, but for those that the reader folded or unfolded."""
        self._body.show_thoughts(thoughts)

    # Text or tokens

    async def watch_coloured(self) -> None:
        """Show the one or the other; ask for tokens that are not known."""
        async with self.lock:
            await self._show_tokens()
        if self.coloured and not self._trace and self.entry is not None:
            self.post_message(self.TraceWanted(self))

    async def _show_tokens(self) -> None:
        wanted = self.coloured and bool(self._trace)
        if wanted and self._tokens is None:
            self._tokens = ColouredAnswer(self._trace)
            self._body.display = False
            await self.mount(self._tokens, before=self._receipt)
        elif not wanted and self._tokens is not None:
            tokens, self._tokens = self._tokens, None
            if self.has_class("-writing"):
                await self._body.write(self._text, self._opening)
            else:
                await self._body.finish(self._text, self._opening)
                self._say_thoughts()
            self._body.display = True
            await tokens.remove()

    # What is said of it

    def _about(self) -> Content:
        if (entry := self.entry) is None:
            return Content()
        said = figures.summary(entry.answer, self._tied()) if entry.answer else ""
        flag = Content.styled(entry.ending, "$text-warning") if entry.ending else Content()
        return Content(" · ").join([part for part in (flag, Content(said)) if part])

    def _tied(self) -> str:
        """The text of the first token that was nearly another one, where it is known."""
        ties = self.entry.answer.verdict.near_ties if self.entry and self.entry.answer else []
        return quoted(self._trace[ties[0]].text).plain if ties and ties[0] < len(self._trace) else ""

    def _say_thoughts(self) -> None:
        """How many tokens each thought has, and about how long they took at the speed of the answer."""
        answer = self.entry.answer if self.entry else None
        if answer is None or not self._text:
            return
        for part, thought in self._body.thoughts:
            share = (part.end - part.start) / len(self._text)
            thought.tokens = _count(self._trace, part) or round(len(answer.ids) * share)
            tps = answer.timings.decode_tps
            thought.seconds = thought.tokens / tps if tps else None

    # What can be done with it

    def offers(self) -> Iterable[str]:
        """Nothing while it is written; to go on only where it is not whole, its draws only where they are known."""
        if self.entry is None:
            return ()
        drawn = ("warmer", "same_seed") if self.entry.answer else ()
        return ("edit", "again", *drawn, *(("go_on",) if self.entry.ending else ()), "branch", "copy")

    def copied(self) -> str:
        """The answer without its thoughts."""
        return thinking.said(self._text, self._opening)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys for thoughts, code and tokens are there only where these are."""
        if action == "thoughts":
            return bool(self._body.thoughts)
        if action == "copy_code":
            return "```" in self._text or "~~~" in self._text
        if action in ("token", "refused"):
            return self._tokens is not None
        return super().check_action(action, parameters)

    def action_thoughts(self) -> None:
        """Fold or unfold all thoughts."""
        for _, thought in self._body.thoughts:
            thought.toggle()

    def action_copy_code(self) -> None:
        """Copy one block of code after the other."""
        if blocks := code_blocks(self.copied()):
            self._code = (self._code + 1) % len(blocks)
            self.post_message(self.CopyWanted(self, blocks[self._code]))

    def on_prose_fence_copy_wanted(self, event: ProseFence.CopyWanted) -> None:
        """Copy that block."""
        event.stop()
        self.post_message(self.CopyWanted(self, event.code))

    def action_token(self, step: int) -> None:
        """Show the next token, or the one before."""
        if self._tokens is not None:
            self._tokens.text.move(step)

    def action_refused(self, step: int) -> None:
        """Show the next token that stands in the place of a refused draft, or the one before."""
        if self._tokens is not None:
            self._tokens.text.move(step, refused=True)


def _count(trace: Sequence[TokenTrace], part: thinking.Part) -> int:
    """How many tokens begin in a part; 0 where they are not known."""
    at = count = 0
    for token in trace:
        count += part.start <= at < part.end
        at += len(token.text)
    return count
