"""The side panel: what it shows, that nothing is cut, when it is folded away, and how little it repaints."""

import msgspec
import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from app.counts import Counts
from app.live import Live, Meter, Reason
from app.widgets import panel_parts
from app.widgets.mode_line import ModeLine
from app.widgets.panel import PARTS, Panel
from app.widgets.panel_parts import View
from app.widgets.section import Section
from engine.config import Speculation
from engine.stats import Verdict
from tests.app.fakes_panel import PanelApp, figured, play, record, written
from tests.app.fakes_shelf import until
from tests.app.test_literal import CONTROL, MARKUP
from tests.fakes_client import answer

WIDTHS = (20, 32, 50)


def shown(panel: Panel, term: str) -> str:
    """The text of one section."""
    return str(panel.query_one(f"#part-{term}", Section).render())


@pytest.mark.parametrize("part", [part for _, part in PARTS])
def test_what_is_not_known_is_a_dash(part: panel_parts.Part) -> None:
    text = part(View(), 32).plain
    assert "–" in text
    assert "None" not in text
    assert "nan" not in text


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("view", [View(), View(written(), 8192, 2_000_000_000)], ids=["empty", "full"])
@pytest.mark.parametrize(("term", "part"), PARTS)
def test_no_line_of_figures_is_too_long(term: str, part: panel_parts.Part, view: View, width: int) -> None:
    lines = part(view, width).plain.split("\n")
    sentences = {"plan": lines[:1], "verdict": lines}.get(term, [])
    assert all(cell_len(line) <= width for line in lines if line not in sentences)


def test_every_figure_stands_in_its_section() -> None:
    view = View(written(), 8192, 1_930_000_000)
    said = {term: part(view, 32).plain for term, part in PARTS}
    assert "54.2 tok/s" in said["speed"]
    assert "first 400 ms" in said["speed"]
    assert "67 %" in said["acceptance"]
    assert "2.0 tokens" in said["acceptance"]
    assert "lookup 42 %" in said["origin"]
    assert "draft 25 %" in said["origin"]
    assert "target 33 %" in said["origin"]
    assert "lookup up to 7: +61 %" in said["plan"]
    assert "932 / 8,192" in said["context"]
    assert "reused 790 · read 22" in said["context"]
    assert "reused 7 · read 2" in said["context"]
    assert "1.93 GB" in said["context"]
    assert "won 1.24 s" in said["plan"]
    assert "needs 55 %" in said["plan"]
    assert "no near ties" in said["verdict"]
    assert [line.split()[0] for line in said["counts"].split("\n")[1:]] == ["tokens", "accepted", "a", "won"]


def test_needed_stands_against_observed() -> None:
    live = Live(reason=Reason("because", 0.55, 0.67))
    text = panel_parts.plan(View(live), 32).plain
    assert text.startswith("because\nneeds 55 % ")
    assert text.split("\n")[1].endswith(" has 67 %")
    assert "┃" in text


@pytest.mark.parametrize(("plain_ms", "said"), [(90.0, "won 1.20 s"), (30.0, "lost 1.20 s"), (None, "won or lost: –")])
def test_milliseconds_won_or_lost(plain_ms: float | None, said: str) -> None:
    live = play(Meter(), [figured(plain_ms=plain_ms, ms=60.0)] * 40)
    assert said in panel_parts.plan(View(live), 32).plain


@pytest.mark.parametrize(
    ("used", "word", "style"),
    [(100, "", "$primary"), (870, "", "$primary"), (871, "nearly full: 153", "$warning"), (1024, "full: ", "$error")],
)
def test_the_context_warns_before_it_is_full(used: int, word: str, style: str) -> None:
    drawn = panel_parts.context(View(Live(context=used), 1024), 32)
    assert word in drawn.plain
    assert ("full" in drawn.plain) == bool(word)
    assert style in {str(span.style) for span in drawn.spans}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (20, ""),
        (200, "nearly full: 124 tokens left"),
        (324, "1 token over: the oldest turns leave"),
        (1023, "700 tokens over: the oldest turns leave"),
        (1024, "this message does not fit: 1 token over"),
    ],
)
def test_what_is_typed_counts_and_is_warned_of(typed: int, said: str) -> None:
    first, *rest = panel_parts.context(View(Live(context=700), 1024, typed=typed), 32).plain.split("\n")
    assert first.endswith(f"700 + {typed:,} / 1,024")
    assert cell_len(first) == 32
    assert rest[0].startswith(said or "target")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("identical", "identical to the target alone"),
        ("clear", "no near ties"),
        ("near_ties", "2 near ties"),
        ("unmeasured", "not measured"),
        ("not_greedy", "sampled"),
    ],
)
def test_verdicts_are_words(kind: str, said: str) -> None:
    found = msgspec.convert({"kind": kind, "near_ties": [1, 2] if kind == "near_ties" else []}, Verdict)
    assert said in panel_parts.verdict(View(Live(verdict=found)), 32).plain


def test_without_colours_the_parts_of_a_bar_differ_by_their_filling() -> None:
    bar = panel_parts.origin(View(written(), colours=False), 32).plain.split("\n")[0]
    assert set(bar) == {"░", "█", "▓"}
    assert set(panel_parts.origin(View(written()), 32).plain.split("\n")[0]) == {"█"}


@pytest.mark.parametrize(("columns", "there"), [(109, False), (110, True), (200, True)])
async def test_it_is_folded_away_where_the_window_is_narrow(columns: int, there: bool) -> None:
    async with PanelApp().run_test(size=(columns, 40)) as pilot:
        await pilot.pause()
        assert pilot.app.query_one(Panel).display is there


async def test_the_user_folds_and_unfolds_it_whatever_the_width() -> None:
    app = PanelApp()
    async with app.run_test(size=(200, 40)) as pilot:
        app.panel.toggle()
        assert not app.panel.display
        app.panel.fit(210)
        assert not app.panel.display
        app.panel.fit(80)
        app.panel.toggle()
        assert app.panel.display
        app.panel.fit(79)
        assert app.panel.display
        await pilot.pause()


async def test_figures_that_came_while_it_was_folded_are_there_when_it_unfolds() -> None:
    app = PanelApp()
    async with app.run_test(size=(80, 40)) as pilot:
        app.panel.live = written()
        await pilot.pause()
        app.panel.toggle()
        await pilot.pause()
        assert "54.2 tok/s" in shown(app.panel, "speed")


@pytest.mark.parametrize("text", ["word " * 40, "漢字かな交じり文" * 12, "x" * 90])
async def test_the_sentence_of_the_planner_is_wrapped_and_never_cut(text: str) -> None:
    app = PanelApp()
    async with app.run_test(size=(140, 60)) as pilot:
        app.panel.live = Live(reason=Reason(text))
        await pilot.pause()
        section = app.panel.query_one("#part-plan", Section)
        lines = "".join(str(section.render_line(row).text).strip() for row in range(1, section.size.height - 2))
        assert lines.replace(" ", "") == text.replace(" ", "")


async def test_a_shorter_sentence_gives_the_lines_back() -> None:
    app = PanelApp()
    async with app.run_test(size=(140, 60)) as pilot:
        heights = []
        for text in ("word " * 40, "word", "words " * 40):
            app.panel.live = Live(reason=Reason(text))
            await pilot.pause()
            heights.append(app.panel.query_one("#part-plan", Section).size.height)
        assert heights[0] > heights[1] == 4
        assert heights[2] > 4


async def test_only_what_changed_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    app = PanelApp()
    async with app.run_test(size=(140, 60)) as pilot:
        meter = Meter(clock=lambda: 0.0)
        app.panel.n_ctx, app.panel.live = 8192, play(meter, [figured()] * 3)
        await pilot.pause()
        painted: list[str | None] = []
        monkeypatch.setattr(Section, "update", lambda self, *_, **__: painted.append(self.id))
        app.panel.live = meter.add(figured(context=121))
        assert "part-context" in painted
        assert "part-verdict" not in painted
        painted.clear()
        app.panel.memory = 5
        assert painted == ["part-context"]


async def test_figures_that_change_quickly_are_painted_seldom_and_the_last_are_there_at_once() -> None:
    app = PanelApp(paint_s=3600.0)
    async with app.run_test(size=(140, 60)) as pilot:
        meter = Meter(clock=lambda: 0.0)
        meter.begin()
        for context in range(100, 120):
            app.panel.n_ctx, app.panel.live = 8192, meter.add(figured(context=context))
        await pilot.pause()
        assert "100 / 8,192" in shown(app.panel, "context")
        app.panel.live = meter.finish(record())
        await pilot.pause()
        assert "932 / 8,192" in shown(app.panel, "context")


async def test_the_last_of_quick_figures_comes_by_itself() -> None:
    app = PanelApp(paint_s=0.01)
    async with app.run_test(size=(140, 60)) as pilot:
        app.panel.n_ctx = 8192
        meter = Meter(clock=lambda: 0.0)
        meter.begin()
        for context in range(100, 120):
            app.panel.live = meter.add(figured(context=context))
        await until(pilot, lambda: "119 / 8,192" in shown(app.panel, "context"))
        assert app.panel.live.context == 119


async def mode(pilot: Pilot[None]) -> str:
    return str(pilot.app.query_one(ModeLine).render())


async def test_the_setting_is_shown_and_a_click_asks_for_the_next() -> None:
    app = PanelApp()
    async with app.run_test(size=(140, 60)) as pilot:
        assert (await mode(pilot)).endswith(" auto ")
        app.panel.speculation = Speculation(mode="fixed", length=3)
        await pilot.pause()
        assert (await mode(pilot)).endswith(" fixed 3 ")
        await pilot.click(ModeLine)
        assert app.wanted == 1


async def test_text_of_a_model_is_neither_markup_nor_control() -> None:
    app = PanelApp()
    async with app.run_test(size=(140, 60)) as pilot:
        for text in (*MARKUP, *CONTROL):
            app.panel.live = Live(reason=Reason(text))
            await pilot.pause()
            assert "\x1b" not in shown(app.panel, "plan")
        app.panel.live = Live(reason=Reason(CONTROL[0]))
        assert "␛]52;c;aGk=␇" in shown(app.panel, "plan")
        app.panel.live = Live(reason=Reason(MARKUP[0]))
        assert MARKUP[0] in shown(app.panel, "plan")


async def test_every_section_says_what_it_means_under_the_mouse() -> None:
    async with PanelApp().run_test(size=(140, 60)) as pilot:
        for section in pilot.app.query(Section):
            assert len(str(section.tooltip).split()) > 8


async def test_all_of_it_can_be_seen_in_a_low_window_by_scrolling() -> None:
    app = PanelApp()
    async with app.run_test(size=(120, 24)) as pilot:
        app.panel.live = written()
        await pilot.pause()
        assert app.panel.has_class("-tight")
        app.panel.focus()
        await pilot.press("end")
        await pilot.pause()
        last = app.panel.query(Section).last()
        assert app.panel.region.contains_region(last.region)


@pytest.mark.parametrize(
    ("number", "said"),
    [(99_999, "99,999"), (100_000, "100k"), (999_499, "999k"), (999_500, "1.0M"), (12_345_678, "12.3M")],
)
def test_great_numbers_fit_their_column(number: int, said: str) -> None:
    counts = Counts(rounds=1, emitted=number, saved_ms=-number * 5.0)
    lines = panel_parts.counts(View(Live(turn=counts, chat=counts, session=counts)), 32).plain.split("\n")
    assert lines[1].split() == ["tokens", said, said, said]
    assert len(lines[-1].split()) == 4


def test_an_answer_alone_is_enough() -> None:
    live = Meter().show(answer("abc"))
    assert "54.2 tok/s" in panel_parts.speed(View(live), 32).plain
