"""How far something is: a label, a bar and a figure in one line, drawn from a frozen record."""

from dataclasses import dataclass

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from app import figures
from app.themes import MUTED
from engine.detokenize import sanitize


@dataclass(frozen=True)
class Progress:
    """A piece of work that is under way."""

    label: str
    share: float
    """From 0 to 1."""
    detail: str = ""
    """Figures for the end of the line; empty shows per cent."""


def draw(progress: Progress, width: int) -> Content:
    """The line in at most `width` cells."""
    share = min(1.0, max(0.0, progress.share))
    detail = progress.detail or figures.share(share)
    room = max(0, width - len(detail) - 1)
    label = figures.shorten(sanitize(progress.label), max(0, room * 2 // 3))
    cells = max(0, room - len(label) - 2)
    full = round(cells * share)
    return Content.assemble(
        (label, MUTED),
        "  " if label else "",
        ("━" * full, "$primary"),
        ("─" * (cells - full), "$border-blurred"),
        " ",
        (detail, MUTED),
    )


class Bar(Widget):
    """A line of progress; empty without one."""

    progress: reactive[Progress | None] = reactive(None)

    def render(self) -> Content:
        """The line."""
        return draw(self.progress, self.content_size.width) if self.progress else Content()
