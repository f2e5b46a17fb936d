"""`paceline tune`: what is printed, what is kept, when it is used, and that nothing half-made is left."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from app import choice, cli, paths, tuned
from app.commands.tune_lines import HEAD, kept, line, verdict
from app.settings import Settings
from engine.backends.llamacpp_quantize import Form, quantize
from engine.config import EngineConfig
from engine.experiments import tune as tuning
from engine.experiments import tune_plan
from engine.experiments.tune_records import Acceptance, DraftForm, Failed, Measured, Report
from models.catalogue import Catalogue, Entry, Pair, Wheels
from models.errors import Busy, NoSpace
from models.facts import facts
from models.files import make_private
from models.gguf import check
from models.library import Library
from tests.tiny_gguf import WORDS, Tiny, write_llama

Run = Callable[..., tuple[int, str, str]]
BEFORE = Measured(
    form=DraftForm(),
    bytes=491_400_064,
    ms=15.5,
    ms_two=29.0,
    acceptance=Acceptance(greedy=0.8, sampled=0.9),
    gain=0.9,
    length=1,
)
BETTER = replace(BEFORE, form=DraftForm("q4_0", (9, 10, 11), 32768), ms=7.25, gain=1.2, length=3)
REPORT = Report(
    target="target",
    draft="draft",
    target_ms={1: 25.0, 2: 40.0},
    context=256,
    places=600,
    original=BEFORE,
    best=BETTER,
    needed=0.72,
    failed=[],
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PACELINE_THREADS", "1")
    return tmp_path / "home"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    target = write_llama(tmp_path / "big.gguf", Tiny(layers=2, merges=WORDS))
    return target, write_llama(tmp_path / "small.gguf", Tiny(layers=2, merges=WORDS, blur=0.05))


@pytest.fixture
def run(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `tune` in this process on a tiny pair, with a clock by which smaller files are faster."""
    short = tune_plan.Plan(prompts=("The harbour wakes.",), tokens=4, weights=("q4_0",), left_out=(), sizes=())
    monkeypatch.setattr(tune_plan, "Plan", lambda: short)
    monkeypatch.setattr(tuning, "passes", lambda model: {1: model.file.stat().st_size / 1e5, 2: 1.0})

    def go(*arguments: str) -> tuple[int, str, str]:
        said = [] if "--pair" in arguments else ["--target", str(pair[0]), "--draft", str(pair[1])]
        return (cli.run(["tune", *said, *arguments]), *capfd.readouterr())

    return go


def left() -> list[str]:
    return sorted(path.name for path in tuned.folder().iterdir() if path.name != ".lock")


def test_a_better_form_is_kept_with_its_record(run: Run) -> None:
    code, out, errors = run()
    assert code == 0
    assert out.splitlines()[0] == HEAD
    assert out.splitlines()[1].startswith("as it is ")
    assert out.splitlines()[2].startswith("q4_0 ")
    assert "kept as small-for-big" in out.splitlines()[-1]
    assert "paceline: recording answers\n" in errors
    assert left() == ["small-for-big.gguf", "small-for-big.json"]
    (known,) = tuned.records()
    assert (known.draft, known.target, known.form) == ("small", "big", "q4_0")
    assert known.ms < known.ms_before
    assert known.path.stat().st_size == known.bytes


def test_json_is_one_object(run: Run) -> None:
    code, out, _ = run("--json")
    assert (code, out.count("\n")) == (0, 1)
    said = json.loads(out)
    assert said["kept"]["id"] == "small-for-big"
    assert said["report"]["best"]["form"]["weights"] == "q4_0"


def test_where_nothing_is_better_an_older_one_goes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run()[0] == 0
    monkeypatch.setattr(tuning, "passes", lambda model: {1: 1e6 / model.file.stat().st_size, 2: 1.0})
    code, out, _ = run()
    assert code == 0
    assert out.splitlines()[-1] == "nothing is kept: the draft is used as it is"
    assert left() == []


def test_ctrl_c_ends_it_with_130_and_keeps_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(source: Path, target: Path, form: Form) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "quantize", stop)
    assert run()[0] == 130
    assert left() == []


def test_what_cannot_be_tuned_is_one_line(run: Run, pair: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["tune", "--target", str(pair[0])]) == 2
    assert "there is no draft model to tune: name a pair" in capfd.readouterr().err
    assert run("--pair", "coder")[0] == 1
    with tuned.workplace(0):
        code, _, errors = run()
    assert code == 1
    assert errors.endswith("another process is using this: wait until it is done, or stop it, and try again\n")


def test_too_little_space_is_said_before_anything_is_made() -> None:
    with pytest.raises(NoSpace, match="tuning needs"), tuned.workplace(1 << 60):
        pass
    assert left() == []


def test_what_a_dead_run_left_is_swept(home: Path) -> None:
    folder = make_private(tuned.folder())
    (folder / "tmp-999999999-x").mkdir()
    (folder / "lost.gguf").write_text("no record")
    (folder / "wrong.gguf").write_text("its record is of another length")
    with tuned.workplace(0) as place:
        assert left() == [place.name]
        with pytest.raises(Busy), tuned.workplace(0):
            pass
    assert left() == []


@pytest.fixture
def library(pair: tuple[Path, Path]) -> Library:
    """A pair `coder` of the two files, installed."""
    source = Wheels(version="1", members="*", parts=())
    entries = {}
    make_private(paths.models_dir())
    for name, file in zip(("target", "draft"), pair, strict=True):
        shape, length = facts(check(file)), file.stat().st_size
        entries[name] = Entry(id=name, title="", bytes=length, sha256="0", licence="x", source=source, facts=shape)
        (paths.models_dir() / f"{name}.gguf").write_bytes(file.read_bytes())
    return Library(
        paths.models_dir(), Catalogue(entries, {"coder": Pair(id="coder", title="", target="target", draft="draft")})
    )


def made(config: EngineConfig, **changes: object) -> tuned.Tuned:
    """A tuned draft for this config, in its place."""
    assert config.draft is not None
    with tuned.workplace(0) as place:
        quantize(config.draft, place / "form.gguf", Form(weights="q4_0"))
        one = tuned.Tuned(
            id=tuned.id_of("target", "draft"),
            draft="draft",
            target="target",
            form="q4_0",
            bytes=(place / "form.gguf").stat().st_size,
            ms=7.0,
            ms_before=15.0,
            acceptance=0.8,
            acceptance_before=0.82,
            gain=1.1,
            gain_before=0.9,
            basis=tuned.basis(config),
        )
        one = replace(one, **changes)
        tuned.keep(place / "form.gguf", one)
    return one


def test_a_pair_drafts_with_what_was_tuned_for_it(library: Library) -> None:
    plain = choice.choose(Settings(pair="coder"), library).config
    one = made(plain)
    config = choice.choose(Settings(pair="coder"), library).config
    assert (config.draft, config.draft_name) == (one.path, "draft-for-target")
    assert config.target == plain.target
    assert choice.choose(Settings(pair="coder", draft="draft"), library).config.draft == plain.draft
    on_torch = replace(plain, draft_backend="torch")
    assert choice._tuned(on_torch) == on_torch
    assert choice.choose(Settings(pair="coder"), library, tuned=False).config == plain
    assert choice.choose(Settings(target="target", draft=one.id), library).config.draft == one.path


@pytest.mark.parametrize("field", ["draft", "target", "machine", "gpu_layers"])
def test_a_record_of_other_files_or_of_another_machine_is_not_used(library: Library, field: str) -> None:
    plain = choice.choose(Settings(pair="coder"), library).config
    basis = tuned.basis(plain)
    made(plain, basis=replace(basis, **{field: 0 if field == "gpu_layers" else "another"}))
    assert choice.choose(Settings(pair="coder"), library).config == plain


def test_a_file_that_is_cut_off_or_a_broken_record_is_not_used(library: Library) -> None:
    plain = choice.choose(Settings(pair="coder"), library).config
    one = made(plain)
    whole = one.path.read_bytes()
    one.path.write_bytes(whole[:-1])
    assert choice.choose(Settings(pair="coder"), library).config == plain
    one.path.write_bytes(whole)
    assert choice.choose(Settings(pair="coder"), library).config.draft == one.path
    one.path.with_suffix(".json").write_text("{")
    assert choice.choose(Settings(pair="coder"), library).config == plain


def test_it_is_listed_told_and_removed(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    one = made(choice.choose(Settings(pair="coder"), library).config)
    assert cli.run(["models", "list"]) == 0
    assert "draft-for-target" in capsys.readouterr().out.split("tuned drafts\n")[1]
    cli.run(["models", "list", "--json"])
    assert json.loads(capsys.readouterr().out)["tuned"][0]["id"] == one.id
    assert "15.0 to 7.0 ms a token" in tuned.state(one)
    assert "not used" in tuned.state(replace(one, basis=replace(one.basis, machine="another")))
    assert cli.run(["models", "rm", one.id]) == 0
    assert capsys.readouterr().out == "draft-for-target is deleted\n"
    assert left() == []


def test_what_was_tuned_from_a_model_goes_with_it(
    library: Library, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one = made(choice.choose(Settings(pair="coder"), library).config, draft="small")
    assert cli.run(["models", "add", str(pair[1])]) == 0
    assert cli.run(["models", "rm", "small"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["small is forgotten; its file stays", f"{one.id} is deleted"]
    assert left() == []


def test_lines_say_what_was_gained() -> None:
    assert line(BETTER).startswith("q4_0, without layers 9 to 11, 32,768 tokens")
    assert len(line(BETTER)) == len(HEAD) or len(str(BETTER.form)) > 38
    assert "left out: why" in line(Failed(form=DraftForm("q4_0"), why="why"))
    passes, gained, worth = verdict(REPORT)
    assert "25.0 over 1, 40.0 over 2" in passes
    assert "15.50 to 7.25 ms, acceptance 0.850 to 0.850, 36.0 to 48.0 tokens/s" in gained
    assert worth == "drafts of 3 are expected to make 1.20 times the 40.0 tokens/s without"
    assert kept(None).startswith("nothing is kept")


def test_a_draft_that_cannot_pay_is_said_with_its_numbers() -> None:
    none = replace(REPORT, best=None)
    assert verdict(none)[1] == "no form promises more than the draft as it is"
    assert (
        "0.90 times the 40.0 tokens/s without; it pays from an acceptance of 0.72, and this one has 0.85"
        in (verdict(none)[2])
    )
    assert "not even perfect drafts pay" in verdict(replace(none, needed=None))[2]
