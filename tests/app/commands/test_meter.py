"""The progress line: one live line on a terminal, a few plain ones elsewhere."""

import io

from app.commands.meter import Meter
from models.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_file_gets_a_line_each_tenth(tmp_path: object) -> None:
    out = io.StringIO()
    with Meter(out) as meter:
        for done in range(0, 1001, 5):
            meter.report(Progress(done, 1000, "downloading x"))
    lines = out.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[0] == "downloading x  0 B of 1.00 kB  0 %"
    assert lines[-1] == "downloading x  1.00 kB of 1.00 kB  100 %"
    assert "\r" not in out.getvalue()


def test_a_wait_is_said_once() -> None:
    out = io.StringIO()
    with Meter(out) as meter:
        for _ in range(50):
            meter.report(Progress(0, 1000, "waiting"))
    assert out.getvalue().count("waiting") == 1


def test_a_terminal_gets_one_line_drawn_again_but_not_too_often() -> None:
    out, clock = io.StringIO(), Clock()
    with Meter(out, live=True, clock=clock) as meter:
        for done in range(1001):
            clock.now += 0.01
            meter.report(Progress(done, 1000, "a" * (30 - done // 50)))
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert 90 <= text.count("\r") <= 130
    assert text.splitlines()[-1].rstrip().endswith("1.00 kB of 1.00 kB  100 %")


def test_a_shorter_line_covers_the_longer_one_before() -> None:
    out, clock = io.StringIO(), Clock()
    meter = Meter(out, live=True, clock=clock)
    meter.report(Progress(0, 10, "long words here"))
    clock.now = 1
    meter.report(Progress(1, 10, "short"))
    first, second = out.getvalue().split("\r")[1:]
    assert len(second) >= len(first)


def test_an_unknown_total_does_not_divide_by_zero() -> None:
    out = io.StringIO()
    Meter(out).report(Progress(0, 0, "x"))
    assert "0 %" in out.getvalue()
