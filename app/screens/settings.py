"""The settings: those of this conversation, presets of them, and those of the whole program.

Nothing holds before it is applied, but for the theme, which is seen at once and goes back where it is not applied.
What is wrong is said beside its field, and nothing is applied or saved while something is.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Select, Static, TextArea

from app.attachments import plain_lines
from app.cells import one_line
from app.errors import AppError, SettingsError
from app.options import Options
from app.screens.settings_fields import CONVERSATION, PROGRAM, Line, default
from app.settings import Settings, Window
from app.store.records import Preset
from app.widgets.field import Field
from app.widgets.setting_row import Choice, SettingRow

NONE = ""
"""The choice of no preset."""


class Presets(Protocol):
    """Where presets are kept: the store."""

    def presets(self) -> list[Preset]:
        """All of them, by name."""
        ...

    def save_preset(self, name: str, system: str, options: Mapping[str, object]) -> None:
        """Keep one, in the place of what had the name."""
        ...

    def delete_preset(self, name: str) -> None:
        """Delete one."""
        ...


@dataclass(frozen=True)
class Subject:
    """What the screen is about."""

    settings: Settings
    """All layers of the program's settings."""
    options: Options
    system: str
    presets: Presets
    save: Callable[[Mapping[str, object]], None]
    """Writes into the settings file; None for a value takes it out.  SettingsError where that cannot be."""
    themes: tuple[str, ...]
    """Names of the themes there are."""
    thinks: bool = True
    """Whether the model that is loaded can be told to think or not."""


@dataclass(frozen=True)
class Outcome:
    """What holds from now on."""

    settings: Settings
    options: Options
    system: str
    reload: bool
    """Whether the models must be loaded again for it."""


class SettingsScreen(ModalScreen[Outcome | None]):
    """Ends with what was applied, or None."""

    CSS_PATH = "settings.tcss"
    AUTO_FOCUS = "#system"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    BINDINGS = [
        Binding("ctrl+s", "apply", "Apply", id="settings.apply", priority=True,
                tooltip="Let this hold: for this conversation what is its own, else for the program"),
        Binding("f9", "keep", "Also as defaults", id="settings.keep",
                tooltip="Apply, and let new conversations begin with what this one has"),
        Binding("f8", "save_preset", "Save preset", id="settings.save_preset",
                tooltip="Keep the system prompt and the settings of this conversation under the name of the preset"),
        Binding("f4", "delete_preset", "Delete preset", id="settings.delete_preset",
                tooltip="Delete the preset; its settings stay in the fields"),
        Binding("escape", "leave", "Close", id="settings.leave", tooltip="Leave everything as it was"),
        Binding("down", "app.focus_next", "Next", id="settings.next", show=False, tooltip="The next setting"),
        Binding("up", "app.focus_previous", "Previous", id="settings.previous", show=False,
                tooltip="The setting before"),
    ]  # fmt: skip

    said = getters.query_one("#said", Static)
    system = getters.query_one("#system", TextArea)
    preset = getters.query_one("#preset", Choice)
    preset_name = getters.query_one("#preset-name", Field)

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._subject = subject
        self._presets = {preset.name: preset for preset in subject.presets.presets()}
        self._leaving = False

    # What it shows

    def compose(self) -> ComposeResult:
        """The conversation's settings, the program's, what is to be said, keys."""
        options = self._subject.options.said()
        with Vertical(id="settings"):
            yield Static("This conversation", classes="section", markup=False)
            yield self._preset_row()
            yield self._system_row()
            for line in CONVERSATION:
                yield self._row(line, options.get(line.name), self._subject.settings)
            yield Static("The program", classes="section", markup=False)
            for line in PROGRAM:
                yield self._row(line, getattr(self._subject.settings, line.name), Settings())
        yield Static(id="said", markup=False)
        yield Footer(show_command_palette=False)

    def _preset_row(self) -> Horizontal:
        return Horizontal(
            Static("Preset", classes="label", markup=False),
            Choice(self._preset_choices(), NONE, id="preset"),
            Field(placeholder="a name to save it by", id="preset-name"),
            id="row-preset",
        )

    def _preset_choices(self) -> tuple[tuple[str, str], ...]:
        return ((NONE, "none"), *((name, name) for name in self._presets))

    def _system_row(self) -> Horizontal:
        system = TextArea(self._subject.system, id="system", compact=True, highlight_cursor_line=False,
                          placeholder="What the model is told before the conversation")  # fmt: skip
        system.cursor_blink = False
        return Horizontal(Static("System prompt", classes="label", markup=False), system, id="row-system")

    def _row(self, line: Line, value: object, below: Settings) -> SettingRow:
        text = (
            ""
            if value is None
            else {True: "true", False: "false"}.get(value, str(value))
            if isinstance(value, bool)
            else str(value)
        )
        choices, note = line.choices, line.note
        if line.name == "theme":
            choices = tuple((name, name) for name in self._subject.themes)
        if line.name == "thinking" and not self._subject.thinks:
            note = "the model that is loaded knows no such switch"
        return SettingRow(line.name, line.label, note, default(line.name, below), text, choices)

    def on_mount(self) -> None:
        """Keep the theme, to go back to it."""
        self._theme = self.app.theme

    # What the user does

    @on(SettingRow.Changed)
    def _changed(self, event: SettingRow.Changed) -> None:
        self._leaving = False
        self._say("")
        if event.row.setting == "theme" and not event.row.error:
            self.app.theme = str(event.row.value or Window().theme)

    @on(TextArea.Changed, "#system")
    def _system_changed(self) -> None:
        self._leaving = False

    @on(Select.Changed, "#preset")
    def _preset_chosen(self, event: Select.Changed) -> None:
        """Put what a preset says into the fields of the conversation."""
        event.stop()
        preset = self._presets.get(str(event.value))
        if preset is None:
            return
        self.preset_name.value = preset.name
        self.system.text = plain_lines(preset.system)
        said = Options.of_json(preset.options).said()
        for line in CONVERSATION:
            self._find(line).put(str(said.get(line.name, "")))

    def action_save_preset(self) -> None:
        """Keep what the fields of the conversation say under the name."""
        name = self.preset_name.value.strip()
        if not name:
            self._say("Write a name for the preset first.", error=True)
            self.preset_name.focus()
        elif (options := self._options()) is not None:
            self._keep_preset(name, options)

    def _keep_preset(self, name: str, options: Options) -> None:
        try:
            self._subject.presets.save_preset(name, self.system.text, options.said())
        except AppError as error:
            self._say(str(error), error=True)
        else:
            self._list_presets(name)
            self._say(f"The preset {name} is kept.")

    def action_delete_preset(self) -> None:
        """Delete the preset that is chosen."""
        name = str(self.preset.value)
        if name not in self._presets:
            self._say("Choose a preset first.", error=True)
            return
        try:
            self._subject.presets.delete_preset(name)
        except AppError as error:
            self._say(str(error), error=True)
        else:
            self._list_presets(NONE)
            self._say(f"The preset {name} is deleted; F8 keeps it again.")

    def _list_presets(self, chosen: str) -> None:
        self._presets = {preset.name: preset for preset in self._subject.presets.presets()}
        with self.prevent(Select.Changed):
            self.preset.set_options([(Content(one_line(words)), name) for name, words in self._preset_choices()])
            self.preset.value = chosen if chosen in self._presets else NONE

    def action_apply(self) -> None:
        """Let what is said hold."""
        self._apply(defaults=False)

    def action_keep(self) -> None:
        """Let it hold, for new conversations too."""
        self._apply(defaults=True)

    def _apply(self, *, defaults: bool) -> None:
        options = self._options()
        program = self._values(PROGRAM)
        if options is None or program is None:
            return
        before, system = self._subject.settings, self.system.text.strip()
        changes = {name: value for name, value in program.items() if value != getattr(before, name)}
        if defaults:
            changes.update(options.said())
            if system:
                changes["system"] = system
        try:
            if changes:
                self._subject.save(changes)
        except SettingsError as error:
            self._say(str(error), error=True)
            return
        after = replace(before, **changes)
        self.dismiss(Outcome(after, options, system, reload=after.exact != before.exact))

    def action_leave(self) -> None:
        """Close; what was changed and not applied is asked about once."""
        if self._is_changed() and not self._leaving:
            self._leaving = True
            self._say("This is not applied yet: Ctrl+S applies it, Esc once more leaves everything as it was.")
            return
        self.app.theme = self._theme
        self.dismiss(None)

    # What is said in the fields

    def _find(self, line: Line) -> SettingRow:
        return self.query_one(f"#row-{line.name}", SettingRow)

    def _values(self, lines: tuple[Line, ...]) -> dict[str, object] | None:
        """What these fields say; None where one is wrong, which then has the focus."""
        for line in lines:
            row = self._find(line)
            if row.error:
                self._say(f"{line.label}: {row.error}", error=True)
                row.query_one(Field).focus()
                return None
        return {line.name: self._find(line).value for line in lines}

    def _options(self) -> Options | None:
        values = self._values(CONVERSATION)
        return None if values is None else Options(**values)

    def _is_changed(self) -> bool:
        options, program = Options(), dict[str, object]()
        with suppress(SettingsError):
            options = Options(**{line.name: self._find(line).value for line in CONVERSATION})
            program = {line.name: self._find(line).value for line in PROGRAM}
            given = {line.name: getattr(self._subject.settings, line.name) for line in PROGRAM}
            return (options, program, self.system.text) != (self._subject.options, given, self._subject.system)
        return True

    def _say(self, text: str, *, error: bool = False) -> None:
        self.said.set_class(error, "-error")
        self.said.update(Content(one_line(text)))
