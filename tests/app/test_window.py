"""The window as a process: what it imports, what it weighs, how it ends, and what it leaves on faults."""

import ast
import asyncio
import importlib
import inspect
import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.dom import DOMNode

from app import tui
from app.errors import NothingInstalled, UsageError
from app.paths import models_dir
from app.settings import Settings
from app.shelf import ModelShelf
from app.tui import ChatApp
from models.errors import NotWritable
from models.files import make_private
from tests.app.fakes_shelf import FakeShelf, chat_app, until

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "llama_cpp", "torch", "transformers", "jinja2")

CONVERSATION = f"""
import asyncio, json, sys
sys.path.insert(0, {str(ROOT)!r})
import psutil
from tests.app.fakes_shelf import chat_app, until
from tests.fakes_client import finished, one_round, tokens
import app.tui, app.shelf, engine.client

async def main():
    window, engine = chat_app()
    async with window.run_test(size=(200, 60)) as pilot:
        await until(pilot, lambda: window.screen.state == "ready")
        for turn in range(3):
            window.screen.prompt.text = "q"
            await pilot.press("enter")
            await until(pilot, lambda: window.screen.state == "writing")
            text = "Some *text*.\\n\\n```python\\nx = 1\\n```\\n\\n" * 30
            engine.client.send(tokens(text), one_round(), finished(text))
            await until(pilot, lambda: window.screen.state == "ready")
        heavy = [name for name in {HEAVY!r} if name in sys.modules]
        return {{"rss": psutil.Process().memory_info().rss, "heavy": heavy}}

print(json.dumps(asyncio.run(main())))
"""


def test_the_window_is_light_and_imports_nothing_heavy() -> None:
    import json

    done = subprocess.run([sys.executable, "-c", CONVERSATION], capture_output=True, text=True, check=True, timeout=120)
    figures = json.loads(done.stdout)
    assert figures["heavy"] == []
    assert figures["rss"] < 120_000_000


def test_the_window_is_imported_without_engines_and_models() -> None:
    code = (
        "import sys, app.tui; print([n for n in ('engine.client', 'models', 'numpy', 'cyclopts') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


async def failing(app: ChatApp, fault: Callable[[], object]) -> None:
    async with app.run_test() as pilot:
        app.call_later(fault)
        await pilot.pause()


async def test_a_fault_ends_in_one_line_and_a_private_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log" / "window.log"
    app = chat_app(crash_log=log)[0]

    def broken() -> None:
        raise RuntimeError("secret")

    with pytest.raises(RuntimeError):
        await failing(app, broken)
    shown = capsys.readouterr().err
    assert str(log) in shown.replace("\n", "")
    assert "Traceback" not in shown
    assert "RuntimeError: secret" in log.read_text()
    assert oct(log.stat().st_mode & 0o777) == "0o600"


async def test_an_unwritable_log_hides_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    app = chat_app(crash_log=Path("/proc/nowhere/window.log"))[0]
    with pytest.raises(ZeroDivisionError):
        await failing(app, lambda: 1 / 0)
    assert "fault of its own" in capsys.readouterr().err


MEANT = {
    "ALLOW_SELECT", "COMPONENT_CLASSES", "DEFAULT_CSS", "render_line",
    "BINDINGS", "BLOCKS", "CSS_PATH", "AUTO_FOCUS", "TITLE", "DEFAULT_MODE", "compose", "render", "highlight",
    "focus_on_click", "check_action", "action_paste", "action_quit", "notify", "get_selection", "get_system_commands",
    "on_markdown_link_clicked", "_on_key", "_on_paste", "_update_rows", "_update_from_block", "_fatal_error",
    "_watch_show_vertical_scrollbar", "HORIZONTAL_BREAKPOINTS", "get_content_height",
    "BLANK", "COMMANDS", "copy_to_clipboard", "action_cursor_down", "action_cursor_up", "anchor", "arrange",
    "watch_scroll_y", "_refresh_layout",
}  # fmt: skip
"""What the window overrides on purpose."""


@pytest.mark.parametrize("path", sorted((ROOT / "app").rglob("*.py")), ids=lambda path: path.stem)
def test_nothing_of_textual_is_hidden_by_accident(path: Path) -> None:
    """A method `_context` or `loading` on a widget breaks Textual in ways that no message explains."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for kind in vars(module).values():
        if isinstance(kind, type) and issubclass(kind, DOMNode) and kind.__module__ == module.__name__:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
            assert isinstance(body, ast.ClassDef)
            written = {name for node in body.body if (name := defined(node))}
            above = {name for base in kind.__mro__[1:] for name in vars(base) if base.__module__.startswith("textual")}
            assert {name for name in written & above if not name.startswith("__")} <= MEANT


def defined(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def test_the_window_needs_a_terminal_to_draw_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as null:
        monkeypatch.setattr(sys, "__stderr__", null)
        with pytest.raises(UsageError, match="redirect"):
            tui.run(Settings(demo=True))


def test_the_priority_is_lowered_moderately() -> None:
    code = "import os; from app.tui import lower_priority; lower_priority(); print(os.nice(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert 5 <= int(done.stdout) - os.nice(0) <= 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals of a POSIX system")
async def test_the_signals_that_end_a_terminal_end_the_window() -> None:
    app, engine = chat_app()
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.screen.state == "ready")  # type: ignore[attr-defined]
        app._leave()
        await asyncio.wait_for(app._task, 2)  # type: ignore[arg-type]
    assert engine.client.closed


def test_the_shelf_offers_the_pairs_of_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    shelf = ModelShelf(Settings())
    assert not shelf.ready()
    with pytest.raises(NothingInstalled):
        shelf.config()
    offers = {offer.id: offer for offer in shelf.offers()}
    assert list(offers) == ["coder", "tiny"]
    assert offers["coder"].bytes > 1_500_000_000
    assert 1_600_000_000 < offers["coder"].memory < 6_000_000_000
    assert offers["tiny"].memory < offers["coder"].memory
    assert offers["tiny"].available > 0


def test_the_shelf_takes_the_demo_without_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    shelf = ModelShelf(Settings(demo=True))
    assert shelf.ready()
    assert shelf.config().backend == "demo"


async def test_what_cannot_be_loaded_closes_the_window_with_the_error() -> None:
    shelf = FakeShelf(installed=True)
    shelf.config_error = NothingInstalled("no such file: check the path")
    app, engine = chat_app(shelf=shelf)
    async with app.run_test():
        await asyncio.wait_for(app._task, 5)  # type: ignore[arg-type]
    assert app.failure is not None
    assert str(app.failure) == "no such file: check the path"
    assert app.return_code == 1
    assert engine.started == []


@pytest.mark.parametrize(
    ("text", "part"), [('{"version": 99}', "newer version"), (None, "cannot be used")], ids=["newer", "unreadable"]
)
def test_a_list_of_models_that_cannot_be_read_opens_no_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, part: str
) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "__stderr__", FakeTerminal())
    monkeypatch.setattr(ChatApp, "run", lambda _self: pytest.fail("the window was opened"))
    index = make_private(models_dir()) / "index.json"
    index.mkdir() if text is None else index.write_text(text)
    with pytest.raises(NotWritable, match=part):
        tui.run(Settings())


class FakeTerminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True
