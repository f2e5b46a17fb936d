"""Conversations out to files and in again: names, what is replaced, what is refused."""

import json
import stat
from pathlib import Path

import pytest

from app.errors import AppError, StoreError, TransferError
from app.store.store import Store
from app.transcript import Entry
from app.transfer import Export, file_name, given, take_in


@pytest.fixture
def store() -> Store:
    store = Store.open(None)
    id = store.create("Be brief.")
    asked = store.add(id, None, Entry("user", "What is a [/] paceline?"))
    store.add(id, asked.id, Entry("assistant", "Riders in a row.\n\n```\ncode\n```"))
    return store


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("How do I read a file?", "How-do-I-read-a-file.md"), ("../../.bashrc", "bashrc.md"),
        ("/etc/passwd", "etc-passwd.md"), ("C:\\x", "C-x.md"),
        ("a\0b\x1b[2J", "a-b-2J.md"), ("CON", "conversation.md"), ("nul", "conversation.md"),
        ("", "conversation.md"), ("…", "conversation.md"), ("日本語 の題名", "日本語-の題名.md"), ("हिन्दी", "हिन्दी.md"),
        ("x" * 500, "x" * 60 + ".md"), ("🙂", "conversation.md"), ("..%2f", "2f.md"),
    ],
)  # fmt: skip
def test_a_title_becomes_a_name_that_stays_in_its_folder(title: str, name: str) -> None:
    assert file_name(title) == name
    assert Path(file_name(title)).name == file_name(title)


def test_markdown_by_any_other_ending(store: Store, tmp_path: Path) -> None:
    written = Export(store, 1)(str(tmp_path / "out.md"))
    text = written.read_text(encoding="utf-8")
    assert "What is a [/] paceline?" in text
    assert "Riders in a row." in text
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


def test_json_comes_in_again_as_it_went(store: Store, tmp_path: Path) -> None:
    written = Export(store, 1)(f" {tmp_path}/out.JSON ")
    json.loads(written.read_text(encoding="utf-8"))
    again = take_in(store, str(written))
    assert again != 1
    before, after = store.get(1), store.get(again)
    assert [node.entry.text for node in after.path] == [node.entry.text for node in before.path]
    assert (after.title, after.system) == (before.title, before.system)


def test_a_file_that_is_there_is_replaced_at_the_second_try_alone(store: Store, tmp_path: Path) -> None:
    taken, other = tmp_path / "taken.md", tmp_path / "other.md"
    taken.write_text("mine")
    other.write_text("mine")
    export = Export(store, 1)
    with pytest.raises(TransferError, match="there already"):
        export(str(taken))
    with pytest.raises(TransferError, match="there already"):
        export(str(other))
    assert (taken.read_text(), other.read_text()) == ("mine", "mine")
    export(str(other))
    assert "paceline" in other.read_text()
    assert taken.read_text() == "mine"


@pytest.mark.parametrize("path", ["", "nowhere/x.md", "a\0b"])
def test_a_place_that_cannot_be_is_refused_in_a_line(store: Store, tmp_path: Path, path: str) -> None:
    with pytest.raises(AppError) as refused:
        Export(store, 1)(str(tmp_path / path))
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no json", b"[]", b"{}", b'{"title": 1}'])
def test_what_is_no_export_is_refused_and_changes_nothing(store: Store, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "in.json"
    file.write_bytes(content)
    with pytest.raises((TransferError, StoreError)):
        take_in(store, str(file))
    assert len(store.summaries()) == 1


@pytest.mark.parametrize("name", ["gone.json", "", "a\0b"])
def test_a_file_that_cannot_be_read_is_named(store: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(TransferError):
        take_in(store, str(tmp_path / name))


def test_the_home_of_the_user_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert given("~/x.md") == tmp_path / "x.md"
