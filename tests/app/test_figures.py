"""Figures as words, the live figures and messages: all pure."""

import pytest
from msgspec.structs import replace

from app import figures
from app.live import Meter
from app.transcript import Entry
from app.widgets.status import StatusLine
from engine.config import Message, Speculation
from engine.events import Reading
from engine.stats import SpeculationStats, Verdict
from tests.fakes_client import answer, one_round


def test_modes() -> None:
    modes = [Speculation(), Speculation(mode="off"), Speculation(mode="fixed", length=3)]
    assert [figures.mode(mode) for mode in modes] == ["auto", "off", "fixed 3"]


def test_undefined_figures_are_a_dash() -> None:
    assert (figures.speed(None), figures.share(None), figures.each(None)) == ("– tok/s", "–", "–")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Verdict(kind="identical"), "identical to the target alone"),
        (Verdict(kind="clear", threshold=0.4), "no near ties"),
        (Verdict(kind="near_ties", near_ties=[4]), "1 near tie"),
        (Verdict(kind="near_ties", near_ties=[4, 9]), "2 near ties"),
        (Verdict(kind="not_greedy"), ""),
        (Verdict(kind="unmeasured"), ""),
    ],
)
def test_verdicts(found: Verdict, said: str) -> None:
    assert figures.verdict(found) == said


def test_a_summary_without_drafts_says_nothing_of_them() -> None:
    stats = answer("x").speculation
    plain = SpeculationStats(
        mode="off", length=None, width_limit=None, rule=stats.rule, rounds=3, drafted=0, accepted=0,
        acceptance_rate=None, acceptance_per_test=None, mean_tokens_per_round=1.0, by_source={}, by_position=[],
        plan="",
    )  # fmt: skip
    assert (
        figures.summary(answer("x", speculation=plain, verdict=Verdict(kind="not_greedy")))
        == "1 token · 54.2 tok/s · reused 790 · read 22"
    )


def test_fit_takes_whole_parts_only() -> None:
    assert [figures.fit(["one", "two", "three"], width, "·") for width in (2, 3, 7, 12, 13, 99)] == [
        "", "one", "one·two", "one·two", "one·two·three", "one·two·three",
    ]  # fmt: skip


@pytest.mark.parametrize("width", range(8))
def test_shorten_never_exceeds_its_width(width: int) -> None:
    assert len(figures.shorten("a  b\nc def", width)) <= max(1, width)
    assert figures.shorten("a  b\nc", 5) == "a b c"


def test_live_figures_are_sums_over_the_last_two_seconds() -> None:
    meter = Meter(window_ms=100.0)
    meter.add(one_round(emitted=9, drafted=9, accepted=8, ms=90.0))
    meter.add(one_round(emitted=3, drafted=4, accepted=2, ms=60.0))
    live = meter.add(one_round(emitted=1, drafted=4, accepted=0, ms=40.0, context=77))
    assert live.tps == pytest.approx(4 / 0.1)
    assert live.acceptance == pytest.approx(2 / 8)
    assert live.per_round == pytest.approx(2.0)
    assert live.context == 77


def test_one_long_round_is_enough_for_figures() -> None:
    live = Meter(window_ms=10.0).add(one_round(emitted=2, drafted=0, accepted=0, ms=500.0))
    assert (live.tps, live.acceptance, live.source) == (4.0, None, None)


def test_the_source_is_that_of_the_last_draft_until_speculation_is_off() -> None:
    meter = Meter()
    assert meter.add(one_round(source="model")).source == "model"
    assert meter.add(one_round(drafted=0, accepted=0, source=None)).source == "model"
    off = one_round(drafted=0, accepted=0, source=None, speculation=Speculation(mode="off"))
    assert meter.add(off).source is None


def test_a_round_of_no_time_has_no_speed() -> None:
    assert Meter().add(one_round(ms=0.0)).tps is None


def test_an_answer_goes_back_as_its_ids() -> None:
    said = Entry.of_answer(answer("two", ids=[5, 6]))
    assert said.message() == Message(role="assistant", content="two", ids=(5, 6))
    assert Entry("assistant", "half", None, "broken off").message() == Message(role="assistant", content="half")


@pytest.mark.parametrize(
    ("finish", "ending"),
    [("stop", ""), ("cancelled", "stopped"), ("length", "cut off"), ("context_full", "context full")],
)
def test_how_an_answer_ended_is_flagged(finish: str, ending: str) -> None:
    assert Entry.of_answer(answer("x", finish)).ending == ending  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ties", "said"),
    [
        ([0], "1 near tie at token 1 ‘a’"),
        ([1, 2], "2 near ties, the first at token 2 ‘a’"),
        ([2], "1 near tie at its end ‘a’"),
    ],
)
def test_a_receipt_names_the_near_tie_and_what_was_won(ties: list[int], said: str) -> None:
    stats = replace(answer("x").speculation, saved_ms=1240.0)
    tied = answer("x", ids=[5, 6], speculation=stats, verdict=Verdict(kind="near_ties", near_ties=ties))
    assert figures.summary(tied, "‘a’") == (
        f"2 tokens · 54.2 tok/s · 67 % accepted · 1.9 a round · won 1.24 s · reused 790 · read 22 · {said}"
    )


def test_what_was_won_or_lost() -> None:
    assert [figures.won(ms) for ms in (340.0, -1500.0, 0.2)] == ["won 340 ms", "lost 1.50 s", "nothing won"]


def test_no_chance_is_called_sure_or_nought_that_is_not() -> None:
    chances = (0.0, 0.0004, 0.001, 0.5, 0.9994, 0.9995, 1.0)
    said = ["0 %", "< 0.1 %", "0.1 %", "50.0 %", "> 99.9 %", "> 99.9 %", "100 %"]
    assert [figures.chance(one) for one in chances] == said


@pytest.mark.parametrize(
    ("tps", "tokens", "said"),
    [(None, 100, ""), (0.0, 100, ""), (100.0, 0, ""), (100.0, 50, ""), (100.0, 700, " · 7 s left"),
     (10.0, 1300, " · 2 min 10 s left")],
)  # fmt: skip
def test_how_long_a_rest_takes(tps: float | None, tokens: int, said: str) -> None:
    assert figures.left(tps, tokens) == said


def test_reading_tells_the_time_left_at_its_own_speed() -> None:
    now = [0.0]
    line = StatusLine(lambda: now[0])
    details = []
    for seconds, done in ((0.0, 100), (1.0, 300), (2.0, 500)):
        now[0] = seconds
        line.show_reading(Reading(model="target", reused=100, done=done, total=1500))
        assert line.progress is not None
        details.append(line.progress.detail)
    assert details == ["100 / 1,500 tokens", "300 / 1,500 tokens · 6 s left", "500 / 1,500 tokens · 5 s left"]
