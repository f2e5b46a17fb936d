"""A binding as something to click: its description, its tooltip, greyed where its action does nothing now."""

from textual.binding import Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import Static


class KeyButton(Static):
    """One binding of a widget or screen."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyButton {
        width: auto;
        height: 1;
        margin-right: 2;
        color: $text-muted;
        pointer: pointer;

        &:hover {
            color: $text-accent;
            text-style: underline;
        }

        &.-off {
            color: $text-disabled;
            text-style: none;
        }
    }
    """

    def __init__(self, target: DOMNode, name: str, label: str = "") -> None:
        """Stand for the binding of `target` with the id `name`."""
        self._target, self._binding = target, binding_of(target, name)
        super().__init__(Content(label or self._binding.description), markup=False)
        self.tooltip = Content(self._binding.tooltip)

    def on_mount(self) -> None:
        """Follow what can be done."""
        self.screen.bindings_updated_signal.subscribe(self, self._update)
        self._update()

    def _update(self, _: object = None) -> None:
        self.set_class(not self._target.check_action(self._binding.action, ()), "-off")

    def focus_on_click(self) -> bool:
        """Leave the focus where it is."""
        return False

    async def on_click(self) -> None:
        """Do it."""
        await self.app.run_action(self._binding.action, self._target)


def binding_of(target: DOMNode, name: str) -> Binding:
    """The binding of this id among those that a widget or screen declares."""
    return next(found for found in type(target).BINDINGS if isinstance(found, Binding) and found.id == name)
