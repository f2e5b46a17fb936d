"""The top line: the program's name, and what it runs."""

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from app import figures
from app.themes import MUTED
from engine.detokenize import sanitize
from engine.events import Loaded


class TitleBar(Widget):
    """Name and models."""

    loaded: reactive[Loaded | None] = reactive(None)

    def render(self) -> Content:
        """One line: the name on the left, the pair on the right."""
        width = self.content_size.width
        name = "paceline"
        models = figures.shorten(self._models(), width - len(name) - 2)
        return Content.assemble((name, "bold $accent"), " " * max(0, width - len(name) - len(models)), (models, MUTED))

    def _models(self) -> str:
        if (loaded := self.loaded) is None:
            return ""
        pair = f"{loaded.target} ← {loaded.draft}" if loaded.draft else loaded.target
        return sanitize(f"{pair} · {loaded.device}")
