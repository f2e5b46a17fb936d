"""The sidebar's rows: conversations under the day of their last word, and what a search found.

Pure functions from the store's records to rows; nothing here knows the clock or the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from textual.content import Content

from app.cells import cut, excerpt, marked
from app.store.records import Hit, Summary
from app.themes import MUTED
from app.widgets.row_list import Heading, Row

UNTITLED = "New conversation"
MATCH = "bold underline $accent"
"""How what was searched for looks; the line is for those who see no colours."""
EXCERPT = 2
"""Lines of an excerpt."""


@dataclass(frozen=True)
class ConversationRow(Row):
    """A conversation: in the list of all, or above what was found in it."""

    LINES = 1
    id: int
    title: str
    opened: bool = False
    found: Hit | None = None
    """What was found in the title."""

    @property
    def key(self) -> str:
        """Its number."""
        return f"conversation {self.id}"

    def draw(self, width: int) -> Sequence[Content]:
        """The title, with a bar before it where the conversation is open."""
        title = marked(self.found.excerpt, self.found.spans, MATCH) if self.found else self.title or UNTITLED
        bar = Content.styled("▌", "$accent") if self.opened else Content(" ")
        line = cut(title, width - 1)
        return [Content.assemble(bar, line.stylize("bold") if self.opened else line)]


@dataclass(frozen=True)
class HitRow(Row):
    """A message in which something was found."""

    hit: Hit

    @property
    def id(self) -> int:
        """The number of its conversation."""
        return self.hit.conversation

    @property
    def title(self) -> str:
        """The title of its conversation."""
        return self.hit.title

    @property
    def key(self) -> str:
        """The number of its message."""
        return f"message {self.hit.message}"

    def draw(self, width: int) -> Sequence[Content]:
        """The text around the match, set in."""
        text = marked(self.hit.excerpt, self.hit.spans, MATCH).stylize_before(MUTED)
        first = self.hit.spans[0][0] if self.hit.spans else 0
        return [Content.assemble("  ", line) for line in excerpt(text, first, width - 2, EXCERPT)] or [Content()]


def day_rows(summaries: Iterable[Summary], opened: int | None, now: datetime) -> Iterator[Row]:
    """All conversations, each under its day: of `summaries` the pinned ones come first, then the newest."""
    first = True
    for name, group in groupby(summaries, lambda summary: when(summary, now)):
        yield Heading(name, first)
        first = False
        for summary in group:
            yield ConversationRow(summary.id, summary.title, opened=summary.id == opened)
    if first:
        yield Heading("Nothing said yet", first)


def when(summary: Summary, now: datetime) -> str:
    """The heading that a conversation belongs under, by the calendar of `now`."""
    if summary.pinned:
        return "Pinned"
    day, today = summary.changed.astimezone(now.tzinfo).date(), now.date()
    match (today - day).days:
        case past if past <= 0:
            return "Today"
        case 1:
            return "Yesterday"
        case past if past < 7:
            return "This week"
    return _month(day, today)


def _month(day: date, today: date) -> str:
    return f"{day:%B}" if day.year == today.year else f"{day:%B} {day.year}"


def hit_rows(hits: Sequence[Hit], opened: int | None) -> Iterator[Row]:
    """What was found, by conversation, in the order in which the first hit of each came."""
    found: dict[int, list[Hit]] = {}
    for hit in hits:
        found.setdefault(hit.conversation, []).append(hit)
    yield Heading(_count(len(hits), len(found)), first=True)
    for id, group in found.items():
        named = next((hit for hit in group if hit.message is None), None)
        yield ConversationRow(id, group[0].title, id == opened, named)
        yield from (HitRow(hit) for hit in group if hit.message is not None)


def _count(hits: int, conversations: int) -> str:
    if not hits:
        return "Nothing found"
    return f"{hits} {'hit' if hits == 1 else 'hits'} in {conversations} {'chat' if conversations == 1 else 'chats'}"
