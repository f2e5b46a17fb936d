"""The top line: the program's name, which opens the list of all actions, and what it runs."""

from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget

from app import figures
from app.themes import MUTED
from engine.detokenize import sanitize
from engine.events import Loaded

MENU = Content.styled("≡ paceline", Style.from_meta({"@click": "app.command_palette"}))


class TitleBar(Widget):
    """Name and models."""

    ALLOW_SELECT = False

    loaded: reactive[Loaded | None] = reactive(None)

    def on_mount(self) -> None:
        """Say what a click on the name does."""
        self.tooltip = Content("Click on the name for all that can be done here")

    def render(self) -> Content:
        """One line: the name on the left, the pair on the right."""
        width = self.content_size.width
        models = figures.shorten(self._models(), width - len(MENU) - 2)
        return Content.assemble(MENU, " " * max(0, width - len(MENU) - len(models)), (models, MUTED))

    def _models(self) -> str:
        if (loaded := self.loaded) is None:
            return ""
        pair = f"{loaded.target} ← {loaded.draft}" if loaded.draft else loaded.target
        return sanitize(f"{pair} · {loaded.device}")
