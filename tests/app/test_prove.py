"""`paceline prove`: its lines, its object, its exit codes, and a load that is told and can be stopped."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app import cli
from app.commands.prove_lines import HEAD, STAND_IN, Lines, Progress, compared, counted, verdict
from engine import loading
from engine.backends.toy import ToyLM
from engine.config import EngineConfig
from engine.events import Loading
from engine.experiments import prove as proof
from engine.experiments.prove_plan import settings
from engine.experiments.prove_records import Compared, Counted, Difference, Report
from engine.pair import Pair
from tests.tiny_gguf import write_llama

Run = Callable[..., tuple[int, str, str]]

COUNTED = Counted(
    setting="the defaults",
    rule="rejection",
    draft="stand-in",
    length=1,
    rounds=3000,
    kept=0.5,
    kept_expected=0.49,
    impossible=0,
    p_values={"token 1": 0.25, "token 2": None, "kept": 0.00001},
    passed=True,
)
COMPARED = Compared(
    sampling="greedy", mode="2", prompts=3, tokens=114, equal=3, drafted=31, accepted=18, difference=None, passed=True
)
REPORT = Report(
    passed=True,
    target="target",
    draft=None,
    sabotage=False,
    width_limit=7,
    tests=2,
    level=0.001,
    threshold=0.0005,
    least=0.25,
    counted=[COUNTED],
    compared=[COMPARED],
    notes=[],
)
WRONG = Report(
    **{
        **{name: getattr(REPORT, name) for name in REPORT.__struct_fields__},
        "passed": False,
        "counted": [COUNTED, msgspec.structs.replace(COUNTED, passed=False)],
    }
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `prove` in this process on toy models, with few answers."""
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    model = write_llama(tmp_path / "model.gguf")
    configs: list[EngineConfig] = []

    def load(config: EngineConfig, progress: Callable[[Loading], None]) -> Pair:
        configs.append(config)
        progress(Loading(what="measuring exactness, once", share=0.5))
        return Pair(ToyLM(6, seed=3, eog=[5]), target_name=config.target_name, exact=config.exact, notes=["a price"])

    monkeypatch.setattr(loading, "load_pair", load)
    monkeypatch.setattr(proof, "settings", lambda: settings(400)[2:3])

    def go(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(["prove", "--target", str(model), *arguments])
        assert all(config.exact == "strict" for config in configs)
        return (code, *capfd.readouterr())

    return go


def test_what_is_right_passes_line_by_line(run: Run) -> None:
    code, out, errors = run()
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == HEAD
    assert lines[1] == "T 1.5, top-k 5: drafts of 2, 400 answers a line"
    for line, name in zip(
        lines[2:6], ("rejection, lookup", "coupled, lookup", "rejection, s", "coupled, s"), strict=True
    ):
        assert line.startswith(f"  {name}")
        assert line.endswith("ok")
    assert lines[6] == "texts with speculation on, against off"
    assert sum("of 3 equal" in line for line in lines) == 8
    assert lines[-3:-1][0] == STAND_IN
    assert "4 tests, 16 p-values" in lines[-2]
    assert lines[-1].startswith("passed: ")
    assert max(map(len, lines[:-2])) <= 80
    assert errors.splitlines() == [
        f"paceline: {what}" for what in ("measuring exactness, once", "a price", "counting answers", "comparing texts")
    ]


def test_the_sabotage_is_announced_and_found(run: Run) -> None:
    code, out, _ = run("--sabotage")
    assert code == 1
    assert out.startswith("SABOTAGE: ")
    assert out.splitlines()[-1].startswith("FAILED, as it has to: the sabotage shows in ")


def test_json_is_one_object_and_nothing_else(run: Run) -> None:
    for arguments, code, passed in ((["--json"], 0, True), (["--json", "--sabotage"], 1, False)):
        found, out, _ = run(*arguments)
        assert (found, out.count("\n")) == (code, 1)
        report = json.loads(out)
        assert (report["passed"], report["sabotage"]) == (passed, not passed)
        assert report["target"].startswith("model")
        assert len(report["counted"]) == 4
        assert set(report["counted"][0]["p_values"]) == {"token 1", "token 2", "token 3", "kept"}
        assert all(report["compared"][0][key] is not None for key in ("mode", "drafted", "equal"))


def test_ctrl_c_ends_it_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(config: EngineConfig, progress: Callable[[Loading], None]) -> Pair:
        progress(Loading(what="target", share=0.1))
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "load_pair", stop)
    assert run() == (130, "", "paceline: target\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--pair", "tiny"], "exclude each other"),
        (["--temperature", "1"], "unknown option"),
        (["more"], "unexpected 'more'"),
    ],
)
def test_wrong_usage_is_one_line(run: Run, arguments: list[str], part: str) -> None:
    code, out, errors = run(*arguments)
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert part in errors


def test_the_demo_proves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_DEMO", "1")
    assert cli.run(["prove"]) == 2


def test_a_line_tells_what_was_kept_and_each_p_value() -> None:
    assert counted(COUNTED) == "  rejection, stand-in  0.500    0.490    0.250        -        -    1e-05 ok"
    assert [len(line) for line in (HEAD, counted(COUNTED))] == [73, 76]
    broken = msgspec.structs.replace(COUNTED, passed=False, impossible=3)
    assert counted(broken).endswith(" FAILED, 3 impossible")


def test_a_line_tells_how_many_texts_are_equal_and_where_one_is_not() -> None:
    assert compared(COMPARED) == "  greedy, drafts of 2         3 of 3 equal; 18 of 31 drafts kept ok"
    out = io.StringIO()
    place = Difference(prompt="Why\x1b?", token=15, off="a\nb", on="c")
    Lines(out).print(msgspec.structs.replace(COMPARED, equal=2, passed=False, difference=place, mode="auto"))
    head, line, where, off, on = out.getvalue().splitlines()
    assert (head, line.split("(")[0].split()[:2]) == ("texts with speculation on, against off", ["greedy,", "auto"])
    assert line.endswith("FAILED")
    assert where.startswith("    differs from token 15 on: Why")
    assert "\x1b" not in where
    assert (off, on) == ("      off: a␊b", "      on:  c")


@pytest.mark.parametrize(
    ("report", "start"),
    [
        (REPORT, "passed: "),
        (WRONG, "FAILED: 1 of 2 tests and 0 of 1 comparisons"),
        (msgspec.structs.replace(REPORT, sabotage=True), "PASSED, WHICH IS WRONG"),
        (msgspec.structs.replace(WRONG, sabotage=True), "FAILED, as it has to"),
    ],
)
def test_the_last_line_is_the_verdict(report: Report, start: str) -> None:
    first, summary, last = verdict(report)
    assert first == STAND_IN
    assert f"{len(report.counted)} tests, 2 p-values, the least 0.25 (one under 0.0005 fails" in summary
    assert last.startswith(start)


def test_progress_is_one_line_in_a_terminal_and_gone_before_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Progress(stream) as progress:
        for share in (0.1, 0.101, 0.5):
            progress.show("counting", share)
        progress.clear()
        progress.clear()
        progress.show("counting", 0.9)
    assert stream.getvalue() == "".join(
        f"\r\x1b[K{text}" for text in ("counting 10%", "counting 50%", "", "counting 90%", "")
    )
