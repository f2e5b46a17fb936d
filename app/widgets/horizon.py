"""The line between the messages that left a full context and those that the model still sees."""

from textual.content import Content
from textual.widget import Widget

SENTENCE = "context full: the model no longer sees the messages above"


class Horizon(Widget):
    """One line across the page with the sentence in its middle; the sentence alone where there is no room."""

    def render(self) -> Content:
        """The line."""
        side = "─" * ((self.content_size.width - len(SENTENCE) - 2) // 2)
        return Content(f"{side} {SENTENCE} {side}".strip())
