"""How a token's origin is shown, the same in the panel and in coloured text: a name, a colour, a filling.

The colour is a variable of every theme (`app.themes`); where a terminal has few colours or none, fillings and styles of
letters (`app.widgets.provenance`) say the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from textual.app import App

from engine.events import Origin


@dataclass(frozen=True)
class Look:
    """How one origin is shown."""

    name: str
    short: str
    """The name where there is little room."""
    style: str
    """A style of text in that colour."""
    filling: str
    """What a bar is filled with where there are no colours."""


LOOKS: Mapping[Origin, Look] = {
    "target": Look("target", "target", "$provenance-target", "░"),
    "lookup": Look("lookup", "lookup", "$provenance-lookup", "█"),
    "model": Look("draft model", "draft", "$provenance-model", "▓"),
    "exit": Look("early exit", "exit", "$provenance-exit", "▒"),
}
"""All origins, in the order in which they are listed."""


def coloured(app: App[object]) -> bool:
    """Whether the colours of origins are told apart: a terminal's 16 are too few, a picture has them all."""
    return not app.no_color and (app.is_headless or app.console.color_system in ("truecolor", "256"))
