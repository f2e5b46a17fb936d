"""Colours: every role can be read on every ground, also in grey, in 16 colours, and by who sees no red or green."""

import colorsys
import itertools
import math

import pytest
from rich.color import ColorSystem
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from app import themes
from app.origins import LOOKS
from app.themes import PALETTES, Palette

GROUNDS = ("background", "surface", "panel")
COLOURS = ("primary", "secondary", "accent", "success", "warning", "error", *(
    f"provenance_{origin}" for origin in LOOKS
))  # fmt: skip
EVERY = pytest.mark.parametrize("palette", PALETTES, ids=[palette.name for palette in PALETTES])


def linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def luminance(colour: Color) -> float:
    """As WCAG 2.2 defines it."""
    red, green, blue = (linear(part / 255) for part in colour.rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def of(palette: Palette, role: str) -> Color:
    return Color.parse(getattr(palette, role))


def lab(rgb: tuple[float, float, float]) -> tuple[float, float, float]:
    """CIE L*a*b* of linear light, for white as D65."""
    red, green, blue = rgb
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (it ** (1 / 3) if it > 0.008856 else 7.787 * it + 16 / 116 for it in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


NORMAL = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
DEUTERANOPIA = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
PROTANOPIA = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))
"""Matrices over linear light by Machado, Oliveira and Fernandes (2009), for complete deficiency."""


def seen(colour: Color, eye: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    light = [linear(part / 255) for part in colour.rgb]
    red, green, blue = (max(0.0, min(1.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in eye)
    return lab((red, green, blue))


def test_there_are_five_and_two_of_them_are_light() -> None:
    assert len({palette.name for palette in PALETTES}) == len(PALETTES) >= 5
    assert sum(not palette.dark for palette in PALETTES) >= 2


@EVERY
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_can_be_read(palette: Palette, ground: str) -> None:
    assert contrast(of(palette, "foreground"), of(palette, ground)) >= 7
    assert contrast(of(palette, "muted"), of(palette, ground)) >= 4.5


@EVERY
@pytest.mark.parametrize("role", COLOURS)
@pytest.mark.parametrize("ground", GROUNDS)
def test_coloured_text_can_be_read(palette: Palette, role: str, ground: str) -> None:
    assert contrast(of(palette, role), of(palette, ground)) >= 4.5


@EVERY
def test_dark_is_dark_and_lines_are_seen(palette: Palette) -> None:
    background = of(palette, "background")
    assert palette.dark == (luminance(background) < 0.2)
    assert contrast(of(palette, "faint"), background) >= 1.35
    assert contrast(of(palette, "border"), background) >= 2
    for ground in ("surface", "panel"):
        assert of(palette, ground) != background


@EVERY
@pytest.mark.parametrize("role", ["foreground", "muted", *COLOURS])
def test_in_greys_text_can_be_read(palette: Palette, role: str) -> None:
    """What NO_COLOR leaves."""
    for ground in GROUNDS:
        assert contrast(of(palette, role).monochrome, of(palette, ground).monochrome) >= 4


XTERM = [
    "#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
    "#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff",
]  # fmt: skip
"""The 16 colours of xterm."""


def in_16(colour: Color) -> Color:
    return Color.parse(XTERM[colour.rich_color.downgrade(ColorSystem.STANDARD).number or 0])


@EVERY
@pytest.mark.parametrize("role", ["foreground", "muted", "primary", "accent", "error", "warning", "success"])
def test_in_sixteen_colours_text_can_be_read(palette: Palette, role: str) -> None:
    """What TERM=xterm leaves; in light themes its yellow and cyan are too pale for all but headings."""
    least = 3.9 if palette.dark or role in ("foreground", "muted") else 1.5
    for ground in ("background", "surface"):
        assert contrast(in_16(of(palette, role)), in_16(of(palette, ground))) >= least


@EVERY
@pytest.mark.parametrize(
    ("eye", "least"), [(NORMAL, 20), (DEUTERANOPIA, 10), (PROTANOPIA, 10)], ids=["normal", "deutan", "protan"]
)
def test_origins_differ_for_every_eye(palette: Palette, eye: tuple[tuple[float, ...], ...], least: float) -> None:
    colours = [seen(of(palette, f"provenance_{origin}"), eye) for origin in LOOKS]
    for one, other in itertools.combinations(colours, 2):
        assert math.dist(one, other) >= least


def test_origins_differ_without_any_colour() -> None:
    for field in ("filling", "short", "name", "style"):
        assert len({getattr(look, field) for look in LOOKS.values()}) == len(LOOKS)


@EVERY
def test_the_theme_has_the_variables_that_widgets_name(palette: Palette) -> None:
    theme = palette.theme()
    variables = theme.to_color_system().generate() | theme.variables
    assert variables["foreground-muted"] == variables["text-muted"] == palette.muted
    for look in LOOKS.values():
        assert look.style.removeprefix("$") in variables
    for name, value in theme.variables.items():
        assert Color.parse(value.split()[0]).a == 1, name


async def test_the_app_has_these_themes_and_no_others() -> None:
    app: App[None] = App()
    themes.register(app, [PALETTES[1].theme()])
    assert set(app.available_themes) == {palette.name for palette in PALETTES}
    assert not set(app.available_themes) & set(BUILTIN_THEMES)
    async with app.run_test() as pilot:
        for palette in PALETTES:
            app.theme = palette.name
            await pilot.pause()
            assert app.get_css_variables()["provenance-exit"] == palette.provenance_exit


def test_hues_are_told_apart_by_more_than_lightness() -> None:
    """Lookup is blue, the draft model orange, the early exit green, in every theme; the target is grey."""
    for palette in PALETTES:
        hue = {}
        for origin in LOOKS:
            colour = of(palette, f"provenance_{origin}")
            h, _, saturation = colorsys.rgb_to_hls(*(part / 255 for part in colour.rgb))
            hue[origin] = (round(360 * h), saturation)
        assert hue["target"][1] < 0.25
        assert 200 <= hue["lookup"][0] <= 215
        assert 20 <= hue["model"][0] <= 35
        assert 135 <= hue["exit"][0] <= 175
