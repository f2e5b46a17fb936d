"""The setting of speculation as a line to click on."""

from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from app import figures
from app.glossary import TERMS
from engine.config import Speculation


class ModeLine(Widget):
    """What speculation is set to."""

    speculation: reactive[Speculation] = reactive(Speculation())

    @dataclass
    class ModeWanted(Message):
        """The user wants the next setting: automatic, off, fixed."""

    def on_mount(self) -> None:
        """Say what it is about."""
        self.tooltip = Content(f"{TERMS['speculation']} A click changes the setting.")

    def render(self) -> Content:
        """The word on the left, the setting on the right."""
        badge = f" {figures.mode(self.speculation)} "
        gap = max(1, self.content_size.width - len("speculation") - len(badge))
        style = f"bold $background on ${'secondary' if self.speculation.mode == 'off' else 'accent'}"
        return Content.assemble(("speculation", "bold $accent"), " " * gap, (badge, style))

    def on_click(self) -> None:
        """Ask for the next setting."""
        self.post_message(self.ModeWanted())
