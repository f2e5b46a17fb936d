"""The command palette's list of actions: each that the screen knows, with its key, from the bindings themselves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from app.keys import shown
from app.themes import MUTED


@dataclass(frozen=True)
class Action:
    """One action of the screen."""

    name: str
    help: str
    keys: tuple[str, ...]
    run: Callable[[], object]
    enabled: bool
    """Whether it does something now."""


class ActionsProvider(Provider):
    """What can be done here by a key; what cannot be done right now stands at the end."""

    def actions(self) -> list[Action]:
        """All of them, those first that do something now.

        Also those whose key something nearer to the focus has taken: a field copies by the key that copies here.
        """
        found: dict[str, Action] = {}
        for node, bindings in self.screen._binding_chain:
            for key, binding in bindings:
                able = self.app._check_action_state(binding.action, node)
                if not binding.id or able is False or binding.action == "command_palette":
                    continue
                before = found[binding.id].keys if binding.id in found else ()
                found[binding.id] = Action(
                    binding.description,
                    binding.tooltip if able else f"Not now. {binding.tooltip}",
                    tuple(dict.fromkeys((*before, shown(key)))),
                    lambda do=binding.action, node=node: self.app.run_action(do, node),
                    bool(able),
                )
        return sorted([*found.values(), *self._others()], key=lambda action: (not action.enabled, action.name))

    def _others(self) -> Iterator[Action]:
        """Textual's own commands, but for those that are among the keys."""
        for command in self.app.get_system_commands(self.screen):
            if command.title not in ("Quit", "Keys"):
                yield Action(command.title, command.help, (), command.callback, True)

    async def discover(self) -> Hits:
        """All actions."""
        for action in self.actions():
            yield DiscoveryHit(_named(Content(action.name), action), action.run, action.name, action.help)

    async def search(self, query: str) -> Hits:
        """Those whose name or key matches."""
        matcher = self.matcher(query)
        for action in self.actions():
            score = max(matcher.match(text) for text in (action.name, *action.keys))
            if score > 0:
                named = _named(matcher.highlight(action.name), action)
                yield Hit(score, named, action.run, action.name, action.help)


def _named(name: Content, action: Action) -> Content:
    """The name, then the keys, dimmed."""
    keys = " or ".join(action.keys)
    return Content.assemble(name, (f"  {keys}" if keys else "", MUTED))
