"""Themes of the user's own: what a file may say, and one line with file and key for what it may not."""

from pathlib import Path

import pytest
from textual.app import App

from app import themes, user_themes
from app.themes import PALETTES, SLATE


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_no_folder_no_themes(tmp_path: Path) -> None:
    assert user_themes.read_all(tmp_path / "themes") == ([], [])


def test_a_file_says_what_differs(tmp_path: Path) -> None:
    path = put(tmp_path, "Late Dusk.toml", 'accent = "#ffb3d1"\n"provenance-lookup" = "#88aaff"\n')
    palette = user_themes.read(path)
    assert palette.name == "late-dusk"
    assert (palette.accent, palette.provenance_lookup) == ("#FFB3D1", "#88AAFF")
    assert palette.background == SLATE.background


def test_a_light_one_starts_from_a_light_one(tmp_path: Path) -> None:
    palette = user_themes.read(put(tmp_path, "a.toml", "dark = false\n"))
    assert not palette.dark
    assert palette.background == "#fbfaf7"
    palette = user_themes.read(put(tmp_path, "b.toml", 'base = "paceline-alpine"\nname = "snow"\n'))
    assert (palette.name, palette.dark, palette.background) == ("snow", False, "#f6f9fc")


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('accent = "bluish"', "accent", "is no colour"),
        ('accent = "#12345"', "accent", "is no colour"),
        ('accent = "#11223344"', "accent", "is no colour"),
        ('accent = "ansi_red"', "accent", "is no colour"),
        ("accent = 7", "accent", "is no colour"),
        ('acent = "#112233"', "acent", "perhaps 'accent'?"),
        ('"[/]" = "#112233"', "[/]", "there is no such colour"),
        ('"a\\nb\\u001b" = "#112233"', "a b", "there is no such colour"),
        ('dark = "yes"', "dark", "true or false"),
        ('base = "nord"', "base", "paceline-dark"),
        ("base = 3", "base", "paceline-dark"),
        ('name = "paceline-dark"', "name", "the program's own"),
        ('name = "[b]"', "name", "small letters"),
        ('name = ""', "name", "small letters"),
        ("accent = ", "not valid TOML", "Invalid value"),
        ("[accent]\nx = 1", "accent", "is no colour"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, text: str, key: str, said: str) -> None:
    put(tmp_path, "good.toml", "")
    put(tmp_path, "wrong.toml", text)
    found, faults = user_themes.read_all(tmp_path)
    assert [theme.name for theme in found] == ["good"]
    (fault,) = faults
    assert str(tmp_path / "wrong.toml") in fault
    assert key in fault
    assert said in fault
    assert fault.isprintable()


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    found, faults = user_themes.read_all(tmp_path)
    assert found == []
    assert len(faults) == 2
    assert all(fault.isprintable() for fault in faults)


def test_two_files_of_one_name_are_told(tmp_path: Path) -> None:
    put(tmp_path, "a.toml", 'name = "same"')
    put(tmp_path, "b.toml", 'name = "same"')
    found, faults = user_themes.read_all(tmp_path)
    assert len(found) == len(faults) == 1
    assert "b.toml: name:" in faults[0]


async def test_it_can_be_chosen(tmp_path: Path) -> None:
    put(tmp_path, "dusk.toml", 'background = "#201a2b"')
    found, _ = user_themes.read_all(tmp_path)
    app: App[None] = App()
    themes.register(app, found)
    async with app.run_test() as pilot:
        assert len(app.available_themes) == len(PALETTES) + 1
        app.theme = "dusk"
        await pilot.pause()
        assert app.get_css_variables()["footer-background"] == "#201A2B"
