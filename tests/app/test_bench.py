"""`paceline bench` and `paceline compare`: lines, objects, files, exit codes, on the demo's models and a fake clock."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from app import cli
from app.commands import bench_plot, compare_lines
from app.commands.bench_lines import HEAD, Bar, rivals, row, table
from engine import engine as engine_module
from engine import loading
from engine.backends.demo import demo_pair
from engine.backends.toy import ScriptLM
from engine.config import EngineConfig
from engine.costs import Costs, DraftCost
from engine.events import Loading
from engine.experiments.bench_records import Line, Rivals
from engine.experiments.compare import Comparison, Speeds, Texts
from engine.experiments.parting import Parting
from engine.experiments.turns import Ratio
from engine.pair import Pair
from tests.fakes import FakeClock
from tests.tiny_gguf import write_llama

Run = Callable[..., tuple[int, str, str]]
KEYS = [
    "kind", "temperature", "mode", "tps", "ratio", "low", "high", "acceptance_rate", "mean_tokens_per_round",
    "hindsight", "predicted", "plan",
]  # fmt: skip
LINE = Line(
    kind="summarizing",
    temperature=0.8,
    mode="auto",
    tps=41.23,
    ratio=1.123,
    low=1.08,
    high=1.151,
    acceptance_rate=0.7,
    mean_tokens_per_round=1.6,
    hindsight=1.31,
    predicted=1.1,
    plan="lookup\x1b up to 7",
)


class Machine:
    """What the command loads: the demo's models, on a clock that passes move; Ctrl-C comes in pass number `stops`."""

    def __init__(self) -> None:
        self.configs: list[EngineConfig] = []
        self.stops: int | None = None
        self.clock = FakeClock()
        self._passes = 0

    def load(self, config: EngineConfig, progress: Callable[[Loading], None]) -> Pair:
        self.configs.append(config)
        progress(Loading(what="measuring speed, once", share=0.5))
        target, draft = demo_pair()
        costs = Costs(lambda width, _: 28 + 0.6 * (width - 1), {"model": DraftCost(3.0)})
        self.clock.takes(target, lambda n: 0.028 + 0.0006 * (n - 1))
        self.clock.takes(draft, lambda n: 0.003)
        self._interrupt(target)
        return Pair(target, draft if config.draft else None, costs=costs, notes=["a price"])

    def _interrupt(self, target: ScriptLM) -> None:
        inner = target.on_pass
        assert inner is not None

        def on_pass(tokens: list[int]) -> None:
            self._passes += 1
            if self._passes == self.stops:
                raise KeyboardInterrupt
            inner(tokens)

        target.on_pass = on_pass  # type: ignore[assignment]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    machine = Machine()
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(loading, "load_pair", machine.load)
    real = engine_module.Engine
    monkeypatch.setattr(real, "load", classmethod(lambda cls, c, p: cls(machine.load(c, p), machine.clock)))
    return machine


@pytest.fixture
def run(machine: Machine, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process."""
    model = write_llama(tmp_path / "model.gguf")
    draft = write_llama(tmp_path / "draft.gguf")

    def go(command: str, *arguments: str) -> tuple[int, str, str]:
        lookup = "--lookup-only" in arguments
        named = ["--target", str(model), *([] if lookup else ["--draft", str(draft)])]
        return (cli.run([command, *arguments, *named]), *capfd.readouterr())

    return go


def test_a_table_grows_kind_by_kind(run: Run) -> None:
    code, out, errors = run("bench", "--kinds", "chat,maths", "--tokens", "30")
    assert code == 0
    head, *rows = out.splitlines()
    assert head == HEAD
    wanted = [(kind, how, mode) for kind in ("chat", "maths") for how in ("greedy", "T 0.8") for mode in "ofa"]
    shown = [line for line in rows if not line.startswith(" ")]
    assert [(line[:13].strip(), line[13:20].strip(), line[20]) for line in shown] == wanted
    assert len(rows) == len(shown) + 4  # auto says why
    assert max(map(len, [head, *shown])) <= 80
    told = ["measuring speed, once", "a price", *(f"{k}, {t}" for k in ("chat", "maths") for t in ("greedy", "T 0.8"))]
    seen = list(dict.fromkeys(errors.splitlines()))
    assert seen == [f"paceline: {what}" for what in told]


def test_json_is_one_object_a_line_with_these_keys(run: Run) -> None:
    asked = ("bench", "--kinds", "chat", "--temperatures", "0", "1.5", "--tokens", "30", "--turns", "3", "--json")
    code, out, _ = run(*asked, "--fixed", "2,5")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert all(list(line) == KEYS for line in lines)
    modes = ["off", "fixed 2", "fixed 5", "auto"]
    assert [(line["temperature"], line["mode"]) for line in lines] == [(t, mode) for t in (0.0, 1.5) for mode in modes]
    off, _, _, auto = lines[:4]
    assert (off["ratio"], off["acceptance_rate"], off["predicted"]) == (1, None, 1)
    assert 1.2 < auto["low"] <= auto["ratio"] <= auto["high"]


def test_auto_is_set_against_the_best_fixed_length(run: Run) -> None:
    code, out, _ = run("bench", "--kinds", "chat", "--temperatures=0", "--tokens=40", "--fixed", "1", "--fixed", "6")
    assert code == 0
    assert "auto to the best fixed length" in out.splitlines()[-2]
    assert out.splitlines()[-1].split()[:2] == ["chat", "greedy"]


def test_ctrl_c_prints_what_is_done(run: Run, machine: Machine, tmp_path: Path) -> None:
    machine.stops = 300
    plot = tmp_path / "plot.svg"
    asked = ("bench", "--kinds", "chat,maths", "--temperatures=0", "--tokens", "30", "--json", "--plot", str(plot))
    code, out, _ = run(*asked)
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 130
    assert [line["kind"] for line in lines[:3]] == ["chat"] * 3
    assert 3 < len(lines) <= 6
    assert plot.exists()


@pytest.mark.parametrize("command", ["bench", "compare"])
def test_ctrl_c_while_loading_prints_nothing(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def stop(cls: type, config: EngineConfig, progress: Callable[[Loading], None]) -> None:
        progress(Loading(what="target", share=0.1))
        raise KeyboardInterrupt

    monkeypatch.setattr(engine_module.Engine, "load", classmethod(stop))
    assert run(command, *(["hello"] if command == "compare" else [])) == (130, "", "paceline: target\n")


def test_lookup_alone_loads_no_draft(run: Run, machine: Machine) -> None:
    code, _, _ = run("bench", "--lookup-only", "--kinds", "chat", "--temperatures", "0", "--tokens", "20")
    assert code == 0
    assert [config.draft for config in machine.configs] == [None]


def test_prompts_are_written_and_nothing_is_run(run: Run, tmp_path: Path, machine: Machine) -> None:
    folder = tmp_path / "deep" / "prompts"
    code, out, _ = run("bench", "--dump-prompts", str(folder))
    assert (code, out) == (0, "")
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 16
    assert {"coding-1.txt", "editing-2.txt"} <= set(names)
    assert (folder / "coding-1.txt").read_bytes().startswith(b"<|im_start|>user\nWrite a Python function")
    assert machine.configs[0].draft is None


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["bench", "--kinds", "poems"], "no kind of text 'poems'"),
        (["bench", "--fixed", "three"], "fixed must be numbers"),
        (["bench", "--fixed", "65"], "from 1 to 64"),
        (["bench", "--turns", "0"], "turns must be at least 1"),
        (["bench", "--tokens", "1"], "tokens must be at least 2"),
        (["bench", "--temperatures", "-1"], "temperature must be 0 or more"),
        (["bench", "--temperature", "1"], "take --temperatures"),
        (["bench", "--spec", "3"], "--fixed"),
        (["bench", "--max-tokens", "3"], "--tokens"),
        (["bench", "--stop", "x"], "its own"),
        (["bench", "--history"], "leave --history out"),
        (["compare", "hello", "--history"], "leave --history out"),
        (["bench", "--lookup-only", "--draft", "none"], "leave --draft out"),
        (["compare", "hello", "--spec", "off"], "nothing to be compared with"),
        (["compare", "hello", "--turns", "0"], "turns must be at least 1"),
        (["compare", "hello", "--max-tokens", "1"], "at least 2"),
        (["compare"], "nothing to answer"),
    ],
)
def test_wrong_usage_is_one_line(run: Run, arguments: list[str], part: str) -> None:
    code, out, errors = run(*arguments)
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert part in errors


def test_the_demo_is_no_machine_to_measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    assert cli.run(["bench", "--demo"]) == 2
    assert cli.run(["compare", "hello", "--demo"]) == 2


def test_a_comparison_is_one_object(run: Run) -> None:
    code, out, _ = run("compare", "hello", "--json", "--temperature", "0", "--turns", "2", "--max-tokens", "40")
    told = json.loads(out)
    assert (code, out.count("\n")) == (0, 1)
    assert list(told) == ["modes", "ratios", "text"]
    assert list(told["modes"]) == ["off", "auto"]
    assert {len(told["modes"][mode][key]) for mode in ("off", "auto") for key in ("tps", "ttft_s")} == {2}
    assert list(told["ratios"]["auto"]) == ["ratio", "low", "high"]
    assert told["text"] == {"verdict": "identical", "first_difference": None}


def test_a_comparison_in_words(run: Run) -> None:
    code, out, _ = run("compare", "hello", "--spec", "3", "--turns", "2", "--max-tokens", "40", "--seed", "3")
    off, fixed, ratio, texts, plan = out.splitlines()
    assert code == 0
    assert off == "off         35.7 tok/s, the first token after 0.03 s"
    assert fixed.startswith("fixed 3 ")
    assert ratio.startswith("fixed 3 is 1.")
    assert "times as fast as off (" in ratio
    assert texts == "the texts are the same"
    assert plan.startswith("fixed 3: ")


def test_ctrl_c_leaves_half_a_comparison(run: Run, machine: Machine) -> None:
    machine.stops = 60
    code, out, _ = run("compare", "hello", "--json", "--max-tokens", "40")
    told = json.loads(out)
    assert code == 130
    assert list(told["modes"]) == ["off"] or list(told["modes"]) == ["off", "auto"]


def test_a_difference_is_shown_without_control_characters() -> None:
    place = Parting(token=5, off="a\nb", on="c\x1b[2J")
    told = Comparison(
        modes={"off": Speeds(tps=[None, 20.0], ttft_s=[None]), "auto": Speeds(tps=[None])},
        ratios={"auto": Ratio()},
        text=Texts(verdict="differs", first_difference=place),
    )
    off, auto, ratio, differ, was, now = compare_lines.lines(told, {"auto": ""})
    assert (off, auto) == ("off         20.0 tok/s", "auto           - tok/s")
    assert "too short" in ratio
    assert differ == "the texts differ from token 5 on"
    assert was == "  off: a␊b"
    assert "\x1b" not in now


def test_a_row_and_what_is_not_defined_in_it() -> None:
    assert row(LINE) == "summarizing  T 0.8  auto       41.2  1.12 [1.08, 1.15]   70%  1.60  1.31   1.10"
    nothing = replace(LINE, tps=None, ratio=None, low=None, high=None, acceptance_rate=None, mode="fixed 15")
    assert row(nothing).split() == ["summarizing", "T", "0.8", "fixed", "15", "-", "-", "-", "1.60", "1.31", "1.10"]
    assert len(row(LINE)) == len(HEAD) == 79
    _, plan = table([LINE])
    assert plan.strip() == "lookup␛ up to 7"
    assert table([replace(LINE, mode="off")]) == [row(replace(LINE, mode="off"))]


def test_rivals_name_the_lengths() -> None:
    assert rivals([]) == []
    one = Rivals(kind="chat", temperature=0, best=["fixed 3", "fixed 3"], ratio=1.0, low=None, high=None)
    _, head, line = rivals([one])
    assert head.startswith("auto to the best")
    assert line.split() == ["chat", "greedy", "1.00", "fixed", "3"]


def test_the_plot_shows_each_ratio_and_its_prediction() -> None:
    lines = [
        replace(LINE, kind=kind, temperature=t, mode=mode, ratio=ratio)
        for kind in ("a < b", "coding")
        for t in (0.0, 0.8)
        for mode, ratio in (("off", 1.0), ("fixed 3", 0.7), ("auto", 1.12))
    ]
    root = ElementTree.fromstring(bench_plot.svg([*lines, replace(LINE, kind="short", ratio=None)]))
    space = "{http://www.w3.org/2000/svg}"
    bars = [r for r in root.iter(f"{space}rect") if r.get("fill") == bench_plot.AUTO_COLOUR]
    marks = [m for m in root.iter(f"{space}line") if m.get("stroke") == bench_plot.THEORY]
    texts = [text.text for text in root.iter(f"{space}text")]
    assert len(bars) == 4 + 1  # one in the legend
    assert len(marks) == 8
    assert texts.count("a < b") == 2
    assert {"greedy", "T = 0.8", "fixed 3", "auto", "theory"} <= set(texts)
    assert "short" not in texts
    assert len({bar.get("height") for bar in bars[1:]}) == 1
    assert ElementTree.fromstring(bench_plot.svg([])).tag == f"{space}svg"


def test_the_bar_fills() -> None:
    bar = Bar(io.StringIO())
    assert bar.text("chat", 0) == f"[{'.' * 24}]   0% chat"
    assert bar.text("chat", 0.5) == f"[{'#' * 12}{'.' * 12}]  50% chat"
    assert bar.text("chat", 1) == f"[{'#' * 24}] 100% chat"
