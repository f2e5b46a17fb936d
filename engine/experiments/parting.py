"""Where two texts part."""

from collections.abc import Callable, Sequence

from engine.config import Frozen
from engine.context import common_prefix

SHOWN = 8
"""Tokens that are told of each text from there on."""


class Parting(Frozen, frozen=True, kw_only=True):
    """The first token that differs, from 1, and what follows there without drafts and with them."""

    token: int
    off: str
    on: str


def parting(piece: Callable[[int], bytes], off: Sequence[int], on: Sequence[int]) -> Parting:
    """Where the ids part; `piece` gives the bytes of a token."""
    same = common_prefix(off, on)

    def shown(ids: Sequence[int]) -> str:
        return b"".join(piece(token) for token in ids[same : same + SHOWN]).decode("utf-8", "replace")

    return Parting(token=same + 1, off=shown(off), on=shown(on))
