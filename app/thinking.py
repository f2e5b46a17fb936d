"""Where an answer thinks aloud: its think blocks, told apart from the text around them.

An opening tag counts at the start of the text, right behind a block or alone on its line, a closing tag anywhere, and
neither in code.  A block ends with the tag that closes it, blocks within it counted; where none does, with the first
closing tag behind it; where all of those are in code, with the first of them.  Where the prompt has opened a block, the
text begins in it; where that is not known, it does if a closing tag that nothing opened stands alone on its line.  So a
block that is never closed hides what follows only where no closing tag follows.

One invariant: the parts are in order, do not overlap, and leave out nothing but tags and blank lines behind them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.thoughts import NAMES

TAG = re.compile(rf"<(/?)({'|'.join(NAMES)})>")
_WHOLE = tuple(f"<{slash}{name}>" for name in NAMES for slash in ("", "/"))
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


@dataclass(frozen=True)
class Part:
    """A stretch of an answer."""

    kind: Literal["text", "thought"]
    start: int
    end: int
    open: bool = False
    """Whether it is a thought whose end has not come yet."""


@dataclass(frozen=True)
class _Tag:
    name: str
    closing: bool
    start: int
    end: int
    in_code: bool
    alone: bool
    """Whether it is all that its line holds."""


def split(text: str, opening: str = "") -> tuple[Part, ...]:
    """The parts of an answer, at least one; a text without think blocks is one part.

    `opening`: the tag with which its prompt ended, behind which the text stands; empty: none.
    """
    if TAG.fullmatch(opening):
        shift = len(opening)
        return tuple(Part(one.kind, one.start - shift, one.end - shift, one.open) for one in split(opening + text))
    if not TAG.search(text):
        return (Part("text", 0, len(text)),)
    parts, at = list[Part](), 0
    if (end := _unopened(text)) is not None:
        parts.append(Part("thought", 0, end.start))
        at = end.end
    while (opening := _opening(text, at)) is not None:
        parts.append(Part("text", at, opening.start))
        closing = _closing(text, opening)
        end_at = closing.start if closing else len(text)
        parts.append(Part("thought", opening.end, end_at, open=closing is None))
        at = closing.end if closing else len(text)
    parts.append(Part("text", at, len(text)))
    kept = tuple(part for one in parts if (part := _trimmed(text, one)) is not None)
    return kept or (Part("text", len(text), len(text)),)


def pending(text: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    at = text.rfind("<", -max(map(len, _WHOLE)))
    if at < 0:
        return 0
    tail = text[at:]
    return len(tail) if any(len(tail) < len(tag) and tag.startswith(tail) for tag in _WHOLE) else 0


def said(text: str, opening: str = "") -> str:
    """The answer without its thoughts; the whole of it where there is nothing else."""
    spoken = [text[part.start : part.end] for part in split(text, opening) if part.kind == "text"]
    return "".join(spoken).strip("\n") or text


def _trimmed(text: str, part: Part) -> Part | None:
    """The part, a text without the blank lines behind a block; None where it is blank, unless it is an open thought."""
    if not part.open and not text[part.start : part.end].strip():
        return None
    start = part.start
    while part.kind == "text" and part.start and start < part.end and text[start] == "\n":
        start += 1
    return Part(part.kind, start, part.end, part.open)


def _unopened(text: str) -> _Tag | None:
    """The closing tag of a block that began before the text."""
    for tag in _tags(text, 0):
        if not tag.in_code and _opens(text, 0, tag):
            return None
        if not tag.in_code and tag.closing and tag.alone:
            return tag
    return None


def _opening(text: str, start: int) -> _Tag | None:
    return next((tag for tag in _tags(text, start) if not tag.in_code and _opens(text, start, tag)), None)


def _opens(text: str, start: int, tag: _Tag) -> bool:
    return not tag.closing and (tag.alone or not text[start : tag.start].strip())


def _closing(text: str, opening: _Tag) -> _Tag | None:
    depth, first, coded = 1, None, None
    for tag in _tags(text, opening.end):
        if tag.name != opening.name:
            continue
        if tag.in_code:
            coded = coded or (tag if tag.closing else None)
            continue
        depth += -1 if tag.closing else 1
        if depth == 0:
            return tag
        first = first or (tag if tag.closing else None)
    return first or coded


def _tags(text: str, start: int) -> Iterator[_Tag]:
    """All tags from `start` on, and whether they stand in code that begins there or later."""
    fence = ""
    for line in re.finditer(r"[^\n]*\n?", text[start:]):
        shown = line[0].rstrip("\n")
        mark = _FENCE.fullmatch(shown)
        if mark and not fence:
            fence = mark[1] if mark[1][0] == "~" or "`" not in mark[2] else ""
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        codes = [span.span() for span in _SPAN.finditer(shown)] if "`" in shown else []
        for tag in TAG.finditer(shown):
            in_span = any(first <= tag.start() < last for first, last in codes)
            alone = not (shown[: tag.start()] + shown[tag.end() :]).strip() and tag.start() < 4
            begin = start + line.start()
            yield _Tag(tag[2], bool(tag[1]), begin + tag.start(), begin + tag.end(), bool(fence) or in_span, alone)
