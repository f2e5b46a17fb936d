"""Sizes and foreign text as they may be shown on a terminal."""

import math


def size(count: int) -> str:
    """Bytes in decimal units: 98.4 MB, 1.12 GB."""
    if count < 1000:
        return f"{count} B"
    power = min(5, int(math.log10(count)) // 3)
    value = count / 1000**power
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {'kMGTP'[power - 1]}B"


def plain(text: str, limit: int = 300) -> str:
    """One line without control characters, cut at `limit`: for names and messages that come from outside."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text.strip())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
