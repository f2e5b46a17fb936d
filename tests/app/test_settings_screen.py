"""The settings screen: what is applied, what is saved, and that what is wrong is said beside its field."""

from collections.abc import Mapping
from dataclasses import fields

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from app.errors import SettingsError
from app.options import NAMES, Options
from app.screens.settings import Outcome, SettingsScreen, Subject
from app.screens.settings_fields import CONVERSATION, PROGRAM, default
from app.settings import Settings, Window
from app.store.records import Preset
from app.themes import THEMES
from app.widgets.field import Field
from app.widgets.setting_row import Choice, SettingRow
from tests.app.fakes_shelf import until
from tests.app.test_literal import MARKUP, lines

THEME_NAMES = tuple(theme.name for theme in THEMES)


class FakePresets:
    def __init__(self, *presets: Preset) -> None:
        self.kept = {preset.name: preset for preset in presets}
        self.error: SettingsError | None = None

    def presets(self) -> list[Preset]:
        return list(self.kept.values())

    def save_preset(self, name: str, system: str, options: Mapping[str, object]) -> None:
        if self.error is not None:
            raise self.error
        self.kept[name] = Preset(name, system, options)

    def delete_preset(self, name: str) -> None:
        del self.kept[name]


class SettingsApp(App[None]):
    def __init__(self, **subject: object) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = THEMES[0].name
        self.presets = FakePresets()
        self.saved: list[dict[str, object]] = []
        self.error: SettingsError | None = None
        self.outcomes: list[Outcome | None] = []
        self._subject = {
            "settings": Settings(), "options": Options(), "system": "", "presets": self.presets, "save": self._save,
            "themes": THEME_NAMES, **subject,
        }  # fmt: skip

    def _save(self, changes: Mapping[str, object]) -> None:
        if self.error is not None:
            raise self.error
        self.saved.append(dict(changes))

    def on_mount(self) -> None:
        self.push_screen(SettingsScreen(Subject(**self._subject)), self.outcomes.append)  # type: ignore[arg-type]

    def row(self, name: str) -> SettingRow:
        return self.screen.query_one(f"#row-{name}", SettingRow)

    def note(self, name: str) -> str:
        return str(self.row(name).query_one(".note", Static).render())

    def said(self) -> str:
        return str(self.screen.query_one("#said", Static).render())


async def write(pilot: Pilot[None], app: SettingsApp, name: str, text: str) -> None:
    app.row(name).query_one(Field).value = text
    await pilot.pause()


async def choose(pilot: Pilot[None], app: SettingsApp, name: str, value: str) -> None:
    app.row(name).query_one(Choice).value = value
    await pilot.pause()


def test_every_option_and_every_setting_of_the_window_has_a_line() -> None:
    assert sorted(line.name for line in CONVERSATION) == sorted(NAMES)
    assert {field.name for field in fields(Window)} <= {line.name for line in PROGRAM}
    assert all(line.note and default(line.name, Settings()) for line in (*CONVERSATION, *PROGRAM))


def test_what_is_in_force_below_is_the_default_that_is_shown() -> None:
    below = Settings(temperature=0.2, seed=5, spec="off", thinking="on", max_tokens=9, rule="coupled")
    found = [
        default(name, below) for name in ("temperature", "seed", "spec", "thinking", "max_tokens", "rule", "top_k")
    ]
    assert found == ["0.2", "5", "off", "on", "9", "coupled", "40"]


async def test_the_conversations_settings_are_applied_to_it_alone() -> None:
    app = SettingsApp(options=Options(top_k=3), system="be")
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.row("top_k").query_one(Field).value == "3"
        await pilot.press("x", "y")
        await write(pilot, app, "temperature", "1.1")
        await write(pilot, app, "top_k", "")
        await write(pilot, app, "spec", "4")
        await choose(pilot, app, "thinking", "off")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)
        assert app.outcomes == [
            Outcome(Settings(), Options(temperature=1.1, spec="4", thinking="off"), "xybe", reload=False)
        ]
        assert app.saved == []


async def test_the_programs_settings_are_saved_where_they_change() -> None:
    app = SettingsApp(settings=Settings(idle_unload=10, bell="sound", history=False, temperature=0.3))
    async with app.run_test(size=(200, 60)) as pilot:
        await choose(pilot, app, "bell", "")
        await write(pilot, app, "idle_unload", "5")
        await choose(pilot, app, "colour_tokens", "true")
        await choose(pilot, app, "exact", "strict")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)
        changes = {"bell": None, "idle_unload": 5, "colour_tokens": True, "exact": "strict"}
        assert app.saved == [changes]
        after = Settings(idle_unload=5, history=False, temperature=0.3, colour_tokens=True, exact="strict")
        assert app.outcomes == [Outcome(after, Options(), "", reload=True)]


async def test_what_a_conversation_has_becomes_the_default() -> None:
    app = SettingsApp(options=Options(seed=7), system="be brief")
    async with app.run_test(size=(80, 24)) as pilot:
        await write(pilot, app, "temperature", "0")
        await pilot.press("f9")
        await until(pilot, lambda: app.outcomes)
        assert app.saved == [{"temperature": 0.0, "seed": 7, "system": "be brief"}]
        assert app.outcomes[0] is not None
        assert app.outcomes[0].settings == Settings(temperature=0.0, seed=7, system="be brief")


WRONG = [
    ("temperature", "-1", "temperature must be 0 or more, not -1.0"),
    ("top_k", "many", "'many' is not possible here: expected int, got str"),
    ("seed", "1.5", "'1.5' is not possible here"),
    ("top_p", "nan", "top-p must be a finite number, not nan"),
    ("spec", "65", "spec must be auto, off or a length from 1 to 64, not '65'"),
    ("idle_unload", "-5", "idle-unload must be 0 (never) or more minutes, not -5"),
]


async def test_what_is_wrong_is_said_beside_its_field_and_not_applied() -> None:
    app = SettingsApp()
    async with app.run_test(size=(200, 60)) as pilot:
        for name, text, why in WRONG:
            before = app.note(name)
            await write(pilot, app, name, text)
            assert app.note(name).startswith(why)
            await pilot.press("ctrl+s")
            assert app.said().endswith(app.note(name))
            assert app.row(name).query_one(Field).has_focus
            assert app.outcomes == []
            await write(pilot, app, name, "")
            assert app.note(name) == before
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)
        assert app.outcomes == [Outcome(Settings(), Options(), "", reload=False)]


async def test_a_file_that_cannot_be_saved_is_said_and_nothing_is_lost() -> None:
    app = SettingsApp()
    app.error = SettingsError("[/] the file is locked")
    async with app.run_test(size=(80, 24)) as pilot:
        await write(pilot, app, "idle_unload", "5")
        await pilot.press("ctrl+s")
        assert app.said() == "[/] the file is locked"
        assert app.outcomes == []
        app.error = None
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)


async def test_leaving_asks_once_where_something_was_changed_and_puts_the_theme_back() -> None:
    app = SettingsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await write(pilot, app, "temperature", "1")
        await pilot.press("escape")
        assert "not applied yet" in app.said()
        await write(pilot, app, "temperature", "1.5")
        await choose(pilot, app, "theme", THEME_NAMES[1])
        assert app.theme == THEME_NAMES[1]
        await pilot.press("escape")
        assert app.outcomes == []
        await pilot.press("escape")
        await until(pilot, lambda: app.outcomes)
        assert app.outcomes == [None]
        assert app.theme == THEME_NAMES[0]


async def test_leaving_unchanged_leaves_at_once() -> None:
    odd = Settings(history=True, theme="gone", idle_unload=0)
    app = SettingsApp(options=Options(seed=3, spec="auto"), settings=odd, system="x", thinks=False)
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.note("thinking") == "the model that is loaded knows no such switch"
        await pilot.press("escape")
        await until(pilot, lambda: app.outcomes == [None])


async def test_a_preset_fills_the_fields_of_the_conversation() -> None:
    app = SettingsApp(options=Options(seed=3), system="old")
    preset = Preset("poet [/]", "be a\r\npoet", {"temperature": 1.2, "thinking": "on", "top_k": -5, "later": 1})
    app.presets.kept = {preset.name: preset}
    async with app.run_test(size=(120, 40)) as pilot:
        app.screen.query_one("#preset", Choice).value = preset.name
        await pilot.pause()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)
        assert app.outcomes[0] is not None
        assert app.outcomes[0].options == Options(temperature=1.2, thinking="on")
        assert app.outcomes[0].system == "be a\npoet"


async def test_presets_are_kept_and_deleted() -> None:
    app = SettingsApp(options=Options(seed=3), system="be")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("f8")
        assert app.said() == "Write a name for the preset first."
        await pilot.press("m", "e", "f8")
        assert app.presets.kept == {"me": Preset("me", "be", {"seed": 3})}
        assert app.screen.query_one("#preset", Choice).value == "me"
        await pilot.press("f4")
        assert app.presets.kept == {}
        assert app.said() == "The preset me is deleted; F8 keeps it again."
        await pilot.press("f8")
        assert app.presets.kept == {"me": Preset("me", "be", {"seed": 3})}
        await pilot.press("f4", "f4")
        assert app.said() == "Choose a preset first."
        app.presets.error = SettingsError("the drive is full")
        await pilot.press("f8")
        assert app.said() == "the drive is full"


async def test_a_setting_is_reached_and_changed_by_keys_alone() -> None:
    app = SettingsApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.row("max_tokens").query_one(Field).focus()
        await pilot.pause()
        await pilot.press("5", "down")
        assert app.row("thinking").query_one(Choice).has_focus
        await pilot.press("enter", "down", "down", "enter", "up")
        assert app.row("max_tokens").query_one(Field).has_focus
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.outcomes)
        assert app.outcomes[0] is not None
        assert app.outcomes[0].options == Options(max_tokens=5, thinking="on")


async def test_text_of_users_is_shown_letter_by_letter() -> None:
    app = SettingsApp(system="\n".join(MARKUP))
    app.presets.kept = {text: Preset(text, text, {}) for text in MARKUP}
    async with app.run_test(size=(160, 60)) as pilot:
        choice = app.screen.query_one("#preset", Choice)
        choice.focus()
        await pilot.press("enter")
        await pilot.pause()
        shown = lines(pilot)
        assert all(text[:18] in shown for text in MARKUP)
        for text in MARKUP:
            choice.value = text
            await pilot.pause()
            assert f" {text[:18]}" in lines(pilot).replace("▼", "")
        assert app.is_running
