"""The README's pictures and recording (`make screenshots`), from a real run of the coder pair in a home of its own.

Pictures are what the window itself draws (SVG); the recording is what the program writes to a terminal, as an asciicast
(version 2), with keys that come as a hand types them.  Both are new each time, and as fast as the machine is then.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/pictures.py [pictures | recording]
"""

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from common import model_path
from terminal import PATIENCE_S, Terminal
from textual.pilot import Pilot

from app.screens.chat import ChatScreen
from app.settings import Settings
from app.tui import ChatApp, setup_of

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
WIDE, SMALL = (150, 42), (80, 24)
CLASS = "Write a Python class Stack with push, pop, peek and len, and an error of its own. Code only."
EDIT = "Add a method clear to it, and docstrings. Answer with the whole class."
ASIDE = "In two sentences: why is the sky blue?"
STYLE = r"(\x1b\[(?!0m)[0-9;]+m)"
STYLED_NOTHING = re.compile(STYLE + r"\x1b\[0m")
STYLED_AGAIN = re.compile(STYLE + r"([^\x1b]*)\x1b\[0m((?:\x1b\[\d+;\d+H|\r\n)*)\1")
RECORDED = (120, 34)
"""Columns and lines of the recording."""
FRAMES = 3
"""Frames of it a second: each costs it some kilobytes."""
ASKS = re.compile(r"\x1b\[(\?(9|100[0-6]|1015|1016|2004|2048)[hl]|\?\d+\$p|[<>=]\d*u)")
"""What asks the terminal for something, or how it is to send keys and the mouse: who watches a recording sends none."""


def settings() -> Settings:
    """The pair as its files stand, greedy, so that the pictures change little from run to run."""
    target, draft = model_path("TARGET"), model_path("DRAFT")
    return Settings(target=str(target), draft=str(draft), temperature=0.0, max_tokens=400)


async def until(pilot: Pilot[None], screen: ChatScreen, state: str) -> None:
    """Wait for this state of the engine."""
    deadline = time.monotonic() + PATIENCE_S
    while screen.state != state:
        if time.monotonic() > deadline:
            raise SystemExit(f"the window never came to be {state}")
        await pilot.pause(0.05)
    await pilot.pause(0.3)


async def say(pilot: Pilot[None], screen: ChatScreen, text: str) -> None:
    """A turn, to its end."""
    screen.prompt.text = text
    await pilot.press("enter")
    await until(pilot, screen, "writing")
    await until(pilot, screen, "ready")


def keep(app: ChatApp, name: str) -> None:
    """This screen as assets/NAME.svg."""
    text = "\n".join(line.rstrip() for line in app.export_screenshot(title="paceline").splitlines()) + "\n"
    (ASSETS / f"{name}.svg").write_text(text, encoding="utf-8")
    print(f"assets/{name}.svg", flush=True)


async def pictures() -> None:
    """Every screen once."""
    app = ChatApp(setup_of(settings()))
    async with app.run_test(size=WIDE) as pilot:
        screen = app.screen
        assert isinstance(screen, ChatScreen)
        await until(pilot, screen, "ready")
        await say(pilot, screen, ASIDE)
        await pilot.press("ctrl+n")
        await say(pilot, screen, CLASS)
        await say(pilot, screen, EDIT)
        keep(app, "chat")
        await pilot.press("f4")
        await pilot.pause(1.0)
        keep(app, "origins")
        await pilot.press("f4", "f7")
        await pilot.pause(1.0)
        keep(app, "settings")
        await pilot.press("escape", "f6")
        await pilot.pause(1.0)
        keep(app, "models")
        await pilot.press("escape", "f1")
        await pilot.pause(1.0)
        keep(app, "help")
        await pilot.press("escape")
        await pilot.resize_terminal(*SMALL)
        app.theme = "paceline-light"
        await pilot.pause(1.0)
        keep(app, "small")
        await app.action_quit()


def squeezed(text: str) -> str:
    """The same on the screen, in fewer bytes; nothing that asks the terminal."""
    text, again = STYLED_NOTHING.sub("", ASKS.sub("", text)), 1
    while again:
        text, again = STYLED_AGAIN.subn(r"\1\2\3", text)
    return text


def recording() -> None:
    """A class, then an edit of it, which drafts copy."""
    width, height = RECORDED
    header = {"version": 2, "width": width, "height": height, "title": "Paceline", "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header)]

    def keep(seconds: float, text: str) -> None:
        if drawn := squeezed(text):
            lines.append(json.dumps([round(seconds, 3), "o", drawn], ensure_ascii=False))

    target, draft = model_path("TARGET"), model_path("DRAFT")
    options = ["--target", str(target), "--draft", str(draft), "--temperature", "0", "--max-tokens", "400"]
    with tempfile.TemporaryDirectory() as home, Terminal(home, options, RECORDED, FRAMES) as terminal:
        terminal.heard = keep
        terminal.ready()
        terminal.read(1.5)
        for text in (CLASS, EDIT):
            terminal.type(text + "\r")
            terminal.answered(text)
            terminal.read(2.0)
    (ASSETS / "chat.cast").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("assets/chat.cast", flush=True)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["pictures", "recording"]
    if "pictures" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PACELINE_HOME"] = folder
            asyncio.run(pictures())
    if "recording" in wanted:
        recording()
