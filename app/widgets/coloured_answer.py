"""An answer coloured by the origin of its tokens: what the colours mean, the text, and a card about one token."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from app import figures
from app.cells import cut
from app.origins import LOOKS
from app.themes import MUTED
from app.widgets.provenance import CORRECTED, CORRECTED_PLAIN, Provenance, look
from app.widgets.woven import LINE_END
from engine.events import TokenTrace

NAME = 24
"""Cells for the text of a token on its card."""


def quoted(text: str) -> Content:
    """A token's text in quotation marks, its line ends and tabs as signs."""
    return Content.assemble("‘", cut(text.replace("\n", LINE_END).replace("\t", "⇥"), NAME), "’")


def about(token: TokenTrace) -> Content:
    """What is known of a token, in two lines, or in four where a draft was refused."""
    chances = [f"target {figures.chance(token.target)}"]
    if token.draft is not None:
        chances.append(f"draft {figures.chance(token.draft)}")
    lines = [
        Content.assemble(quoted(token.text), "  ", (LOOKS[token.origin].name, look(token.origin))),
        Content.styled("   ".join(chances), MUTED),
    ]
    if (refused := token.refused) is not None:
        lines.append(Content.assemble(("in place of ", MUTED), quoted(refused.text)))
        drafted = "copied" if refused.draft is None else f"draft {figures.chance(refused.draft)}"
        lines.append(Content.styled(f"target {figures.chance(refused.target)}   {drafted}", MUTED))
    return Content("\n").join(lines)


def counted(tokens: Iterable[TokenTrace]) -> Counter[str]:
    """How many tokens there are of each origin, and how many stand in the place of a refused draft."""
    found = list(tokens)
    counts = Counter[str](token.origin for token in found)
    counts["refused"] = sum(token.refused is not None for token in found)
    return counts


def legend(counts: Mapping[str, int], colours: bool) -> Content:
    """Each origin in its own look with its tokens; corrected are those that stand in the place of a refused draft."""
    shown = [
        Content.assemble((one.name, look(origin)), (f" {counts[origin]:,}", MUTED))
        for origin, one in LOOKS.items()
        if counts[origin] or origin == "target"
    ]
    if refused := counts["refused"]:
        style = CORRECTED if colours else CORRECTED_PLAIN
        shown.append(Content.assemble(("corrected", style), (f" {refused:,}", MUTED)))
    return Content.styled(" · ", MUTED).join(shown)


class ColouredAnswer(Vertical):
    """Legend, tokens, and the card, which floats beside the token that is chosen."""

    BLANK = True  # else Textual draws a blank line for every line of it, seen or not

    def __init__(self, tokens: Sequence[TokenTrace]) -> None:
        super().__init__()
        self._counts = counted(tokens)
        self._legend = Static(classes="legend", markup=False)
        self.text = Provenance(tokens)
        self._card = Static(classes="card", markup=False)
        self._card.display = False

    def compose(self) -> ComposeResult:
        """The legend above the text; the card is wherever the token is."""
        yield self._legend
        yield self.text
        yield self._card

    def on_mount(self) -> None:
        """Say what the colours mean."""
        self._say()

    def add(self, tokens: Sequence[TokenTrace]) -> None:
        """Append tokens."""
        self._counts += counted(tokens)
        self.text.add(tokens)
        self._say()

    def _say(self) -> None:
        self._legend.update(legend(self._counts, not self.app.no_color))

    def on_provenance_token_shown(self, event: Provenance.TokenShown) -> None:
        """Put the card below the token, or above it where there is no room (its margin is a row)."""
        self._card.display = event.trace is not None
        if event.trace is not None:
            self._card.update(about(event.trace))
            right = self.text.content_region.x - self.content_region.x + event.at.x
            self._card.styles.offset = (right, event.at.y - self.text.size.height)
