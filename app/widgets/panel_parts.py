"""What the sections of the side panel show: pure functions from the figures and a width to a few lines.

A figure that is not known is a dash, and no line is longer than the width, but for sentences, which wrap.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content

from app import figures
from app.counts import Counts
from app.live import Live
from app.origins import LOOKS
from app.themes import MUTED
from app.widgets import gauges
from engine.detokenize import sanitize
from engine.events import Origin
from engine.stats import Receipt, Verdict

NO_LIVE = Live()
"""Before anything has happened."""
LABEL = 9
"""Cells of a label before a bar."""
FIGURE = 6
"""Cells of a figure behind one."""


@dataclass(frozen=True)
class View:
    """All that the panel shows."""

    live: Live = NO_LIVE
    n_ctx: int | None = None
    """Tokens of context in all."""
    memory: int | None = None
    """Bytes that the engine holds."""
    typed: int = 0
    """Tokens of the message that is being typed."""
    colours: bool = True
    """Whether there are any; without them parts of a bar differ by their filling."""


Part = Callable[[View, int], Content]


def _line(left: str, right: str, width: int, style: str = "", right_style: str = MUTED) -> Content:
    """Two texts at both ends of a line."""
    gap = max(1, width - cell_len(left) - cell_len(right))
    return Content.assemble((left, style), " " * gap, (right, right_style))


def _lines(*lines: Content) -> Content:
    return Content("\n").join(lines)


def _label(text: str) -> tuple[str, str]:
    return text.ljust(LABEL), MUTED


def speed(view: View, width: int) -> Content:
    """How fast now, how long until the first token, and the speed over the answer."""
    live = view.live
    head = _line(figures.speed(live.tps), f"first {figures.wait(live.ttft_s)}", width, "bold $primary")
    return _lines(head, *(Content.styled(row, "$primary") for row in gauges.columns(live.speeds, width, 2)))


def drafts(view: View, width: int) -> Content:
    """How much of the drafts is kept, overall and by place, and what a round brings."""
    turn = view.live.turn
    room = width - LABEL
    by_place = gauges.columns(view.live.by_position, room, top=1.0)[0]
    rate = Content.assemble(
        _label("accepted"),
        gauges.bar(turn.acceptance, room - FIGURE, "$success"),
        figures.share(turn.acceptance).rjust(FIGURE),
    )
    return _lines(
        rate,
        Content.assemble(_label("by place"), (by_place, "$success")),
        Content.assemble(_label("a round"), f"{figures.each(turn.per_round)} tokens"),
    )


def origin(view: View, width: int) -> Content:
    """Where the tokens came from: one bar, and what its parts are."""
    turn, names = view.live.turn, tuple(LOOKS)
    shares = {name: turn.share(name) for name in names}
    fillings = [("█" if view.colours else LOOKS[name].filling, LOOKS[name].style) for name in names]
    known = [share or 0.0 for share in shares.values()]
    bar = gauges.stacked(known, fillings, width) if any(known) else Content.styled("─" * width, "$border-blurred")
    entries = [_entry(name, shares[name], view.colours) for name in names]
    half = (width + 1) // 2
    return _lines(bar, *(_pair(entries[at], entries[at + 1], half) for at in (0, 2)))


def _entry(name: Origin, share: float | None, colours: bool) -> Content:
    look = LOOKS[name]
    mark = "■" if colours else look.filling
    return Content.assemble((mark, look.style), " ", look.short, " ", (figures.share(share), MUTED))


def _pair(left: Content, right: Content, half: int) -> Content:
    return Content.assemble(left, " " * max(1, half - left.cell_length), right)


def plan(view: View, width: int) -> Content:
    """Why it drafts as it does, what that needs, and what it has won."""
    reason = view.live.reason
    words = f"needs {figures.share(reason.needed)}", f"has {figures.share(reason.observed)}"
    room = max(0, width - sum(map(len, words)) - 2)
    gauge = Content.assemble(
        (words[0], MUTED), " ", gauges.gauge(reason.needed, reason.observed, room), " ", (words[1], MUTED)
    )
    return _lines(Content(sanitize(reason.text) or "–"), gauge, _won(view.live.turn))


def _won(turn: Counts) -> Content:
    if turn.saved_ms is None:
        return Content.styled("won or lost: –", MUTED)
    style = "$text-success" if turn.saved_ms > 0 else "$text-warning" if turn.saved_ms < 0 else MUTED
    return Content.assemble((figures.won(turn.saved_ms), style), (" by drafting", MUTED))


def context(view: View, width: int) -> Content:
    """How full the context is with what is being typed, and a warning before it is."""
    used, typed, total = view.live.context, view.typed, view.n_ctx
    filling = figures.filling(used + typed, total)
    style = {"": "$primary", "nearly full": "$warning", "full": "$error"}[filling]
    figure = figures.context(used, typed, total) if total else "–"
    share, more = (used / total, typed / total) if total else (None, 0.0)
    bar = gauges.bar(share, max(0, width - len(figure) - 1), style, more)
    lines = [Content.assemble(bar, " ", (figure, style if filling else MUTED))]
    if filling and total:
        lines.append(Content.styled(_room(used, typed, total), "$text-warning"))
    return _lines(*lines, *_held(view))


def _room(used: int, typed: int, total: int) -> str:
    """What a context that is nearly full, or full, means."""
    if over := figures.over(used, typed, total):
        return over
    if (left := total - used - typed) > 0:
        return f"nearly full: {left:,} tokens left, then the oldest turns leave"
    return "full: the oldest turns are out of the model's sight"


def _held(view: View) -> list[Content]:
    from models.text import size

    memory = "–" if view.memory is None else size(view.memory)
    return [
        Content.assemble(_label("target"), _receipt(view.live.target)),
        Content.assemble(_label("draft"), _receipt(view.live.draft)),
        Content.assemble(_label("memory"), memory),
    ]


def _receipt(receipt: Receipt | None) -> str:
    return "–" if receipt is None else figures.reuse(receipt.reused, receipt.read)


def verdict(view: View, _width: int) -> Content:
    """How sure the text of the last answer is."""
    found = view.live.verdict
    if found is None:
        return Content.styled("–", MUTED)
    text, style = _said(found)
    return Content.styled(text, style)


def _said(found: Verdict) -> tuple[str, str]:
    match found.kind:
        case "near_ties":
            return f"{figures.verdict(found)}: there another text was as likely", "$text-warning"
        case "not_greedy":
            return "sampled: a draw from the target's own chances", MUTED
        case "unmeasured":
            return "not measured: how sure this text is, is not known", MUTED
        case "clear":
            return "clear: no near ties", "$text-success"
    return figures.verdict(found), "$text-success"


def counts(view: View, width: int) -> Content:
    """The same figures of this answer, this chat, and all since the start."""
    live = view.live
    three = (live.turn, live.chat, live.session)
    rows = {
        "": ("answer", "chat", "all"),
        "tokens": tuple(_short(each.emitted) for each in three),
        "accepted": tuple(figures.share(each.acceptance) for each in three),
        "a round": tuple(figures.each(each.per_round) for each in three),
        "won": tuple(_signed(each.saved_ms) for each in three),
    }
    column = (width - LABEL) // 3
    return _lines(
        *(
            Content.assemble(
                (name.ljust(width - 3 * column), MUTED),
                ("".join(cell.rjust(column) for cell in row), "" if name else MUTED),
            )
            for name, row in rows.items()
        )
    )


def _short(number: int) -> str:
    """A number in six cells at most: 99,999, then 100k, then 1.0M."""
    if number < 100_000:
        return f"{number:,}"
    return f"{number / 1000:.0f}k" if number < 999_500 else f"{number / 1e6:.1f}M"


def _signed(ms: float | None) -> str:
    """Milliseconds won or lost, in few cells."""
    if ms is None:
        return "–"
    amount = figures.wait(abs(ms) / 1000).replace(" min", "m").replace(" ", "")
    return f"{'+' if ms >= 0 else '−'}{amount}"
