"""What an empty conversation shows."""

from textual.content import Content
from textual.widgets import Static

from app.themes import MUTED

KEYS = (("Enter", "sends"), ("Shift+Enter or Ctrl+J", "breaks the line"), ("F2", "switches speculation"))


class Welcome(Static):
    """The name, what it does, and three keys."""

    def __init__(self) -> None:
        lines = [
            Content.styled("P A C E L I N E", "bold $accent"),
            Content.styled("a small model rides ahead, the large one decides", MUTED),
            Content(),
            *(Content.assemble((key, "$primary"), (f"  {does}", MUTED)) for key, does in KEYS),
        ]
        super().__init__(Content("\n").join(lines), markup=False)
