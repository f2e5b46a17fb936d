"""The rows of the model screen: pairs and models, what they need, and what they are used for."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content

from app.cells import cut, one_line, spread
from app.setup import DraftFit, Known, Offer
from app.themes import MUTED
from app.widgets.row_list import Row

TROUBLE = {"damaged", "gone"}


@dataclass(frozen=True)
class PairLine(Row):
    """A pair."""

    LINES = 2
    offer: Offer
    loaded: bool = False

    @property
    def key(self) -> str:
        """Its id."""
        return f"pair {self.offer.id}"

    def draw(self, width: int) -> Sequence[Content]:
        """Title and state; what it is for, its size and its need of memory."""
        offer = self.offer
        badge = _badge(["loaded"] if self.loaded else [], "installed" if offer.installed else "not installed")
        size = _size(offer.bytes) if offer.installed else f"{_size(offer.bytes)} to fetch"
        return _two_lines(offer.title, badge, [size, one_line(offer.note)], _memory(offer), width)


@dataclass(frozen=True)
class ModelLine(Row):
    """A model."""

    LINES = 2
    known: Known
    roles: tuple[str, ...] = ()
    """What it is used for: target, draft, loaded."""
    fit: DraftFit | None = None
    """How it fits the chosen target; None where that is not known."""

    @property
    def key(self) -> str:
        """Its id."""
        return f"model {self.known.id}"

    def draw(self, width: int) -> Sequence[Content]:
        """Title and state; size, licence and need of memory, or why it cannot draft for the target."""
        known = self.known
        lines = _two_lines(
            known.title, _badge(self.roles, known.state), [_length(known), *self._licence()], _memory(known), width
        )
        if self.fit is not None and not self.fit.fits:
            refusal = Content.styled(f"   {one_line(self.fit.reason)}", "$text-warning")
            return [lines[0].stylize("dim"), cut(refusal, width)]
        return lines

    def _licence(self) -> list[str]:
        return [self.known.licence] if self.known.licence else []


def _two_lines(title: str, badge: Content, facts: list[str], memory: Content, width: int) -> list[Content]:
    line = Content.assemble(" ", (one_line(title), "bold"))
    parts = [Content.styled(fact, MUTED) for fact in facts if fact] + ([memory] if memory else [])
    detail = Content.assemble("   ", Content.styled(" · ", MUTED).join(parts))
    return [spread(line, badge, width - 1), cut(detail, width)]


def _badge(roles: Sequence[str], state: str) -> Content:
    marks = [Content.styled(role, "bold $accent") for role in roles]
    style = (
        "$text-error" if state in TROUBLE else "$text-success" if state in {"installed", "added", "tuned"} else MUTED
    )
    return Content(" · ").join([*marks, Content.styled(state, style)])


def _memory(what: Offer | Known) -> Content:
    if not what.memory:
        return Content()
    if what.fits:
        return Content.styled(f"needs {_size(what.memory)} of memory", MUTED)
    return Content.styled(f"needs {_size(what.memory)}, {_size(what.available)} free", "$text-warning")


def _length(known: Known) -> str:
    if known.state == "partly fetched":
        return f"{_size(known.fetched)} of {_size(known.bytes)}"
    if not known.bytes:
        return ""
    return f"{_size(known.bytes)} to fetch" if known.state == "not installed" else _size(known.bytes)


def _size(count: int) -> str:
    from models.text import size

    return size(count)
