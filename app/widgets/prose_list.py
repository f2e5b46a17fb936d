"""Lists of a model's Markdown, each drawn by one widget with hanging indents instead of four widgets an item.

Lists are what answers have most of, and a list is one block of Markdown: it is drawn anew with every piece of it that
is streamed.  A list with anything but paragraphs and lists in it is left to Textual's own widgets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets._markdown import (
    MarkdownBlock,
    MarkdownBulletList,
    MarkdownList,
    MarkdownListItem,
    MarkdownOrderedList,
    MarkdownParagraph,
)

NARROW = 8
"""Least cells for the text of an item, however deep it lies."""


@dataclass(frozen=True)
class Line:
    """One paragraph of an item: what stands before its first line, and the paragraph."""

    lead: str
    text: Content

    def wrapped(self, width: int) -> Iterator[Content]:
        """Its lines, those after the first as far in as the text of the first."""
        before = Content.styled(self.lead, "$primary")
        for line in self.text.wrap(max(NARROW, width - len(self.lead))):
            yield before + line.rstrip()
            before = Content(" " * len(self.lead))


class Hanging(Visual):
    """Paragraphs with hanging indents."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._laid: tuple[int, Content] | None = None

    def laid_out(self, width: int) -> Content:
        """All lines as they fall at this width."""
        if self._laid is None or self._laid[0] != width:
            self._laid = width, Content("\n").join([part for line in self._lines for part in line.wrapped(width)])
        return self._laid[1]

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """The lines as Textual draws them."""
        return self.laid_out(width).render_strips(width, height, style, options)

    def get_optimal_width(self, _rules: RulesMap, container_width: int) -> int:
        """All there is."""
        return container_width

    def get_minimal_width(self, _rules: RulesMap) -> int:
        """Room for one deep item."""
        return max((len(line.lead) + NARROW for line in self._lines), default=0)

    def get_height(self, _rules: RulesMap, width: int) -> int:
        """Lines at this width."""
        return self.laid_out(width).plain.count("\n") + 1


def flatten(block: MarkdownBlock, indent: str = "") -> list[Line] | None:
    """The paragraphs of a list that has not been composed yet, in order; None where there is anything else in it."""
    found: list[Line] = []
    for item, lead in zip(block._blocks, leads(block), strict=True):
        rest = " " * len(lead)
        for at, child in enumerate(item._blocks):
            if isinstance(child, MarkdownParagraph):
                found.append(Line(indent + (rest if at else lead), child._content))
            elif isinstance(child, MarkdownList) and (inner := flatten(child, indent + rest)) is not None:
                found += inner if at else [Line(indent + lead, Content()), *inner]
            else:
                return None
        if not item._blocks:
            found.append(Line(indent + lead, Content()))
    return found


def leads(block: MarkdownBlock) -> list[str]:
    """What stands before each item: its bullet, or its number set flush right."""
    bullets = [item.bullet for item in block._blocks if isinstance(item, MarkdownListItem)]
    if isinstance(block, MarkdownBulletList) or not bullets:
        return [f" {bullet}" for bullet in bullets]
    start = int(bullets[0]) if bullets[0].isdecimal() else 1
    numbers = [f"{number}. " for number in range(start, start + len(bullets))]
    return [number.rjust(len(numbers[-1]) + 1) for number in numbers]


if TYPE_CHECKING:
    Base = MarkdownBlock
else:
    Base = object


class FlatList(Base):
    """What bullets and numbers share; a mixin, so that the styles of both lists hold."""

    flat = False
    """Whether this widget draws the list by itself."""

    def compose(self) -> ComposeResult:
        """Nothing where the list can be drawn flat, else Textual's own widgets."""
        if (lines := flatten(self)) is None:
            yield from super().compose()
        else:
            self._draw(lines)

    def _draw(self, lines: list[Line]) -> None:
        self.flat = True
        self._blocks.clear()
        self.update(Hanging(lines))

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        lines = flatten(block) if self.flat and type(block) is type(self) else None
        if lines is None:
            await super()._update_from_block(block)
        else:
            self._copy_context(block)
            self._draw(lines)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, lines as they are drawn."""
        visual = self.visual
        if not isinstance(visual, Hanging):
            return super().get_selection(selection)
        text: str = selection.extract(visual.laid_out(self.content_size.width).plain)
        return text, "\n"


class FlatBullets(FlatList, MarkdownBulletList):
    """A list with bullets."""


class FlatNumbers(FlatList, MarkdownOrderedList):
    """A list with numbers."""
