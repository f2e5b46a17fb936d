"""Tokens with their chances, and a small window around one message."""

from collections.abc import Iterable

from textual import on
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll

from app import themes
from app.widgets.chat_message import ChatMessage
from engine.events import Origin, Refused, TokenTrace


def token(text: str, origin: Origin = "target", refused: str | None = None, draft: float | None = None) -> TokenTrace:
    """A token with fixed chances; one that a draft brought has a chance with the draft model alone."""
    if draft is None and origin == "model":
        draft = 0.642
    denied = None if refused is None else Refused(text=refused, target=0.118, draft=0.7)
    return TokenTrace(origin=origin, text=text, target=0.824, draft=draft, refused=denied)


SENTENCE = (
    token("The"), token(" quick", "model"), token(" brown", "model"), token(" dog", refused=" fox"), token(" sat"),
    token(" on", "lookup"), token(" the", "lookup"), token(" mat", "exit"), token(".\n\n"), token("It"),
    token(" slept", "lookup"), token(".", refused=" well"),
)  # fmt: skip
TEXT = "".join(one.text for one in SENTENCE)


class MessageApp(App[None]):
    """One column of messages in the program's own colours; what they ask for is kept."""

    CSS_PATH = "../../app/screens/chat.tcss"

    def __init__(self, *messages: ChatMessage, theme: str = "") -> None:
        super().__init__()
        self._shown = messages
        self.wanted: list[ChatMessage.Wanted] = []
        themes.register(self)
        self.animation_level = "none"
        if theme:
            self.theme = theme

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield from self._shown

    @on(ChatMessage.Wanted)
    def keep(self, event: ChatMessage.Wanted) -> None:
        """Keep what is asked for."""
        self.wanted.append(event)


def texts(tokens: Iterable[TokenTrace]) -> str:
    """The text of tokens."""
    return "".join(one.text for one in tokens)
