"""The help screen: what one must know to begin, what the words mean, and every key, read off the bindings."""

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from app.glossary import TERMS, Term
from app.keys import Key
from app.themes import MUTED
from app.widgets.key_table import KeyTable

BEGIN = (
    "Write below and press Enter. Shift+Enter or Ctrl+J breaks the line, Esc stops an answer. Ctrl+P lists all that "
    "can be done, with its key. Nothing that you write leaves this machine."
)
"""What one must know to begin."""
FIRST: tuple[Term, ...] = ("speculation", "acceptance", "receipt", "verdict")
"""The words that one meets at once; with the beginning they are read in a minute."""
LATER: tuple[Term, ...] = ("speed", "origin", "plan", "context")
"""Those of the side panel."""
NOTES = (
    "Settings for the choice of words apply in this order: bias, penalties, temperature, top-k, top-p, min-p. With a "
    "seed, drafts are judged by the coupled rule, whose text in strict exactness is the same with drafts and without. "
    "By the rejection rule the texts differ, but come from the same chances."
)
"""What is good to know some day."""


class HelpScreen(ModalScreen[None]):
    """A page to read, with the keys as the user has them."""

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "#help"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
    BINDINGS = [
        Binding("escape,f1,q", "dismiss", "Close", id="help.close", tooltip="Back to where you were"),
    ]

    def __init__(self, keys: tuple[Key, ...]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """The words, then the keys; side by side where there is room."""
        with VerticalScroll(id="help"), Container(id="help-page"):
            yield Static(words(), id="words", markup=False)
            yield KeyTable(self._keys)
        yield Footer(show_command_palette=False)


def words() -> Content:
    """All the words."""
    return Content("\n\n").join([beginning(), later()])


def beginning() -> Content:
    """What is read in a minute."""
    return Content("\n\n").join([_entry("Help", BEGIN, "bold $accent"), *map(_term, FIRST)])


def later() -> Content:
    """The rest of the words."""
    return Content("\n\n").join([*map(_term, LATER), Content.styled(NOTES, MUTED)])


def _term(term: Term) -> Content:
    return _entry(term.capitalize(), TERMS[term], "bold $primary")


def _entry(title: str, text: str, style: str) -> Content:
    return Content.assemble((title, style), "\n", text)
