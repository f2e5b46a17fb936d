"""How a token's origin is shown, the same in the panel and in coloured text: a name, a letter, a colour, a filling.

The colour is a variable of every theme (`app.themes`); letter and filling say the same without any colour.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.events import Origin


@dataclass(frozen=True)
class Look:
    """How one origin is shown."""

    name: str
    letter: str
    style: str
    """A style of text in that colour."""
    filling: str
    """What a bar is filled with where there are no colours."""


LOOKS: Mapping[Origin, Look] = {
    "target": Look("target", "t", "$provenance-target", "░"),
    "lookup": Look("lookup", "l", "$provenance-lookup", "█"),
    "model": Look("draft model", "d", "$provenance-model", "▓"),
    "exit": Look("early exit", "e", "$provenance-exit", "▒"),
}
"""All origins, in the order in which they are listed."""
