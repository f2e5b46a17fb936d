"""What the panel and the help screen look like; each docstring says what the eye should see."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from app.themes import PALETTES
from tests.app.fakes_help import HelpApp
from tests.app.fakes_panel import PanelApp, written

Compare = Callable[..., bool]


@pytest.mark.parametrize("theme", [palette.name for palette in PALETTES])
def test_snapshot_panel(snap_compare: Compare, theme: str) -> None:
    """Seven sections under thin rules; speed in hills, four origins in colours of their own, a mark in the gauge."""
    app = PanelApp(theme)

    async def run(pilot: Pilot[None]) -> None:
        app.panel.n_ctx, app.panel.memory, app.panel.live = 8192, 1_930_000_000, written()
        await pilot.pause()

    assert snap_compare(app, terminal_size=(120, 48), run_before=run)


def test_snapshot_panel_empty(snap_compare: Compare) -> None:
    """The same sections with dashes for figures; the last of them is reached by scrolling."""
    assert snap_compare(PanelApp(), terminal_size=(110, 30))


def test_snapshot_panel_without_colours(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    """Greys; the parts of the stacked bar differ by their filling, and so do the marks of the legend."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = PanelApp()

    async def run(pilot: Pilot[None]) -> None:
        app.panel.n_ctx, app.panel.live = 1024, written()
        await pilot.pause()

    assert snap_compare(app, terminal_size=(120, 48), run_before=run)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
@pytest.mark.parametrize("theme", ["paceline-dark", "paceline-light"])
def test_snapshot_help(snap_compare: Compare, size: tuple[int, int], theme: str) -> None:
    """How to begin and four words; beside them, or below, the keys in their groups."""
    assert snap_compare(HelpApp(theme), terminal_size=size)
