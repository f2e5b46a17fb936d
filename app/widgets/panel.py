"""The side panel, which makes speculation visible: speed, drafts, origins, plan, context, verdict, counts.

It shows the records that it is given and works nothing out; while they change quickly it is painted less often, for the
model needs the cores.  Where the window is narrow it is folded away, unless the user wants it.
"""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.reactive import reactive
from textual.timer import Timer

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
PAINT_S = 1.0
"""Least seconds between two paintings while an answer is written: figures that change faster cannot be read."""
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
    typed: reactive[int] = reactive(0, repaint=False)
    """Tokens of the message that is being typed."""
    memory: reactive[int | None] = reactive(None, repaint=False)
    """Bytes that the engine holds."""
    speculation: reactive[Speculation] = reactive(Speculation(), repaint=False)
    """The setting that the next round will have."""

    def __init__(self, *, paint_s: float = PAINT_S) -> None:
        super().__init__(id="panel")
        self._columns = 0
        self._paint_s = paint_s
        self._waiting: Timer | None = None
        self._late = False
        """Whether figures have come that are not painted."""
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
        """Show the figures, soon; those of a finished answer at once."""
        writing = self.live.verdict is None and self.live.turn.rounds > 0
        if writing and self._waiting is not None:
            self._late = True
            return
        self._show()
        if writing and self._paint_s:
            self._waiting = self.set_timer(self._paint_s, self._due)

    def _due(self) -> None:
        """Paint what has come meanwhile."""
        self._waiting = None
        if self._late:
            self.watch_live()

    def watch_n_ctx(self) -> None:
        """Show the size of the context."""
        self._show()

    def watch_typed(self) -> None:
        """Show what is typed."""
        self._show()

    def watch_memory(self) -> None:
        """Show the memory."""
        self._show()

    def _show(self) -> None:
        self._late = False
        view = View(self.live, self.n_ctx, self.memory, self.typed, colours=coloured(self.app))
        for section in self.query_children(Section):
            section.show(view)

    def on_resize(self) -> None:
        """Leave the blank lines out where there is little room."""
        self.set_class(self.size.height < ROOMY, "-tight")
