"""A small app that shows the help screen, with a few keys that never change unless told otherwise."""

from textual.app import App

from app import themes
from app.keys import Key
from app.screens.help import HelpScreen

FEW = (
    Key("app.quit", ("ctrl+q",), "Quit", "End the engine and leave"),
    Key("chat.speculation", ("f2",), "Speculation", "Drafting: automatic, off, fixed length"),
    Key("chat.stop", ("escape",), "Stop", "End the answer and keep what there is of it"),
    Key("prompt.break_line", ("shift+enter", "ctrl+j"), "New line", "Break the line; Enter sends"),
)


class HelpApp(App[None]):
    """Opens the help at once."""

    def __init__(self, theme: str = themes.THEMES[0].name, keys: tuple[Key, ...] = FEW) -> None:
        super().__init__()
        self.animation_level = "none"
        themes.register(self)
        self.theme = theme
        self._keys = keys

    def on_mount(self) -> None:
        self.push_screen(HelpScreen(self._keys))
