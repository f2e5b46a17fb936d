"""One setting to change: its name, what it is, and beside it what it does or why that cannot be."""

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Select, Static

from app import layers
from app.cells import one_line
from app.errors import SettingsError
from app.widgets.field import Field

Choices = tuple[tuple[str, str], ...]


class Choice(Select[str], inherit_bindings=False):
    """One of several words; the arrows are left for going from setting to setting."""

    BINDINGS = [
        Binding("enter,space", "show_overlay", "Choose", id="choice.open", show=False, tooltip="What can be chosen"),
    ]  # fmt: skip

    def __init__(self, choices: Choices, value: str, id: str | None = None) -> None:
        super().__init__(
            [(Content(one_line(words)), name) for name, words in choices],
            allow_blank=False, value=value, compact=True, id=id,
        )  # fmt: skip


class SettingRow(Horizontal):
    """A setting; empty, or the first choice, is the default."""

    @dataclass
    class Changed(Message):
        """What is said here has changed, or was found to be wrong."""

        row: "SettingRow"

    def __init__(self, name: str, label: str, note: str, default: str, value: str, choices: Choices = ()) -> None:
        super().__init__(id=f"row-{name}")
        self.setting = name
        if choices and value and value not in dict(choices):
            choices = (*choices, (value, value))
        self._label, self._note, self._default, self._choices = label, note, default, choices
        self._text = value
        self.error = ""
        """Why what is said here cannot be; empty where it can."""

    def compose(self) -> ComposeResult:
        """Name, field, explanation."""
        yield Static(self._label, classes="label", markup=False)
        if self._choices:
            choices = (("", f"default: {self._default}"), *self._choices)
            yield Choice(choices, self._text)
        else:
            yield Field(self._text, placeholder=self._default)
        yield Static(self._note, classes="note", markup=False)

    @property
    def value(self) -> object:
        """The setting; None for the default.  SettingsError where it cannot be."""
        text = self._text.strip()
        return layers.value(self.setting, text) if text else None

    def put(self, text: str) -> None:
        """Say this; an empty text is the default."""
        if self._choices:
            self.query_one(Choice).value = text if text in dict(self._choices) else ""
        else:
            self.query_one(Field).value = text

    def on_descendant_focus(self) -> None:
        """Stand out."""
        self.add_class("-current")

    def on_descendant_blur(self) -> None:
        """Stand back."""
        self.remove_class("-current")

    @on(Input.Changed)
    @on(Select.Changed)
    def _changed(self, event: Input.Changed | Select.Changed) -> None:
        event.stop()
        if event.value == self._text:
            return
        self._text = str(event.value)
        try:
            _ = self.value
            self.error = ""
        except SettingsError as error:
            self.error = str(error).removeprefix(f"{self.setting}: ")
        self.set_class(bool(self.error), "-error")
        self.query_one(".note", Static).update(Content(one_line(self.error or self._note)))
        self.post_message(self.Changed(self))
