"""A small app around the side panel, and figures to put into it."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

import app.widgets
from app import themes
from app.live import Live, Meter
from app.widgets.panel import Panel
from engine.events import Origin, Round, Tokens
from engine.stats import Answer, SourceCount
from tests.fakes_client import answer, one_round, reading

STYLES = Path(app.widgets.__file__).parent / "panel.tcss"
PLAN = "lookup up to 7: +61 %; draft model off: needs 0.93, has 0.80"


class PanelApp(App[None]):
    """A conversation's place on the left, the panel on the right."""

    CSS_PATH = STYLES
    CSS = "Horizontal { height: 1fr; } #rest { width: 1fr; height: 1fr; }"

    def __init__(self, theme: str = themes.THEMES[0].name, paint_s: float = 0.0) -> None:
        super().__init__()
        self._paint_s = paint_s
        self.animation_level = "none"
        themes.register(self)
        self.theme = theme
        self.wanted = 0

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static("the conversation", id="rest", markup=False)
            yield Panel(paint_s=self._paint_s)

    def on_mode_line_mode_wanted(self) -> None:
        self.wanted += 1

    @property
    def panel(self) -> Panel:
        return self.query_one(Panel)


def brought(*origins: Origin) -> Tokens:
    """Tokens of these origins."""
    return Tokens(text="x" * len(origins), ids=list(range(len(origins))), origins=list(origins))


def figured(plain_ms: float | None = 90.0, **fields: object) -> Round:
    """A round whose every figure is known."""
    return one_round(plain_ms=plain_ms, needed=0.55, observed=0.67, plan=PLAN, **fields)  # type: ignore[arg-type]


def play(meter: Meter, rounds: Iterable[Round], origins: tuple[Origin, ...] = ("lookup", "lookup", "target")) -> Live:
    """An answer of these rounds, each with tokens of the same origins."""
    meter.begin()
    meter.read(reading(812, 812, reused=790))
    for one in rounds:
        meter.take(brought(*origins))
        meter.add(one)
    return meter.live


def record() -> Answer:
    """A finished answer in which every figure is known: 120 tokens in 60 rounds."""
    spec = msgspec.structs.replace(
        answer("x").speculation,
        rounds=60, drafted=120, accepted=80, mean_tokens_per_round=2.0, acceptance_rate=2 / 3,
        by_source={"lookup": SourceCount(drafted=70, accepted=50), "model": SourceCount(drafted=50, accepted=30)},
        by_position=[0.9, 0.8, 0.7, 0.5, 0.3, 0.1],
        needed=0.55, observed=0.67, saved_ms=1240.0,
    )  # fmt: skip
    return answer("x" * 120, speculation=spec)


def written(rounds: int = 40) -> Live:
    """The same answer with its rounds; its speed rises and falls."""
    meter = Meter(clock=lambda: 0.0)
    shape = [figured(ms=40.0 + 4 * abs(10 - at % 20), drafted=4, accepted=at % 5) for at in range(rounds)]
    play(meter, shape, ("lookup", "model", "target"))
    return meter.finish(record())
