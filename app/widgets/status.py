"""Two lines of figures: how fast, how well the drafts hold, how full the context is, and why it drafts as it does.

It shows the records it is given; a repaint never changes the layout.
"""

import time
from collections.abc import Callable

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from app import figures
from app.live import Live
from app.themes import MUTED
from app.widgets.bar import Progress, draw
from engine.config import Speculation
from engine.detokenize import sanitize
from engine.events import Loaded, Loading, Reading
from engine.stats import Answer

GAP = " · "


class StatusLine(Widget):
    """The figures of the answer being written, or of the last one."""

    speculation: reactive[Speculation] = reactive(Speculation())
    """The mode that the next round will have."""
    live: reactive[Live | None] = reactive(None)
    context: reactive[tuple[int, int] | None] = reactive(None)
    """Tokens of context used and in all."""
    typed: reactive[int] = reactive(0)
    """Tokens of the message that is being typed."""
    receipt: reactive[tuple[int, int] | None] = reactive(None)
    """Prompt tokens that the target reused and read."""
    progress: reactive[Progress | None] = reactive(None)
    """What is under way; it takes the second line."""
    doing: reactive[str] = reactive("")
    """What goes on of which nobody knows how far it is; it takes the second line before all else."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._reading: tuple[str, int, float] | None = None
        """Which model reads, where it began and when."""

    def show_loading(self, event: Loading) -> None:
        """Show how far the load is."""
        self.progress = Progress(f"Loading: {event.what}", event.share)

    def show_loaded(self, event: Loaded) -> None:
        """Show an empty context."""
        self.progress = None
        self.context = (0, event.n_ctx)

    def clear(self) -> None:
        """Show an empty context and no answer."""
        self.live = self.receipt = None
        if self.context is not None:
            self.context = (0, self.context[1])

    def show_reading(self, event: Reading) -> None:
        """Show how far the prompt is read, and how long the rest of it takes at the speed so far."""
        what = "Reading" if event.model == "target" else "Reading (draft)"
        share = event.done / event.total if event.total else 1.0
        left = figures.left(self._pace_of(event), event.total - event.done)
        self.progress = Progress(what, share, f"{event.done:,} / {event.total:,} tokens{left}")
        if event.model == "target":
            self.receipt = (event.reused, max(0, event.done - event.reused))

    def _pace_of(self, event: Reading) -> float | None:
        """Tokens a second since the first event of this reading; None while there is one alone."""
        now = self._clock()
        model, done, since = self._reading or ("", 0, now)
        if model != event.model or event.done <= done:
            self._reading = (event.model, event.done, now)
            return None
        return (event.done - done) / (now - since) if now > since else None

    def show_writing(self, live: Live | None) -> None:
        """Show the figures of the last rounds."""
        self.progress = self._reading = None
        if live is not None:
            self.live = live
            if self.context is not None:
                self.context = (live.context, self.context[1])

    def show_finished(self, answer: Answer) -> None:
        """Show the figures of the whole answer."""
        self.progress = None
        self.receipt = (answer.cache.target.reused, answer.cache.target.read)
        if self.live is not None:
            self.live = self.live.ended(answer)

    def render(self) -> Content:
        """Both lines, cut to the width."""
        width = self.content_size.width
        return Content("\n").join([self._first(width), self._second(width)])

    def _first(self, width: int) -> Content:
        badge = f" {figures.mode(self.speculation)} "
        right = self._filling(width)
        room = width - len(badge) - 1 - len(right) - 2
        left = figures.fit(self._parts(), room, GAP)
        return Content.assemble(
            (badge, f"bold $background on ${'secondary' if self.speculation.mode == 'off' else 'accent'}"),
            " ",
            left.ljust(room),
            "  ",
            (right, self._urgency()),
        )

    def _urgency(self) -> str:
        """The colour of the context: a warning before it is full."""
        used, total = self.context or (0, 0)
        filling = figures.filling(used + self.typed, total)
        return {"": MUTED, "nearly full": "$text-warning", "full": "$text-error"}[filling]

    def _parts(self) -> list[str]:
        if (live := self.live) is None:
            return []
        parts = [figures.speed(live.tps)]
        if live.acceptance is not None:
            parts.append(f"{figures.share(live.acceptance)} accepted")
        if live.per_round is not None:
            parts.append(f"{figures.each(live.per_round)} a round")
        if live.source is not None:
            parts.append({"lookup": "by lookup", "model": "by draft", "exit": "by early exit"}[live.source])
        return parts

    def _filling(self, width: int) -> str:
        if self.context is None:
            return ""
        used, total = self.context
        return f"{'context ' if width >= 100 else ''}{figures.context(used, self.typed, total)}"

    def _second(self, width: int) -> Content:
        if self.doing:
            return Content.styled(figures.shorten(sanitize(self.doing), width), MUTED)
        if self.progress is not None:
            return draw(self.progress, width)
        right = figures.reuse(*self.receipt) if self.receipt else ""
        room = width - len(right) - 2
        used, total = self.context or (0, 0)
        if over := figures.over(used, self.typed, total):
            return Content.styled(figures.shorten(over, width), "$text-error")
        plan = figures.shorten(sanitize(self.live.plan), room) if self.live else ""
        return Content.assemble((plan.ljust(room), MUTED), "  ", (right, MUTED))
