"""A proof of losslessness as lines for people: a table that grows test by test, and the verdict below it."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from app.output import CLEAR, styled
from engine.detokenize import sanitize
from engine.experiments.prove_records import Compared, Counted, Difference, Report

SABOTAGED = """SABOTAGE: a broken rule is in place. After a draft was refused it draws from the target
itself, not from what the draft has left of it. This run has to fail.
"""
STAND_IN = "stand-in: no draft model here, so the target with its own logits blurred drafts"
_NAME = 22
HEAD = f"{'':{_NAME}}{'kept':>6}{'expected':>9}{'p of 1st':>9}{'2nd':>9}{'3rd':>9}{'kept':>9}"
"""p-values of the first token of an answer, of the second given the first, and so on, and of the drafts kept."""


class Progress:
    """How far it is: one line that is drawn anew in a terminal, else a line for each thing that is begun."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._live = stream, styled(stream)
        self._what = self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def show(self, what: str, share: float) -> None:
        """Tell what is being done, and its share that is done."""
        text = self.text(sanitize(what), share)
        if self._live and text != self._shown:
            self._write(CLEAR + text)
            self._shown = text
        elif not self._live and what != self._what:
            self._write(f"paceline: {sanitize(what)}\n")
        self._what = what

    def text(self, what: str, share: float) -> str:
        """The line in a terminal."""
        return f"{what} {share:.0%}"

    def notes(self, notes: Sequence[str]) -> None:
        """Tell what was found while loading."""
        self.clear()
        self._write("".join(f"paceline: {sanitize(note)}\n" for note in notes))

    def clear(self) -> None:
        """Make room for a result."""
        if self._shown:
            self._write(CLEAR)
            self._shown = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Lines:
    """Prints results as they come."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._group = ""

    def print(self, event: Counted | Compared | Report) -> None:
        """One test, or the verdict."""
        if isinstance(event, Report):
            self._lines("", *verdict(event))
        elif isinstance(event, Counted):
            if not self._group:
                self._lines(HEAD)
            self._begin(f"{event.setting}: drafts of {event.length}, {event.rounds:,} answers a line")
            self._lines(counted(event))
        else:
            self._begin("texts with speculation on, against off")
            self._lines(compared(event), *(differs(event.difference) if event.difference else ()))

    def _begin(self, group: str) -> None:
        if group != self._group:
            self._group = group
            self._lines(group)

    def _lines(self, *lines: str) -> None:
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()


def counted(test: Counted) -> str:
    """Rule, drafter, what was kept, and the p-values."""
    *tokens, kept = test.p_values.values()
    cells = "".join(f"{_p(p):>9}" for p in (*tokens, *[None] * (3 - len(tokens)), kept))
    impossible = f", {test.impossible} impossible" if test.impossible else ""
    name = f"  {test.rule}, {test.draft}"
    return f"{name:{_NAME}}{test.kept:6.3f}{test.kept_expected:9.3f}{cells} {_word(test.passed)}{impossible}"


def compared(test: Compared) -> str:
    """Sampling, how it drafted, and how many texts are equal."""
    name = f"  {test.sampling}, {'auto' if test.mode == 'auto' else f'drafts of {test.mode}'}"
    kept = f"{test.accepted} of {test.drafted} drafts kept"
    return f"{name:30}{test.equal} of {test.prompts} equal; {kept} {_word(test.passed)}"


def differs(difference: Difference) -> tuple[str, ...]:
    """The place, and both texts from there."""
    prompt, off, on = (sanitize(text).replace("\n", "␊") for text in (difference.prompt, difference.off, difference.on))
    return (f"    differs from token {difference.token} on: {prompt}", f"      off: {off}", f"      on:  {on}")


def verdict(report: Report) -> list[str]:
    """What was tested, and the result."""
    names = " with ".join(name for name in (report.target, report.draft) if name)
    least = "none" if report.least is None else f"{report.least:.2g}"
    equal = sum(test.passed for test in report.compared)
    lines = [
        f"{names}: {len(report.counted)} tests, {report.tests} p-values, the least {least} (one under "
        f"{report.threshold:.2g} fails: {report.level:g} for all together); {equal} of {len(report.compared)} "
        "comparisons of text equal",
        _result(report),
    ]
    return [STAND_IN, *lines] if any(test.draft == "stand-in" for test in report.counted) else lines


def _result(report: Report) -> str:
    tests, texts = (sum(not test.passed for test in some) for some in (report.counted, report.compared))
    found = f"{tests} of {len(report.counted)} tests and {texts} of {len(report.compared)} comparisons of text"
    if report.sabotage and report.passed:
        return "PASSED, WHICH IS WRONG: the sabotage was not found, so this test is worth nothing here"
    if report.passed:
        return "passed: what the engine emits has the target's own distribution, as far as these tests can see"
    return f"FAILED, as it has to: the sabotage shows in {found}" if report.sabotage else f"FAILED: {found}"


def _p(p: float | None) -> str:
    return "-" if p is None else f"{p:.2g}" if p < 0.001 else f"{p:.3f}"


def _word(passed: bool) -> str:
    return "ok" if passed else "FAILED"
