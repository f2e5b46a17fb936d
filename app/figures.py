"""Figures as words: pure functions from records to short plain text, the same in every widget."""

from engine.config import Speculation
from engine.stats import Answer, Verdict


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


def reuse(reused: int, read: int) -> str:
    """The receipt of the target's cache."""
    return f"reused {reused:,} · read {read:,}"


def summary(answer: Answer) -> str:
    """One line about a finished answer."""
    spec = answer.speculation
    parts = [f"{len(answer.ids):,} tokens"]
    if answer.timings.decode_tps is not None:
        parts.append(speed(answer.timings.decode_tps))
    if spec.drafted:
        parts += [f"{share(spec.acceptance_rate)} accepted", f"{each(spec.mean_tokens_per_round)} a round"]
    if said := verdict(answer.verdict):
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
