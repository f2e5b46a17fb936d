"""Two lines of figures: how fast, how well the drafts hold, how full the context is, and why it drafts as it does.

It shows what it is given and computes nothing; a repaint never changes the layout.
"""

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from app import figures
from app.live import Live
from app.themes import MUTED
from app.widgets.bar import Progress, draw
from engine.config import Speculation
from engine.detokenize import sanitize

GAP = " · "


class StatusLine(Widget):
    """The figures of the answer being written, or of the last one."""

    speculation: reactive[Speculation] = reactive(Speculation())
    """The mode that the next round will have."""
    live: reactive[Live | None] = reactive(None)
    context: reactive[tuple[int, int] | None] = reactive(None)
    """Tokens of context used and in all."""
    receipt: reactive[tuple[int, int] | None] = reactive(None)
    """Prompt tokens that the target reused and read."""
    progress: reactive[Progress | None] = reactive(None)
    """What is under way; it takes the second line."""

    def render(self) -> Content:
        """Both lines, cut to the width."""
        width = self.content_size.width
        return Content("\n").join([self._first(width), self._second(width)])

    def _first(self, width: int) -> Content:
        badge = f" {figures.mode(self.speculation)} "
        right = self._filling(width)
        room = width - len(badge) - 1 - len(right) - 2
        left = figures.fit(self._parts(), room, GAP)
        return Content.assemble(
            (badge, f"bold $background on ${'secondary' if self.speculation.mode == 'off' else 'accent'}"),
            " ",
            left.ljust(room),
            "  ",
            (right, MUTED),
        )

    def _parts(self) -> list[str]:
        if (live := self.live) is None:
            return []
        parts = [figures.speed(live.tps)]
        if live.acceptance is not None:
            parts.append(f"{figures.share(live.acceptance)} accepted")
        if live.per_round is not None:
            parts.append(f"{figures.each(live.per_round)} a round")
        if live.source is not None:
            parts.append({"lookup": "by lookup", "model": "by draft"}[live.source])
        return parts

    def _filling(self, width: int) -> str:
        if self.context is None:
            return ""
        used, total = self.context
        return f"{'context ' if width >= 100 else ''}{used:,} / {total:,}"

    def _second(self, width: int) -> Content:
        if self.progress is not None:
            return draw(self.progress, width)
        right = figures.reuse(*self.receipt) if self.receipt else ""
        room = width - len(right) - 2
        plan = figures.shorten(sanitize(self.live.plan), room) if self.live else ""
        return Content.assemble((plan.ljust(room), MUTED), "  ", (right, MUTED))
