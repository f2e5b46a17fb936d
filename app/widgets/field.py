"""One line to write in that never holds a character which acts on the terminal, however it came there."""

from textual.widgets import Input

from app.cells import one_line


class Field(Input):
    """An input of one line."""

    def __init__(self, value: str = "", *, placeholder: str = "", select: bool = True, id: str | None = None) -> None:
        """With `select`, what stands in it is selected when it gets the focus, so that writing replaces it."""
        super().__init__(value, placeholder=placeholder, select_on_focus=select, id=id, compact=True)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """A visible sign in place of each control character; length unchanged, so the cursor stays right."""
        return one_line(value)
