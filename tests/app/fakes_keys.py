"""Scenarios of keys: each goes where an action means something, presses its key, and looks at what came of it."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from app.keys import Key, declared, shown
from app.palette import ActionsProvider
from tests.app.fakes_window import Window

Press = Callable[[], Awaitable[None]]
"""Presses the key that is tried."""
Scenario = Callable[[Window, Press], Awaitable[None]]
Opening = Callable[[], AbstractAsyncContextManager[Window]]


class Scenarios:
    """One for each action of a place, by its id, in windows that are opened alike."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._all: dict[str, Scenario] = {}

    def of(self, *ids: str) -> Callable[[Scenario], Scenario]:
        """Take a scenario in; one for several actions tells them by what they do."""

        def take(scenario: Scenario) -> Scenario:
            assert not set(ids) & set(self._all)
            self._all.update(dict.fromkeys(ids, scenario))
            return scenario

        return take

    @property
    def ids(self) -> list[str]:
        """The actions."""
        return list(self._all)

    def each(self) -> list[object]:
        """A parameter for every default key of every action."""
        return [
            pytest.param(key, one, id=f"{key.id} {one}")
            for key in declared()
            for one in key.keys
            if key.id in self._all
        ]

    async def attempt(self, key: Key, pressed: str) -> int:
        """Run the scenario of an action with one of its keys; how often it was pressed.

        Wherever that is, the list of all actions has the action.
        """
        presses = 0
        async with self._opening() as window:

            async def press() -> None:
                nonlocal presses
                presses += 1
                assert key.id == "app.palette" or shown(pressed) in listed(window)[key.description]
                await window.keys(pressed)

            await self._all[key.id](window, press)
        return presses


def listed(window: Window) -> dict[str, list[str]]:
    """What the list of all actions offers as it stands, with its keys."""
    found: dict[str, list[str]] = {}
    for action in ActionsProvider(window.app.screen).actions():
        if action.enabled:
            found.setdefault(action.name, []).extend(action.keys)
    return found
