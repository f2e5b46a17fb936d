"""One section of the side panel: a heading and a few lines, painted anew only where they have changed."""

from textual.content import Content
from textual.widgets import Static

from app.glossary import TERMS, Term
from app.widgets.panel_parts import Part, View


class Section(Static):
    """What a part draws of the figures; what its figures mean hovers over it."""

    def __init__(self, term: Term, part: Part) -> None:
        super().__init__(Content(), id=f"part-{term}", markup=False)
        self.tooltip = Content(TERMS[term])
        self._term, self._part = term, part
        self._view: View | None = None
        self._shown = Content()

    def show(self, view: View) -> None:
        """Draw these figures; while it is not on the screen they are only kept."""
        self._view = view
        width = self.content_size.width
        if width <= 0:
            return
        drawn = Content("\n").join([self._heading(width), self._part(view, width)])
        if not drawn.is_same(self._shown):
            taller = drawn.get_height({}, width) != self._shown.get_height({}, width)
            self._shown = drawn
            self.update(drawn, layout=taller)

    def _heading(self, width: int) -> Content:
        rule = "─" * max(0, width - len(self._term) - 1)
        return Content.assemble((self._term, "bold"), " ", (rule, "$border-blurred"))

    def on_resize(self) -> None:
        """Draw for the new width."""
        if self._view is not None:
            self.show(self._view)
