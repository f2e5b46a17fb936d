"""Tuning as lines for people: a table that grows form by form, and what came of it below."""

from typing import TYPE_CHECKING

from engine.detokenize import sanitize
from engine.experiments.tune_records import Failed, Measured, Report
from models.text import size

if TYPE_CHECKING:
    from app.tuned import Tuned

_NAME = 38
HEAD = f"{'form of the draft':{_NAME}}{'size':>9}{'ms':>7}{'for 2':>7}{'greedy':>8}{'T 0.8':>7}{'gain':>7}"
"""Milliseconds of passes over one token and two, acceptance, and expected tokens per millisecond to no drafts."""


def line(event: Measured | Failed) -> str:
    """One form."""
    name = f"{event.form!s:{_NAME}}"
    if isinstance(event, Failed):
        return f"{name} left out: {sanitize(event.why)}"
    kept = event.acceptance
    return (
        f"{name}{size(event.bytes):>9}{event.ms:7.2f}{event.ms_two:7.2f}"
        f"{kept.greedy:8.3f}{kept.sampled:7.3f}{event.gain:7.3f}"
    )


def verdict(report: Report) -> list[str]:
    """What was measured, and what the best draft is worth here."""
    best = report.best or report.original
    passes = ", ".join(f"{ms:.1f} over {width}" for width, ms in report.target_ms.items())
    return [
        f"the target's passes: {passes} (milliseconds behind {report.context} tokens); acceptance over "
        f"{report.places:,} places",
        _gained(report),
        _worth(report, best),
    ]


def _gained(report: Report) -> str:
    before, best = report.original, report.best
    if best is None:
        return "no form promises more than the draft as it is"
    return (
        f"{best.form}: {before.ms:.2f} to {best.ms:.2f} ms, acceptance {before.acceptance.chance:.3f} to "
        f"{best.acceptance.chance:.3f}, {report.speed(before):.1f} to {report.speed(best):.1f} tokens/s expected"
    )


def _worth(report: Report, best: Measured) -> str:
    """Whether drafting with a model pays at all, with the numbers."""
    alone = 1e3 / report.target_ms[1]
    if report.pays:
        return f"drafts of {best.length} are expected to make {best.gain:.2f} times the {alone:.1f} tokens/s without"
    need = "not even perfect drafts pay" if report.needed is None else f"it pays from an acceptance of {report.needed}"
    return (
        f"no draft model pays here: the best length, {best.length}, makes {best.gain:.2f} times the {alone:.1f} "
        f"tokens/s without; {need}, and this one has {best.acceptance.chance:.2f}, so automatic mode leaves it alone"
    )


def kept(made: "Tuned | None") -> str:
    """What is on the drive now."""
    if made is None:
        return "nothing is kept: the draft is used as it is"
    return (
        f"kept as {made.id}: its pair takes it from now on, --draft takes it elsewhere, paceline models rm deletes it"
    )
