"""The text of an answer as its tokens: each in the look of where it came from, one of them chosen by mouse or keys.

The text is drawn letter by letter, Markdown's marks included, so that every token stands where it was written.  Looks
differ in colour and in letter style: bold, underlined, italic, double underlined (reversed without colours).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from app.origins import LOOKS
from app.widgets.woven import Woven
from engine.events import Origin, TokenTrace

LETTERS: dict[Origin, str] = {"target": "", "lookup": "underline", "model": "bold", "exit": "italic"}
"""The letter style of each origin."""
CORRECTED = "$text-error underline2"
"""The look of a token that stands in the place of a refused draft."""
CORRECTED_PLAIN = "reverse"
"""The same without colours."""


def look(origin: Origin) -> str:
    """The style of an origin's tokens."""
    return f"{LOOKS[origin].style} {LETTERS[origin]}".strip()


def style_of(token: TokenTrace, colours: bool) -> str:
    """The style of a token's text."""
    if token.refused is None:
        return look(token.origin)
    return CORRECTED if colours else CORRECTED_PLAIN


class Provenance(Widget):
    """The tokens of one answer; rows are drawn only where they are seen."""

    ALLOW_SELECT = False

    @dataclass
    class TokenShown(Message):
        """A token was chosen; None where none is any more."""

        trace: TokenTrace | None
        at: Offset
        """Its first cell, from the upper left of this widget."""

    shown: reactive[int | None] = reactive[int | None](None, init=False)
    """The number of the token that is chosen."""

    def __init__(self, tokens: Iterable[TokenTrace]) -> None:
        super().__init__()
        self._tokens = list(tokens)
        self._woven: Woven | None = None

    def add(self, tokens: Iterable[TokenTrace]) -> None:
        """Append tokens."""
        start = len(self._tokens)
        self._tokens += tokens
        if self._woven is None:
            return
        before = len(self._woven.rows)
        changed = self._woven.add((at, self._tokens[at].text) for at in range(start, len(self._tokens)))
        if len(self._woven.rows) == before:
            self.refresh(Region(0, changed, self.size.width, before - changed))
        else:
            self.refresh(layout=True)

    def woven(self, width: int) -> Woven:
        """The rows at a width."""
        if self._woven is None or self._woven.width != max(2, width):
            self._woven = Woven(width)
            self._woven.add((at, token.text) for at, token in enumerate(self._tokens))
        return self._woven

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """Rows at this width; a line end at the very end makes none."""
        rows = self.woven(width).rows
        return max(1, len(rows) - (not rows[-1]))

    def render_line(self, y: int) -> Strip:
        """One row."""
        width = self.size.width
        rows = self.woven(width).rows
        row = rows[y] if y < len(rows) else ()
        line = Content.assemble(*(self._drawn(piece.token, piece.text) for piece in row))
        return Visual.to_strips(self, line, width, 1, self.visual_style, pad=True)[0]

    def _drawn(self, token: int, text: str) -> tuple[str, str]:
        style = style_of(self._tokens[token], not self.app.no_color)
        if token == self.shown:
            style = f"{style} bold underline" if style == CORRECTED_PLAIN else f"{style} reverse"
        return text, style

    # What is chosen

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Choose the token under the mouse."""
        at = event.get_content_offset(self)
        self.shown = None if at is None else self.woven(self.size.width).at(at.x, at.y)

    def on_leave(self) -> None:
        """Choose none."""
        self.shown = None

    def watch_shown(self, shown: int | None) -> None:
        """Draw the choice and tell of it."""
        self.refresh()
        place = None if shown is None else self.woven(self.size.width).place(shown)
        trace = None if shown is None else self._tokens[shown]
        self.post_message(self.TokenShown(trace, Offset(*place) if place else Offset(0, 0)))

    def move(self, step: int, *, refused: bool = False) -> None:
        """Choose the next token that can be seen, or the one before; from none, the first or the last.

        `refused`: of those only that stand in the place of a refused draft.
        """
        woven, count = self.woven(self.size.width), len(self._tokens)
        start = self.shown if self.shown is not None else (-1 if step > 0 else count)
        for number in range(start + step, count if step > 0 else -1, step):
            wanted = not refused or self._tokens[number].refused is not None
            if wanted and (place := woven.place(number)) is not None:
                self.shown = number
                self._bring(place[1])
                return

    def _bring(self, row: int) -> None:
        """Scroll so that a row can be seen."""
        y = self.content_region.y + row
        scrolls = (one for one in self.ancestors if isinstance(one, Widget) and one.allow_vertical_scroll)
        if (view := next(scrolls, None)) is not None:
            region = view.scrollable_content_region
            beyond = min(0, y - region.y) or max(0, y - region.bottom + 1)
            view.scroll_relative(y=beyond, animate=False)
