"""The side panel, which makes speculation visible: speed, drafts, origins, plan, context, verdict, counts.

It shows the records that it is given and works nothing out; where the window is narrow it is folded away, unless the
user wants it.
"""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.reactive import reactive

from app.glossary import Term
from app.live import Live
from app.origins import coloured
from app.widgets import panel_parts
from app.widgets.mode_line import ModeLine
from app.widgets.panel_parts import Part, View
from app.widgets.section import Section
from engine.config import Speculation

WIDE = 110
"""Columns of a window from which on there is room for the panel beside the conversation."""
ROOMY = 46
"""Lines from which on there is room for blank ones between the sections."""

PARTS: tuple[tuple[Term, Part], ...] = (
    ("speed", panel_parts.speed),
    ("acceptance", panel_parts.drafts),
    ("origin", panel_parts.origin),
    ("plan", panel_parts.plan),
    ("context", panel_parts.context),
    ("verdict", panel_parts.verdict),
    ("counts", panel_parts.counts),
)
"""The sections, from the top."""


class Panel(VerticalScroll):
    """The figures of the answer being written, or of the last one."""

    live: reactive[Live] = reactive(Live(), repaint=False)
    """The figures, from the meter."""
    n_ctx: reactive[int | None] = reactive(None, repaint=False)
    """Tokens of context in all."""
    memory: reactive[int | None] = reactive(None, repaint=False)
    """Bytes that the engine holds."""
    speculation: reactive[Speculation] = reactive(Speculation(), repaint=False)
    """The setting that the next round will have."""

    def __init__(self) -> None:
        super().__init__(id="panel")
        self._columns = 0
        self._wanted: bool | None = None
        """What the user said; None: as the width of the window has it."""

    def compose(self) -> ComposeResult:
        """The setting, then the sections."""
        yield ModeLine().data_bind(speculation=Panel.speculation)
        for term, part in PARTS:
            yield Section(term, part)

    def on_mount(self) -> None:
        """Fold or unfold for the window as it is."""
        self.fit(self.app.size.width)

    def fit(self, columns: int) -> None:
        """The window has so many columns."""
        self._columns = columns
        self._fold()

    def toggle(self) -> None:
        """Fold away or unfold, whatever the width."""
        self._wanted = not self.display
        self._fold()

    def _fold(self) -> None:
        self.display = self._columns >= WIDE if self._wanted is None else self._wanted

    def watch_live(self) -> None:
        """Show the figures."""
        self._show()

    def watch_n_ctx(self) -> None:
        """Show the size of the context."""
        self._show()

    def watch_memory(self) -> None:
        """Show the memory."""
        self._show()

    def _show(self) -> None:
        view = View(self.live, self.n_ctx, self.memory, colours=coloured(self.app))
        for section in self.query_children(Section):
            section.show(view)

    def on_resize(self) -> None:
        """Leave the blank lines out where there is little room."""
        self.set_class(self.size.height < ROOMY, "-tight")
