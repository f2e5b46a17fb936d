"""The window opens, whatever state its conversations are in."""

from pathlib import Path

from app.store.opening import open_any
from app.transcript import Entry


def test_what_is_there_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    store, said = open_any(path)
    number = store.create()
    store.add(number, None, Entry("user", "hello"))
    store.close()
    store, again = open_any(path)
    assert (said, again) == ("", "")
    assert [summary.title for summary in store.summaries()] == ["hello"]
    store.close()


def test_a_damaged_file_is_put_aside_and_a_new_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    path.write_bytes(b"this is no database, however long one reads it" * 100)
    store, said = open_any(path)
    aside = next(file for file in tmp_path.iterdir() if "damaged" in file.name)
    assert aside.read_bytes().startswith(b"this is no database")
    assert str(aside) in said
    store.create()
    store.close()


def test_where_no_file_can_be_made_nothing_is_kept_and_that_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    store, said = open_any(blocked / "conversations.db")
    assert said.endswith("nothing that is said is kept")
    assert store.add(store.create(), None, Entry("user", "hello")).entry.text == "hello"
    store.close()
