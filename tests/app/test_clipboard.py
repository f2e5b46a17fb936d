"""Copied text: line feeds alone, nothing that acts on a terminal, and a tmux around the program is told."""

import os
import stat
from pathlib import Path

import pytest

from app import clipboard


def test_line_ends_are_line_feeds_and_control_characters_are_signs() -> None:
    assert clipboard.clean("a\r\nb\rc\n\u2028d\u2029e\tf") == "a\nb\nc\n\nd\ne\tf"
    assert clipboard.clean("\x1b]52;c;aGk=\x07") == "␛]52;c;aGk=␇"
    assert clipboard.clean("[/] [bold [@click=app.quit]") == "[/] [bold [@click=app.quit]"
    assert clipboard.clean("\ud800x") == "?x"


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tmux that writes down what it is told; returns what it wrote."""
    script = tmp_path / "tmux"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\ncat >> {tmp_path}/told\n', encoding="utf-8")
    script.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "told"


def test_tmux_is_told_to_pass_the_text_on(tmux: Path) -> None:
    assert clipboard.inside_tmux({"TMUX": "/tmp/tmux-0/default,1,0"})
    clipboard.tell_tmux("zwei\nZeilen é")
    assert tmux.read_text(encoding="utf-8") == "load-buffer -w -\nzwei\nZeilen é"


def test_without_a_tmux_nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not clipboard.inside_tmux({})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not clipboard.inside_tmux({"TMUX": "x"})
    clipboard.tell_tmux("to nobody")  # says nothing


def test_a_notice_is_told_to_the_terminal_and_through_a_tmux() -> None:
    assert clipboard.notice("here\x07", tmux=False) == "\x1b]9;here␇\x1b\\"
    assert clipboard.notice("here", tmux=True) == "\x1bPtmux;\x1b\x1b]9;here\x1b\x1b\\\x1b\\"
