import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.attachments import (
    KEPT,
    MAX_BYTES,
    Attachment,
    Draft,
    Unsent,
    as_kept,
    dropped,
    joined,
    of_kept,
    plain_lines,
    read,
    split,
)
from app.errors import AttachmentRefused
from app.path_completion import candidates, word_before

text = st.text(st.sampled_from("`\n:ab #.\u200f日"), max_size=30)
names = st.text(st.sampled_from("ab.`日 #"), min_size=1, max_size=8)
files = st.lists(st.builds(Attachment, names, text.map(lambda given: given.rstrip("\n")), st.just(1)), max_size=3)


@given(text, files)
def test_a_message_gives_back_its_text_and_its_files(typed: str, given_files: list[Attachment]) -> None:
    typed = typed.strip("\n")
    own, found = split(joined(typed, given_files), [file.name for file in given_files])
    assert own == typed
    assert [(file.name, file.text) for file in found] == [(file.name, file.text) for file in given_files]


@given(text, st.lists(names, max_size=2))
def test_a_message_without_such_files_is_text_alone(typed: str, some: list[str]) -> None:
    own, found = split(typed, some)
    assert joined(own, found) == typed


def test_a_file_stands_in_a_fence_with_its_name_before_the_question() -> None:
    draft = Draft("\nWhat is it?\n", (Attachment("a.py", "x = '```'", 9), Attachment("LICENSE", "free", 4)))
    assert draft.message == "a.py:\n````py\nx = '```'\n````\n\nLICENSE:\n```\nfree\n```\n\nWhat is it?"
    assert draft.names == ("a.py", "LICENSE")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a\r\nb\rc\n\n", "a\nb\nc"),
        ("\ufeffä日".encode(), "ä日"),
        ("日本".encode("utf-16"), "日本"),
        (b"a\x1b[2Jb", "a␛[2Jb"),
    ],
)
def test_text_is_read_as_plain_lines(tmp_path: Path, data: bytes, found: str) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    assert read(file) == Attachment("a.txt", found, len(data))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GGUF\0\0", "a.bin is no text: only text files can be attached"),
        (b"\xff\xfea", "a.bin is no text in UTF-8: convert it first"),
        (b"caf\xe9", "a.bin is no text in UTF-8: convert it first"),
        (b"", "a.bin is empty: there is nothing to attach"),
        (b"\n \n", "a.bin is empty: there is nothing to attach"),
        (b"x" * (MAX_BYTES + 1), "a.bin is too large (512 KiB): 512 KiB is the most"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(tmp_path: Path, data: bytes, why: str) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(data)
    with pytest.raises(AttachmentRefused) as caught:
        read(file)
    assert str(caught.value) == why


def test_the_largest_file_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"x" * MAX_BYTES)
    assert read(file).size == MAX_BYTES


def test_what_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    for path, why in [
        (tmp_path, f"{tmp_path.name} is a folder: name a file in it"),
        (tmp_path / "no", f"there is no file {tmp_path / 'no'}"),
        (tmp_path / ("x" * 999), "cannot be read"),
        (tmp_path / "a\0b", "cannot be read"),
    ]:
        with pytest.raises(AttachmentRefused) as caught:
            read(path)
        assert why in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AttachmentRefused, match="no file that can be read"):
        read(tmp_path / "pipe")


@pytest.mark.skipif(os.name != "posix", reason="such names are POSIX only")
def test_a_name_acts_on_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a\x1b[2J\n\u202eb.txt"
    file.write_text("x")
    assert read(file).name == "a␛[2J ␦b.txt"


def test_a_drop_is_told_from_text(tmp_path: Path) -> None:
    one, two = tmp_path / "a b.txt", tmp_path / "ü.txt"
    one.write_text("x")
    two.write_text("y")
    escaped = str(one).replace(" ", "\\ ")
    for drop, found in [
        (f"{one}", (one,)),
        (f"'{one}' ", (one,)),
        (f'"{one}"', (one,)),
        (f"{escaped}\n", (one,)),
        (one.as_uri(), (one,)),
        (f"{one.as_uri()}\r\n{two.as_uri()}\r\n", (one, two)),
        (f"{escaped} {two}", (one, two)),
        (f"'{one}' '{two}'", (one, two)),
        (f"{one}\n{two}", (one, two)),
    ]:
        assert dropped(drop) == found, drop
    for typed in [
        "", " ", "a b.txt", "hello", f"look at {two}", f"{two} and more", f"{tmp_path}", f"{two}x", "it's", "file:",
        "~", "/", "\0", f"{two}\n\nwhat is it?", "x" * 9999,
    ]:  # fmt: skip
        assert dropped(typed) == (), typed


def test_the_word_behind_an_at() -> None:
    assert word_before("see @src/ma") == "src/ma"
    assert word_before("@") == ""
    assert word_before("@a\\ b/c") == "a\\ b/c"
    assert word_before("日本 @語") == "語"
    for line in ("", "a@b", "me@example.org", "@a b", "@@", "x\\@y"):
        assert word_before(line) in (None, "@"), line
    assert word_before("mail me@example.org") is None


def test_candidates_are_folders_first_then_names_that_begin_like_the_word(tmp_path: Path) -> None:
    for name in ("beta.txt", "Alpha.txt", "gamma.beta", ".hidden"):
        (tmp_path / name).write_text("x")
    (tmp_path / "be there").mkdir()
    (tmp_path / "be there" / "in.txt").write_text("x")

    def words(word: str) -> list[str]:
        return [candidate.word for candidate in candidates(word, tmp_path)]

    assert words("") == ["be\\ there/", "Alpha.txt", "beta.txt", "gamma.beta"]
    assert words("BE") == ["be\\ there/", "beta.txt", "gamma.beta"]
    assert words(".")[0] == ".hidden"
    assert words(".h") == [".hidden"]
    assert words("be\\ there/") == ["be\\ there/in.txt"]
    assert words(f"{tmp_path}/be\\ there/I") == [str(tmp_path).replace(" ", "\\ ") + "/be\\ there/in.txt"]
    assert words("none/") == words("\0") == words("zzz") == []
    assert candidates("be\\ there/", tmp_path)[0].path == tmp_path / "be there" / "in.txt"


def test_plain_lines() -> None:
    assert plain_lines("a\r\n\r\nb\rc\tд\x9b2J") == "a\n\nb\nc\tд␦2J"


@given(
    st.text(),
    st.lists(st.builds(Attachment, st.text(), st.text(), st.integers(0))),
    st.none() | st.integers(1),
    st.text(),
)
def test_what_is_not_sent_is_kept_as_it_is(
    text: str, given_files: list[Attachment], anew: int | None, aside: str
) -> None:
    unsent = Unsent(Draft(text, tuple(given_files)), anew, Draft(aside) if anew else Draft(""))
    if not text.startswith(KEPT):
        assert of_kept(as_kept(unsent)) == unsent


@pytest.mark.parametrize("typed", [KEPT, KEPT + "{}", KEPT + "[]", KEPT + '{"text": 1, "files": 2}', KEPT + "[" * 9999])
def test_what_was_typed_like_that_is_text(typed: str) -> None:
    assert of_kept(typed) == Unsent(Draft(typed))
