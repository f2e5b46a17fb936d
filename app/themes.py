"""The program's own colours: one dark and one light theme, as data; widgets name roles, never colours."""

from textual.theme import Theme

MUTED = "$foreground 60%"
"""The style of text that stands back (in text that is assembled; style sheets have $text-muted)."""

DARK = Theme(
    name="paceline-dark",
    dark=True,
    primary="#7fb6cc",
    secondary="#5d7f96",
    accent="#e3b36b",
    success="#8cc299",
    warning="#e3b36b",
    error="#e58080",
    foreground="#d5dae1",
    background="#13161b",
    surface="#191d24",
    panel="#222832",
    variables={
        "block-cursor-background": "#e3b36b",
        "block-cursor-foreground": "#13161b",
        "input-selection-background": "#7fb6cc 30%",
        "footer-background": "#13161b",
        "footer-key-foreground": "#e3b36b",
        "footer-description-foreground": "#8b94a1",
        "footer-item-background": "#13161b",
        "border": "#3a4452",
        "border-blurred": "#2a313c",
        "scrollbar": "#2e3643",
        "scrollbar-hover": "#3d4858",
        "scrollbar-active": "#7fb6cc",
        "scrollbar-background": "#13161b",
        "scrollbar-background-hover": "#13161b",
        "scrollbar-background-active": "#13161b",
        "scrollbar-corner-color": "#13161b",
        "markdown-h1-color": "#e3b36b",
        "markdown-h2-color": "#e3b36b",
        "markdown-h3-color": "#7fb6cc",
    },
)
"""Slate with a warm accent."""

LIGHT = Theme(
    name="paceline-light",
    dark=False,
    primary="#2a6d8c",
    secondary="#6b8798",
    accent="#95590b",
    success="#3c7a4b",
    warning="#95590b",
    error="#b23b3b",
    foreground="#2b2f36",
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e8e5de",
    variables={
        "block-cursor-background": "#95590b",
        "block-cursor-foreground": "#fbfaf7",
        "input-selection-background": "#2a6d8c 25%",
        "footer-background": "#fbfaf7",
        "footer-key-foreground": "#95590b",
        "footer-description-foreground": "#6a6f78",
        "footer-item-background": "#fbfaf7",
        "border": "#c9c4b9",
        "border-blurred": "#dcd8cf",
        "scrollbar": "#d5d0c5",
        "scrollbar-hover": "#c2bcae",
        "scrollbar-active": "#2a6d8c",
        "scrollbar-background": "#fbfaf7",
        "scrollbar-background-hover": "#fbfaf7",
        "scrollbar-background-active": "#fbfaf7",
        "scrollbar-corner-color": "#fbfaf7",
        "markdown-h1-color": "#95590b",
        "markdown-h2-color": "#95590b",
        "markdown-h3-color": "#2a6d8c",
    },
)
"""Paper with the same accents, darkened."""

THEMES = (DARK, LIGHT)
"""All themes of the program, the default first."""
