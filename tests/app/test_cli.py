import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli, paths, report
from app.settings import Settings
from engine.client import environment
from models.files import make_private
from tests.app.command import PROGRAM, paceline, variables
from tests.tiny_gguf import WORDS, Tiny, write_llama


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and bad model files."""
    folder = tmp_path_factory.mktemp("files")
    good = write_llama(folder / "good.gguf").read_bytes()
    write_llama(folder / "other.gguf", Tiny(merges=("~ ~",)))
    write_llama(folder / "words.gguf", Tiny(merges=WORDS))
    (folder / "cut.gguf").write_bytes(good[:-1])
    (folder / "header.gguf").write_bytes(good[:100])
    (folder / "long.gguf").write_bytes(good + b"x")
    (folder / "page.gguf").write_bytes(b"<!DOCTYPE html><html>not found</html>")
    (folder / "empty.gguf").touch()
    (folder / "turns.json").write_text('["one", "two"]')
    (folder / "none.json").write_text("[]")
    (folder / "blank.json").write_text('["one", " "]')
    (folder / "mixed.json").write_text('["one", 2]')
    (folder / "broken.json").write_text('["one')
    (folder / "bytes.json").write_bytes(b'["\xff"]')
    (folder / "half.json").write_text('["\\ud83d"]')
    return folder


BAD = [
    ("bogus", 2, "there is no command 'bogus'"),
    ("--bogus", 2, "unknown option: --bogus"),
    ("ask", 2, "give a prompt"),
    ("ask @", 1, "the prompt is empty"),
    ("ask @@", 1, "the prompt is empty"),
    ("ask one two", 2, "in quotes"),
    ("ask hi --bogus", 2, "unknown option: --bogus"),
    ("ask hi --temperature hot", 2, "hot"),
    ("ask hi --temperature", 2, "requires an argument"),
    ("ask hi --temperature -1", 2, "temperature must be 0 or more, not -1"),
    ("ask hi --temperature nan", 2, "finite"),
    ("ask hi --top-p 0", 2, "top-p must be above 0"),
    ("ask hi --seed -1", 2, "seed must be from 0"),
    ("ask hi --spec -1", 2, "spec must be auto, off or a length from 1 to 64, not '-1'"),
    ("ask hi --spec 0", 2, "spec must be auto, off or a length from 1 to 64, not '0'"),
    ("ask hi --spec 65", 2, "spec must be auto, off or a length from 1 to 64, not '65'"),
    ("ask hi --spec fast", 2, "spec must be auto, off or a length from 1 to 64, not 'fast'"),
    ("ask hi --exact almost", 2, "normal"),
    ("ask hi --kv f32", 2, "q8_0"),
    ("ask hi --kv q8_0 --flash-attention off", 2, "needs flash attention"),
    ("ask hi --logit-bias 5", 2, "logit-bias must be a token id"),
    ("ask hi --max-tokens -1", 2, "max-tokens must be 0 or more"),
    ("ask hi --stop=", 2, "a stop text must not be empty"),
    ("ask hi --ctx 1", 2, "ctx must be at least 16"),
    ("ask hi --pair a --target b", 2, "exclude each other"),
    ("ask hi --demo --pair a", 2, "demo runs no model"),
    ("ask hi --demo --exact strict", 2, "demo runs no model: leave out exact"),
    ("ask hi --demo --kv q8_0", 2, "demo runs no model: leave out kv"),
    ("ask hi --demo --ctx 512", 2, "demo runs no model: leave out ctx"),
    ("ask hi --demo --threads 2", 2, "demo runs no model: leave out threads"),
    ("ask hi --demo --weights nf4", 2, "demo runs no model: leave out weights"),
    ("ask hi --demo --draft-engine torch", 2, "demo runs no model: leave out draft-engine"),
    ("ask hi --weights q4_0", 2, "nf4"),
    ("ask hi --exit-layers -1", 2, "exit-layers must be auto, off or a number of layers from 1 on, not '-1'"),
    ("ask hi --exit-layers few", 2, "exit-layers must be auto, off or a number of layers from 1 on, not 'few'"),
    ("ask hi --target FILES/good.gguf --weights nf4", 2, "leave --weights out, or take --engine torch"),
    ("ask hi --target FILES/good.gguf --exit-layers auto", 2, "leave --exit-layers out, or take --engine torch"),
    ("ask hi --target FILES/good.gguf --engine torch --kv q8_0", 2, "holds the numbers it computes in, not q8_0"),
    ("ask hi --target FILES/good.gguf --engine torch --gpu-layers 7", 2, "take --gpu-layers -1 or 0, not 7"),
    ("ask hi --target=", 2, "target must not be empty"),
    ("ask hi --draft=", 2, "draft must not be empty"),
    ("ask hi --target @", 2, "target must not be empty"),
    ("ask hi", 1, "paceline models pull coder"),
    ("ask hi --pair bogus", 1, "there is no model or pair 'bogus'"),
    ("ask hi --pair coder", 1, "paceline models pull coder"),
    ("ask hi --target bogus", 1, "there is no model 'bogus'"),
    ("ask hi --target FILES/nothing.gguf", 1, "is not there"),
    ("ask hi --target FILES", 1, "is a folder without config.json: name the file in it"),
    ("ask hi --target FILES/cut.gguf", 1, "cut.gguf"),
    ("ask hi --target FILES/header.gguf", 1, "header.gguf"),
    ("ask hi --target FILES/page.gguf", 1, "page.gguf"),
    ("ask hi --target FILES/empty.gguf", 1, "empty.gguf"),
    ("ask hi --target FILES/good.gguf --draft bogus", 1, "there is no model 'bogus'"),
    ("ask hi --target FILES/good.gguf --ctx 99999999999", 1, "ctx"),
    ("ask --turns FILES/nothing.json", 1, "nothing.json"),
    ("ask --turns FILES/none.json", 2, "holds no turn"),
    ("ask --turns FILES/blank.json", 1, "turn 2"),
    ("ask --turns FILES/mixed.json", 2, "a JSON list of texts"),
    ("ask --turns FILES/broken.json", 2, "a JSON list of texts"),
    ("ask --turns FILES/bytes.json", 2, "a JSON list of texts"),
    ("ask --turns FILES/half.json", 2, "a JSON list of texts"),
    ("ask hi --turns FILES/turns.json", 2, "leave one of them out"),
    ("--spec -1", 2, "spec must be auto, off or a length from 1 to 64"),
    ("--demo", 2, "the chat needs a terminal"),
    ("models bogus", 2, "bogus"),
    ("models pull bogus", 1, "there is no model or pair 'bogus'"),
    ("models add FILES/page.gguf", 1, "page.gguf"),
]


@pytest.mark.parametrize(("line", "code", "part"), BAD, ids=[line for line, _, _ in BAD])
def test_bad_input_is_one_line_and_a_code(
    home: Path, files: Path, capfd: pytest.CaptureFixture[str], line: str, code: int, part: str
) -> None:
    blanks = {"@": "", "@@": " \n\t"}
    arguments = [blanks.get(word, word.replace("FILES", str(files))) for word in line.split()]
    assert cli.run(arguments) == code
    out, errors = capfd.readouterr()
    assert out == ""
    assert errors.startswith("paceline: ")
    assert errors.count("\n") == 1
    assert part in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("ask hi --target FILES/words.gguf --draft FILES/other.gguf", "take another draft, or --draft none"),
        ("ask hi --target FILES/good.gguf --ctx 16 --draft none", "the context holds 16"),
    ],
)
def test_bad_input_that_the_engine_finds_is_one_line_too(
    home: Path, files: Path, capfd: pytest.CaptureFixture[str], line: str, part: str
) -> None:
    assert cli.run(line.replace("FILES", str(files)).split()) == 1
    out, errors = capfd.readouterr()
    assert (out, errors.count("\n")) == ("", 1)
    assert part in errors


def test_a_bad_settings_file_is_named(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_private(paths.config_dir()).joinpath("config.toml").write_text("temperature = 'hot'")
    assert cli.run(["ask", "hi"]) == 1
    assert "config.toml: temperature" in capfd.readouterr().err


def test_what_is_unforeseen_is_one_line_and_a_trace_only_in_the_log(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tokens: list[str]) -> int:
        raise ZeroDivisionError("a bug\nof\x1b[2J ours")

    monkeypatch.setattr(cli, "_command", fail)
    assert cli.run(["ask", "hi"]) == 1
    log = paths.log_dir() / "paceline.log"
    assert not log.exists()
    assert cli.run(["ask", "hi", "--debug"]) == 1
    errors = capfd.readouterr().err
    assert errors.count("\n") == 2
    assert "unexpected ZeroDivisionError (a bug of␛[2J ours)" in errors
    assert "Traceback" in log.read_text()
    if os.name == "posix":
        assert log.stat().st_mode & 0o077 == 0


def test_interrupted_is_130(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(tokens: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_command", interrupt)
    assert cli.run(["ask", "hi"]) == 130


def test_a_lone_hyphen_is_stdin_and_debug_is_for_all() -> None:
    assert cli.prepare(["ask", "-", "--debug", "x"]) == (["ask", "--stdin", "x"], True)
    assert cli.prepare(["ask", "--", "-", "--debug"]) == (["ask", "--", "-", "--debug"], False)


def test_a_hyphen_that_is_a_value_is_left_alone(home: Path) -> None:
    assert cli.prepare(["ask", "--stop", "-", "hi"]) == (["ask", "--stop=-", "hi"], False)
    assert cli.prepare(["ask", "--stop", "--debug", "-", "hi", "-"]) == (["ask", "--stop=-", "hi", "--stdin"], True)
    assert cli.prepare(["ask", "--stop=x", "-", "--json", "-"])[0] == [
        "ask",
        "--stop=x",
        "--stdin",
        "--json",
        "--stdin",
    ]
    said = paceline(home, "ask", "--demo", "--stop", "-", "hi")
    assert (said.code, said.errors) == (0, "")
    assert said.out.strip()
    assert "-" not in said.out


def test_all_options_without_a_value_are_known() -> None:
    from typing import get_type_hints

    from app.commands import ask, bench, compare, completion, doctor, models, prove

    commands = (ask.ask, compare.compare, completion.completion, doctor.doctor, models.list_models, prove.prove)
    told = (Settings, ask.Onward, bench.Asked, *commands)
    hints = [get_type_hints(one) for one in told]
    flags = {
        f"--{name.strip('_').replace('_', '-')}"
        for hint in hints
        for name, kind in hint.items()
        if kind in (bool, bool | None)
    }
    assert flags | {"--debug", "--help", "--version"} == cli.FLAGS


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_home_that_cannot_be_found_is_one_line(debug: list[str]) -> None:
    said = paceline(Path("~nosuch/x"), "ask", "--demo", "hi", *debug)
    assert (said.code, said.out) == (1, "")
    assert said.errors == "paceline: PACELINE_HOME=~nosuch/x is no folder that can be found: give an absolute path\n"


def test_what_is_unforeseen_is_told_even_where_no_log_can_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", "~nosuch/x")
    assert report.describe(ZeroDivisionError())[0].endswith("writes more to the log")


def test_a_log_that_cannot_be_written_hides_no_error(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tokens: list[str]) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "_command", fail)
    home.write_text("a file where the folder should be")
    assert cli.run(["ask", "--debug"]) == 1
    errors = capfd.readouterr().err
    assert errors.startswith("paceline: unexpected ZeroDivisionError (a bug)")
    assert errors.count("\n") == 1


def test_a_home_that_is_no_folder_is_named_with_the_variable(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    home.write_text("")
    assert cli.run(["ask", "hi"]) == 1
    assert "check the path, its rights, and PACELINE_HOME" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="streams closed by a POSIX shell")
@pytest.mark.parametrize(
    ("arguments", "part"), [(["ask", "-"], "the prompt is empty"), ([], "the chat needs a terminal")]
)
def test_a_closed_stdin_is_an_empty_one(home: Path, arguments: list[str], part: str) -> None:
    command = ["sh", "-c", '"$@" <&-', "sh", *PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=variables(home), check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(f"paceline: {part}")
    assert done.stderr.count("\n") == 1


def test_the_help_says_what_each_command_is_for(home: Path) -> None:
    out = paceline(home, "--help").out
    for name, (_, text) in cli.COMMANDS.items():
        assert re.search(rf"{name} +{text[:30]}", out)


def test_the_systems_errors_say_what_and_where() -> None:
    line, code = report.describe(PermissionError(13, "Permission denied", "/x\ny"))
    assert (line, code) == ("/x y: Permission denied: check that it is there and yours to use", 1)
    assert report.describe(MemoryError())[1] == 1


def test_the_version_needs_nothing_slow(home: Path) -> None:
    said = paceline(home, "--version")
    assert (said.code, said.errors) == (0, "")
    assert said.out.strip() == cli.version()
    program = (
        "import sys; from app import cli; cli.run(['--version']);"
        "print([m for m in ('cyclopts', 'textual', 'asyncio', 'msgspec', 'numpy') if m in sys.modules])"
    )
    done = subprocess.check_output([sys.executable, "-c", program], text=True, env=environment())
    assert done.splitlines()[-1] == "[]"
    assert not home.exists()


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_is_there(home: Path, arguments: list[str]) -> None:
    said = paceline(home, *arguments)
    assert (said.code, said.errors) == (0, "")
    assert "Usage: paceline" in said.out


def test_the_help_of_flash_attention_says_what_auto_means(home: Path) -> None:
    words = " ".join(re.sub(r"[│\n]", " ", paceline(home, "ask", "--help").out).split())
    assert "auto, which is on with a GPU or a quantized cache, else off" in words


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "ask", "hi", "--demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables(home)
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["ask", "hi", "--demo"], ["--version"], ["--help"]])
def test_a_full_disk_is_one_line(home: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, env=variables(home), check=False
        )
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1
    assert b"No space left" in done.stderr
