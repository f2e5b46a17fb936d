"""The program's own colours: five themes as data; widgets name roles, never colours.

A palette says what each role is; everything that Textual derives from a theme is set from it, so that a palette with
good contrasts is a theme with good contrasts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme

MUTED = "$foreground-muted"
"""The style of text that stands back (in text that is assembled; style sheets have $text-muted)."""


@dataclass(frozen=True, kw_only=True)
class Palette:
    """What each role is coloured; every colour is opaque."""

    name: str
    dark: bool
    background: str
    surface: str
    """Behind what stands out a little: a question, a block of code."""
    panel: str
    """Behind what stands out more."""
    foreground: str
    muted: str
    """Text that stands back, on any of the three."""
    primary: str
    secondary: str
    accent: str
    success: str
    warning: str
    error: str
    border: str
    faint: str
    """Lines that only part, and what of a bar is empty."""
    provenance_target: str
    """Tokens of the target's own."""
    provenance_lookup: str
    """Tokens copied from the conversation or from earlier answers."""
    provenance_model: str
    """Tokens of the draft model."""
    provenance_exit: str
    """Tokens of the target's own first layers."""

    @property
    def provenance(self) -> dict[str, str]:
        """The variables that colour a token by its origin."""
        return {
            "provenance-target": self.provenance_target,
            "provenance-lookup": self.provenance_lookup,
            "provenance-model": self.provenance_model,
            "provenance-exit": self.provenance_exit,
        }

    def theme(self) -> Theme:
        """What Textual makes of it."""
        return Theme(
            name=self.name,
            dark=self.dark,
            primary=self.primary,
            secondary=self.secondary,
            accent=self.accent,
            success=self.success,
            warning=self.warning,
            error=self.error,
            foreground=self.foreground,
            background=self.background,
            surface=self.surface,
            panel=self.panel,
            variables={**self._text(), **self._parts(), **self.provenance},
        )

    def _text(self) -> dict[str, str]:
        roles = ("primary", "secondary", "accent", "success", "warning", "error")
        return {
            **{f"text-{role}": getattr(self, role) for role in roles},
            "text-muted": self.muted,
            "foreground-muted": self.muted,
            "markdown-h1-color": self.accent,
            "markdown-h2-color": self.accent,
            "markdown-h3-color": self.primary,
        }

    def _parts(self) -> dict[str, str]:
        return {
            "block-cursor-background": self.accent,
            "block-cursor-foreground": self.background,
            "input-selection-background": f"{self.primary} 30%",
            "footer-background": self.background,
            "footer-item-background": self.background,
            "footer-key-foreground": self.accent,
            "footer-description-foreground": self.muted,
            "border": self.border,
            "border-blurred": self.faint,
            "scrollbar": self.faint,
            "scrollbar-hover": self.border,
            "scrollbar-active": self.primary,
            "scrollbar-background": self.background,
            "scrollbar-background-hover": self.background,
            "scrollbar-background-active": self.background,
            "scrollbar-corner-color": self.background,
        }


SLATE = Palette(
    name="paceline-dark",
    dark=True,
    background="#13161b",
    surface="#191d24",
    panel="#222832",
    foreground="#d5dae1",
    muted="#959da9",
    primary="#7fb6cc",
    secondary="#7c9cb2",
    accent="#e3b36b",
    success="#8cc299",
    warning="#e3b36b",
    error="#e58080",
    border="#4a5666",
    faint="#2e3643",
    provenance_target="#a7afba",
    provenance_lookup="#6fb3ee",
    provenance_model="#e09a4b",
    provenance_exit="#a3e6bd",
)
"""Slate with a warm accent."""

PAPER = Palette(
    name="paceline-light",
    dark=False,
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e8e5de",
    foreground="#22262d",
    muted="#5f646d",
    primary="#2a6d8c",
    secondary="#4f6877",
    accent="#8f5409",
    success="#36704a",
    warning="#8f5409",
    error="#ad3636",
    border="#b3ad9f",
    faint="#d8d3c8",
    provenance_target="#62666e",
    provenance_lookup="#1a65ae",
    provenance_model="#a14a00",
    provenance_exit="#07553f",
)
"""Paper with the same accents, darkened."""

VELODROME = Palette(
    name="paceline-velodrome",
    dark=True,
    background="#1b1613",
    surface="#231d18",
    panel="#30271f",
    foreground="#eadfd2",
    muted="#b5a594",
    primary="#e2ab76",
    secondary="#bb9873",
    accent="#86c9b6",
    success="#a3c785",
    warning="#ecc063",
    error="#ee887b",
    border="#66564a",
    faint="#41362c",
    provenance_target="#b9ac9c",
    provenance_lookup="#83b8ea",
    provenance_model="#ec9c48",
    provenance_exit="#b2ecc4",
)
"""Timber under lamps, with the green of the track's lines."""

ALPINE = Palette(
    name="paceline-alpine",
    dark=False,
    background="#f6f9fc",
    surface="#eaf0f6",
    panel="#dbe5ee",
    foreground="#1d2a38",
    muted="#52606f",
    primary="#1f5fa8",
    secondary="#4a667f",
    accent="#a3284a",
    success="#1d6e46",
    warning="#865300",
    error="#ad231c",
    border="#a3b3c2",
    faint="#c8d5e0",
    provenance_target="#586470",
    provenance_lookup="#155fb0",
    provenance_model="#984a00",
    provenance_exit="#055244",
)
"""Snow and sky, with a red jersey in it."""

CONTRAST = Palette(
    name="paceline-contrast",
    dark=True,
    background="#000000",
    surface="#0d0d0d",
    panel="#1c1c1c",
    foreground="#ffffff",
    muted="#c0c0c0",
    primary="#7cc7ff",
    secondary="#aab9c8",
    accent="#ffd24a",
    success="#7ee29a",
    warning="#ffd24a",
    error="#ff9292",
    border="#8a8a8a",
    faint="#4a4a4a",
    provenance_target="#c8c8c8",
    provenance_lookup="#6fbfff",
    provenance_model="#ff9d2e",
    provenance_exit="#b4ffd2",
)
"""Black and white, for bright rooms and tired eyes."""

PALETTES = (SLATE, PAPER, VELODROME, ALPINE, CONTRAST)
"""All palettes of the program, the default first."""

THEMES = tuple(palette.theme() for palette in PALETTES)
"""All themes of the program, the default first."""


def register(app: App[object], more: Iterable[Theme] = ()) -> None:
    """Give the app these themes and no others, with the default one chosen."""
    for theme in (*THEMES, *more):
        app.register_theme(theme)
    app.theme = THEMES[0].name
    for name in BUILTIN_THEMES:
        app.unregister_theme(name)
