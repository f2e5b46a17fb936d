"""The window: which screen is up, its colours and keys, and how it ends.

It never leaves without ending the engine, and never shows a traceback: what is unforeseen goes to a log.
"""

import asyncio
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from functools import partial

from rich.text import Text
from textual import on
from textual.actions import SkipAction
from textual.app import App
from textual.binding import Binding
from textual.notifications import SeverityLevel
from textual.screen import Screen

from app import garbage, layers, paths, themes
from app.caches import Caches, conversations_dir
from app.clipboard import clean, inside_tmux, notice, tell_tmux
from app.errors import UsageError
from app.keys import changed, declared
from app.keys import read as read_keys
from app.palette import ActionsProvider
from app.screens.chat import ChatScreen
from app.screens.first_run import FirstRunScreen
from app.screens.help import HelpScreen
from app.screens.models import ModelsScreen
from app.settings import Settings
from app.setup import Setup
from app.shelf import ModelShelf
from app.store.opening import open_any
from app.themes import THEMES
from app.user_themes import read_all
from engine.config import EngineConfig
from engine.detokenize import sanitize

LAST_RESORT_S = 3.0
"""After a signal to end: seconds until the process ends even if its terminal no longer takes what is written."""


class ChatApp(App[None]):
    """The chat program; where nothing is installed it first offers pairs to fetch.

    What the shelf raises is raised here, before the terminal is touched.
    """

    TITLE = "paceline"
    DEFAULT_MODE = "start"
    COMMANDS = {ActionsProvider}
    BINDINGS = [
        Binding("ctrl+q", "quit", "Quit", id="app.quit", tooltip="End the engine and leave", priority=True),
        Binding("f1", "help", "Help", id="app.help", tooltip="What the words mean, and every key", priority=True),
        Binding(
            "ctrl+p", "command_palette", "All actions", id="app.palette", show=False, priority=True,
            tooltip="Find whatever can be done here, and do it",
        ),
    ]  # fmt: skip

    def __init__(self, setup: Setup) -> None:
        super().__init__()
        self.setup = setup
        self.animation_level = "none"
        self._offers = None if setup.shelf.ready() else setup.shelf.offers()
        self.add_mode(self.DEFAULT_MODE, self._start)
        self.failure: Exception | None = None
        """Why the chat could not even begin."""
        self._chat: ChatScreen | None = None
        self._store = setup.store()
        themes.register(self, setup.themes)
        wanted = setup.settings.window.theme
        self.theme = wanted if wanted in self.available_themes else THEMES[0].name
        self.set_keymap(setup.keymap)

    def _start(self) -> Screen[None]:
        """The chat where there is something to load, else the choice of what to fetch."""
        if self._offers is None:
            return self._open(None)
        return FirstRunScreen(self.setup.shelf, self._offers)

    def _open(self, config: EngineConfig | None) -> ChatScreen:
        self._chat = ChatScreen(self.setup, config, self._store)
        return self._chat

    def on_mount(self) -> None:
        """Let the signals that end a terminal end the window properly; once it is drawn, collect garbage seldom."""
        if not self.is_headless:
            self.call_after_refresh(garbage.settle)
            loop = asyncio.get_running_loop()
            for name in ("SIGTERM", "SIGHUP"):
                with suppress(AttributeError, ValueError):
                    signal.signal(getattr(signal, name), lambda _number, _frame: self._told_to_end(loop))
        for fault in self.setup.faults:
            self.notify(fault, severity="warning", timeout=15, markup=False)

    def _told_to_end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Quit; a terminal that takes no more can block the loop or the farewell for ever, so that has an end."""
        self._end_at_last()
        loop.call_soon_threadsafe(self._leave)

    @staticmethod
    def _end_at_last() -> None:
        last_resort = threading.Timer(LAST_RESORT_S, os._exit, [0])
        last_resort.daemon = True
        last_resort.start()

    def _leave(self) -> None:
        self.run_worker(self.action_quit(), exit_on_error=False)

    @on(FirstRunScreen.PairFetched)
    async def _fetched(self, event: FirstRunScreen.PairFetched) -> None:
        """Go on into the chat."""
        self.add_mode("chat", lambda: self._open(event.config))
        await self.switch_mode("chat")

    @on(ChatScreen.ConfigRefused)
    def _refused(self, event: ChatScreen.ConfigRefused) -> None:
        """Leave; the error is for who asked for the window."""
        self.failure = event.error
        self.exit(return_code=1)

    @on(ChatScreen.NoticeWanted)
    def _tell_terminal(self, event: ChatScreen.NoticeWanted) -> None:
        """Have the terminal tell it in its own way."""
        if self._driver is not None:
            self._driver.write(notice(event.text, tmux=inside_tmux(os.environ)))

    @on(ChatScreen.ModelsWanted)
    def _models(self) -> None:
        if not self.is_screen_installed("models"):
            self.install_screen(ModelsScreen(self.setup.shelf), "models")
        screen = self.get_screen("models")
        if isinstance(screen, ModelsScreen) and self._chat is not None:
            screen.loaded = self._chat.models
            self.push_screen(screen)

    @on(ModelsScreen.PairChosen)
    async def _chosen(self, event: ModelsScreen.PairChosen) -> None:
        """Run this pair from now on."""
        if self._chat is not None:
            self._leave_models()
            await self._chat.load(event.config)

    @on(ModelsScreen.UnloadWanted)
    async def _unload(self) -> None:
        """Give the memory of the models back."""
        if self._chat is not None:
            self._leave_models()
            await self._chat.unload()

    def _leave_models(self) -> None:
        if isinstance(self.screen, ModelsScreen):  # it may have been left meanwhile
            self.pop_screen()

    def action_help(self) -> None:
        """Show what there is to know; over help its own keys are left to it."""
        if isinstance(self.screen, HelpScreen):
            raise SkipAction
        self.push_screen(HelpScreen(changed(declared(), self.setup.keymap)))

    async def action_quit(self) -> None:
        """End the engine, whatever it does, and leave."""
        if not self.is_headless:
            self._end_at_last()
        if self._chat is not None:
            await self._chat.close()
        self._store.close()
        self.exit()

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text as it may be copied; a tmux around the window is told to pass it on."""
        super().copy_to_clipboard(clean(text))
        if inside_tmux(os.environ):
            self.run_worker(partial(tell_tmux, self.clipboard), thread=True, exit_on_error=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a toast, in which no character acts on the terminal."""
        super().notify(sanitize(message), title=title, severity=severity, timeout=timeout, markup=markup)

    def _fatal_error(self) -> None:
        """Leave with one line; the traceback goes to a file that its owner alone can read."""
        with suppress(OSError):
            paths.private_file(self.setup.crash_log).write_text(traceback.format_exc(), encoding="utf-8")
        self._exit_renderables[:] = [
            Text(f"paceline met a fault of its own and had to close: {self.setup.crash_log} says more")
        ]
        self._close_messages_no_wait()


def run(settings: Settings) -> int:
    """Open the window and return its exit code; what cannot even be opened raises an error with one line."""
    if not sys.__stderr__ or not sys.__stderr__.isatty():
        raise UsageError("the window is drawn on the standard error stream, which is no terminal: do not redirect it")
    app = ChatApp(setup_of(settings))
    app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0


def setup_of(settings: Settings) -> Setup:
    """What the window of this user needs; the conversations are opened here."""
    from app.config_file import save
    from app.last_used import remember_speculation, with_last_speculation

    settings = with_last_speculation(settings)
    keymap, key_faults = read_keys(paths.config_dir() / "keys.toml")
    own_themes, theme_faults = read_all(paths.config_dir() / "themes")
    keeps = settings.history is not False
    store, store_fault = open_any(paths.conversations_file() if keeps else None)
    return Setup(
        shelf=ModelShelf(settings),
        log=paths.log_dir() / "engine.log",
        crash_log=paths.log_dir() / "window.log",
        settings=settings,
        store=lambda: store,
        caches=Caches(conversations_dir() if store.on_disk else None, int(settings.window.kept_gb * 10**9)),
        save=partial(save, paths.config_dir() / layers.FILE),
        remember=(lambda _: None) if settings.demo else remember_speculation,
        lower_priority=lower_priority,
        keymap=keymap,
        themes=tuple(own_themes),
        faults=tuple(filter(None, (*key_faults, *theme_faults, store_fault))),
    )


def lower_priority(by: int = 7) -> None:
    """Step back behind the model, for good: enough to yield, too little to starve."""
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(by)
