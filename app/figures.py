"""Figures as words: pure functions from records to short plain text, the same in every widget."""

from typing import Literal

from engine.config import Speculation
from engine.stats import Answer, Verdict

NEARLY_FULL = 0.85
"""Share of the context above which a warning is due."""


def mode(speculation: Speculation) -> str:
    """The mode in one or two words."""
    return f"fixed {speculation.length}" if speculation.mode == "fixed" else speculation.mode


def speed(tps: float | None) -> str:
    """Tokens a second."""
    return "– tok/s" if tps is None else f"{tps:.1f} tok/s"


def share(rate: float | None) -> str:
    """A rate in per cent."""
    return "–" if rate is None else f"{100 * rate:.0f} %"


def each(rate: float | None) -> str:
    """Tokens a round."""
    return "–" if rate is None else f"{rate:.1f}"


def verdict(found: Verdict) -> str:
    """What a greedy answer's verdict says; empty where there is nothing to say."""
    if found.kind == "near_ties":
        count = len(found.near_ties)
        return f"{count} near tie{'' if count == 1 else 's'}"
    return {"identical": "identical to the target alone", "clear": "no near ties"}.get(found.kind, "")


def near_tie(answer: Answer, tied: str = "") -> str:
    """The near ties of an answer and where the first is; `tied` is the text of that token, where it is known."""
    ties = answer.verdict.near_ties
    where = f"at token {ties[0] + 1:,}" if ties[0] < len(answer.ids) else "at its end"
    return f"{verdict(answer.verdict)}{', the first' if len(ties) > 1 else ''} {where} {tied}".rstrip()


def reuse(reused: int, read: int) -> str:
    """The receipt of the target's cache."""
    return f"reused {reused:,} · read {read:,}"


def won(saved_ms: float) -> str:
    """What drafting won against single passes, or lost."""
    if abs(saved_ms) < 0.5:
        return "nothing won"
    return f"{'won' if saved_ms > 0 else 'lost'} {wait(abs(saved_ms) / 1000)}"


def summary(answer: Answer, tied: str = "") -> str:
    """The receipt of a finished answer; `tied` is the text of its first token that was nearly another one."""
    spec, cache = answer.speculation, answer.cache.target
    parts = [count(len(answer.ids), "token")]
    if answer.timings.decode_tps is not None:
        parts.append(speed(answer.timings.decode_tps))
    if spec.drafted:
        parts += [f"{share(spec.acceptance_rate)} accepted", f"{each(spec.mean_tokens_per_round)} a round"]
        if spec.saved_ms is not None:
            parts.append(won(spec.saved_ms))
    parts.append(reuse(cache.reused, cache.read))
    if said := near_tie(answer, tied) if answer.verdict.near_ties else verdict(answer.verdict):
        parts.append(said)
    return " · ".join(parts)


def fit(parts: list[str], width: int, gap: str = "  ·  ") -> str:
    """As many of the parts, in order, as fit in `width` cells of plain text."""
    line = ""
    for part in parts:
        longer = f"{line}{gap}{part}" if line else part
        if len(longer) > width:
            break
        line = longer
    return line


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters, with an ellipsis where something is cut."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: max(0, width - 1)].rstrip() + "…"


def wait(seconds: float | None) -> str:
    """A time span, in two or three figures."""
    if seconds is None:
        return "–"
    if abs(seconds) < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if abs(seconds) < 60:
        return f"{seconds:.{2 if abs(seconds) < 9.995 else 1}f} s"
    return f"{seconds / 60:.1f} min" if abs(seconds) < 3600 else f"{seconds / 3600:.1f} h"


def filling(used: int, total: int | None) -> Literal["", "nearly full", "full"]:
    """How full the context is, where that is worth a word."""
    if not total or used < NEARLY_FULL * total:
        return ""
    return "nearly full" if used < total else "full"


def context(used: int, typed: int, total: int) -> str:
    """How much of the context is used, what the message that is being typed comes to, and how much there is."""
    return f"{used:,}{f' + {typed:,}' if typed else ''} / {total:,}"


def over(used: int, typed: int, total: int | None) -> str:
    """What is to be said of a message that is being typed, where there is less room left; empty where it fits."""
    if not total or not typed or used + typed < total:
        return ""
    if typed >= total:
        return f"this message does not fit: {count(typed - total + 1, 'token')} over"
    return f"{count(used + typed - total + 1, 'token')} over: the oldest turns leave for this message"


def count(number: int, word: str) -> str:
    """So many of something."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def chance(probability: float) -> str:
    """A probability in per cent; none is called 0 or 100 that is not."""
    percent = 100 * probability
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.0f} %" if percent in (0, 100) else f"{percent:.1f} %"


def left(tps: float | None, tokens: int) -> str:
    """How long so many tokens take, as the end of a line; empty where that is not known, or no time."""
    if not tps or tokens <= 0 or (seconds := tokens / tps) < 1:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f" · {minutes} min {rest} s left" if minutes else f" · {rest} s left"
