import os
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import choice, layers, paths
from app.errors import NotEnoughMemory, NothingInstalled, SettingsError, UsageError
from app.last_used import LastUsed, last_used, remember_models, remember_speculation, with_last_speculation
from app.settings import Settings
from engine.config import EngineConfig, Message, Request, Sampling, Speculation
from engine.engines import Engines, engines_for
from engine.errors import ConfigError
from models import fit
from models.catalogue import Catalogue, Entry, Pair, Wheels
from models.errors import NotInstalled, UnknownModel
from models.facts import facts
from models.files import make_private
from models.gguf import check
from models.library import Library
from tests.tiny_gguf import write_llama

NOWHERE = Path("nowhere.toml")
some = st.builds(
    Settings,
    spec=st.none() | st.sampled_from(["auto", "off", "3"]),
    temperature=st.none() | st.floats(0, 2),
    top_k=st.none() | st.integers(0, 100),
    seed=st.none() | st.integers(0, 9),
    stop=st.none() | st.just(("a",)),
)


@given(some, some, some)
def test_layers_keep_the_first_that_says_something(top: Settings, middle: Settings, bottom: Settings) -> None:
    merged = top.over(middle.over(bottom))
    assert merged == top.over(middle).over(bottom)
    for field in fields(Settings):
        said = [value for layer in (top, middle, bottom) if (value := getattr(layer, field.name)) is not None]
        assert getattr(merged, field.name) == (said[0] if said else None)


@pytest.mark.parametrize("own", [Settings(pair="b"), Settings(target="t"), Settings(demo=True)])
def test_a_choice_of_models_replaces_another_one(own: Settings) -> None:
    assert own.over(Settings(pair="a", draft="d")) == own
    assert own.over(Settings(target="a", draft="d")) == own


def test_the_demo_passes_over_how_other_models_are_loaded(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('ctx = 4096\nkv = "q8_0"\nseed = 1\n')
    assert layers.load(Settings(demo=True), file, {}) == Settings(demo=True, seed=1)


@pytest.mark.parametrize("name", ["pair", "target", "draft"])
def test_an_empty_name_of_a_model_is_wrong_usage(name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} must not be empty"):
        layers.load(Settings(**{name: " "}), NOWHERE, {})


def test_a_draft_alone_joins_the_choice_below() -> None:
    assert Settings(draft="none").over(Settings(pair="a")) == Settings(pair="a", draft="none")


def test_unset_settings_are_the_engines_defaults() -> None:
    assert Settings().request(()) == Request(messages=())
    assert Settings().engine_config(Path("x")) == EngineConfig(target=Path("x"))


def test_every_setting_reaches_the_engine() -> None:
    settings = Settings(
        engine="torch",
        draft_engine="llamacpp",
        spec="4",
        rule="rejection",
        exact="strict",
        seed=1,
        temperature=0.5,
        top_k=2,
        top_p=0.3,
        min_p=0.4,
        repeat_penalty=1.5,
        repeat_last=6,
        frequency_penalty=0.7,
        presence_penalty=0.8,
        logit_bias=("9=-inf", "10=1.5"),
        max_tokens=11,
        stop=("x",),
        system="be",
        ctx=512,
        threads=13,
        gpu_layers=14,
        kv="q8_0",
        flash_attention="on",
        weights="nf4",
        exit_layers="12",
    )
    question = Message(role="user", content="hi")
    assert settings.request((question,)) == Request(
        messages=(Message(role="system", content="be"), question),
        sampling=Sampling(
            temperature=0.5,
            top_k=2,
            top_p=0.3,
            min_p=0.4,
            repeat_penalty=1.5,
            repeat_last=6,
            frequency_penalty=0.7,
            presence_penalty=0.8,
            logit_bias={9: -float("inf"), 10: 1.5},
            seed=1,
        ),
        speculation=Speculation(mode="fixed", length=4, rule="rejection"),
        max_tokens=11,
        stop=("x",),
    )
    assert settings.engine_config(Path("t")) == EngineConfig(
        target=Path("t"),
        backend="torch",
        draft_backend="llamacpp",
        n_ctx=512,
        threads=13,
        gpu_layers=14,
        kv="q8_0",
        flash_attention="on",
        weights="nf4",
        exit_layers=12,
        exact="strict",
    )


@pytest.mark.parametrize(("said", "layers"), [(None, None), ("off", None), ("auto", 0), ("7", 7)])
def test_early_exit_is_off_measured_or_a_number_of_layers(said: str | None, layers: int | None) -> None:
    assert Settings(exit_layers=said).engine_config(Path("x")).exit_layers == layers


def test_each_setting_is_explained() -> None:
    source = Path(layers.__file__).with_name("settings.py").read_text()
    for field in fields(Settings):
        after = source.partition(f"\n    {field.name}: ")[2].split("\n", 2)[1]
        assert after.startswith('    """'), field.name


def test_the_order_is_arguments_environment_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('temperature = 0.1\ntop-k = 1\ntop_p = 0.1\nspec = 3\nstop = ["a", "b"]\n')
    environment = {"PACELINE_TEMPERATURE": "0.2", "PACELINE_TOP_K": "2", "PACELINE_HOME": "x", "PACELINE_SEED": ""}
    merged = layers.load(Settings(temperature=0.3), file, environment)
    assert merged == Settings(temperature=0.3, top_k=2, top_p=0.1, spec="3", stop=("a", "b"))


def test_no_file_is_no_setting() -> None:
    assert layers.load(Settings(), NOWHERE, {}) == Settings()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("bogus = 1", "there is no setting 'bogus'"),
        ("temprature = 1", "perhaps 'temperature'?"),
        ("temperature = ", "not valid TOML"),
        ("\x00", "not valid TOML"),
        ('top-k = "many"', "top-k: 'many' is not possible here: expected int"),
        ("seed = 1.5", "seed: 1.5"),
        ("threads = true", "threads: True"),
        ('kv = "f32"', "kv: 'f32' is not possible here: take f16, q8_0 or q4_0"),
        ("spec = -1", "spec must be auto, off or a length from 1 to 64, not '-1'"),
        ("exit-layers = 0", "exit-layers must be auto, off or a number of layers from 1 on, not '0'"),
        ('weights = "q4"', "take auto, nf4, int8, bf16, fp16 or fp32"),
        ('draft-engine = "demo"', "take auto, llamacpp or torch"),
        ("spec = 65", "spec must be auto, off or a length from 1 to 64, not '65'"),
        ("temperature = -1", "temperature must be 0 or more"),
        ("temperature = nan", "temperature must be a finite number"),
        ("max-tokens = -1", "max-tokens must be 0 or more"),
        ("ctx = 1", "ctx must be at least 16"),
        ('stop = [""]', "a stop text must not be empty"),
        ("stop = [1]", "expected str"),
        ('logit-bias = ["x"]', "logit-bias must be a token id"),
        ('logit-bias = ["1=inf"]', "logit-bias of token 1"),
        ('logit-bias = ["1=nan"]', "logit-bias of token 1"),
        ('pair = "a"\ntarget = "b"', "exclude each other"),
        ('kv = "q8_0"\nflash-attention = "off"', "needs flash attention"),
        ("[sampling]\ntemperature = 1", "there is no setting 'sampling'"),
    ],
)
def test_a_bad_file_is_one_line_with_its_name(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        layers.load(Settings(), file, {})
    line = str(caught.value)
    assert line.startswith(str(file))
    assert part in line
    assert "\n" not in line


@pytest.mark.parametrize(("name", "value"), [("TEMPERATURE", "hot"), ("SPEC", "-1"), ("SEED", "1.5"), ("KV", "f32")])
def test_a_bad_variable_is_one_line_with_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^PACELINE_{name}: "):
        layers.load(Settings(), NOWHERE, {f"PACELINE_{name}": value})


def test_bad_arguments_are_wrong_usage() -> None:
    with pytest.raises(ConfigError, match=r"^temperature"):
        layers.load(Settings(temperature=-1), NOWHERE, {})
    with pytest.raises(UsageError, match=r"^demo"):
        layers.load(Settings(demo=True, pair="coder"), NOWHERE, {})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def library(tmp_path: Path, home: Path) -> Library:
    """Pairs coder (target, draft) and tiny (small), of which `install` puts the files there."""
    seed = write_llama(tmp_path / "seed.gguf")
    shape, length = facts(check(seed)), seed.stat().st_size
    source = Wheels(version="1", members="*", parts=())
    models = {
        name: Entry(id=name, title=name, bytes=length, sha256="0", licence="x", source=source, facts=shape)
        for name in ("target", "draft", "small")
    }
    pairs = {
        "coder": Pair(id="coder", title="", target="target", draft="draft"),
        "tiny": Pair(id="tiny", title="", target="small"),
    }
    return Library(paths.models_dir(), Catalogue(models, pairs))


def install(library: Library, *names: str) -> None:
    make_private(library.root)
    for name in names:
        write_llama(library.file(name))


def test_nothing_installed_says_what_to_fetch(library: Library) -> None:
    with pytest.raises(NothingInstalled, match=r"paceline models pull coder .* or paceline models pull tiny"):
        choice.choose(Settings(), library)


def test_the_best_pair_is_the_default_and_the_last_one_is_better(library: Library) -> None:
    install(library, "small")
    assert choice.choose(Settings(), library).pair == "tiny"
    install(library, "target", "draft")
    chosen = choice.choose(Settings(), library)
    assert chosen.pair == "coder"
    assert (chosen.config.target, chosen.config.draft) == (library.file("target"), library.file("draft"))
    assert (chosen.config.target_name, chosen.config.draft_name) == ("target", "draft")
    choice.choose(Settings(pair="tiny"), library).remember()
    assert choice.choose(Settings(), library).pair == "tiny"
    library.file("small").unlink()
    assert choice.choose(Settings(), library).pair == "coder"


def test_what_is_remembered_is_private_and_may_be_broken(library: Library) -> None:
    remember_models(LastUsed(pair="tiny"))
    file = paths.data_dir() / "state.json"
    assert last_used() == LastUsed(pair="tiny")
    if os.name == "posix":
        assert file.stat().st_mode & 0o077 == 0
    for broken in (
        "{",
        "[]",
        '{"pair": 1}',
        '{"spec": "65"}',
        '{"target": "", "draft": "gone", "pair": ""}',
        '{"pair": "\xff"}',
    ):
        file.write_text(broken, encoding="latin-1")
        assert with_last_speculation(Settings()) == Settings()
        install(library, "small")
        chosen = choice.choose(Settings(), library)
        assert (chosen.pair, chosen.notes) == ("tiny", ())
    file.write_text('{"pair": "tiny", "later": 1}')
    assert last_used().pair == "tiny"


def test_models_and_speculation_are_remembered_apart_and_one_choice_of_models_replaces_another(
    library: Library,
) -> None:
    remember_speculation("off")
    remember_models(LastUsed(target="target", draft="small"))
    remember_speculation("3")
    assert last_used() == LastUsed(target="target", draft="small", spec="3")
    remember_models(LastUsed(pair="coder"))
    assert last_used() == LastUsed(pair="coder", spec="3")


@pytest.mark.parametrize("said", [Settings(spec="auto"), Settings(demo=True)])
def test_speculation_is_that_of_the_last_run_unless_something_is_said(said: Settings, home: Path) -> None:
    remember_speculation("off")
    assert with_last_speculation(Settings(seed=1)) == Settings(seed=1, spec="off")
    assert with_last_speculation(said) == said


def test_models_that_were_chosen_one_by_one_are_the_default_the_next_time(library: Library) -> None:
    install(library, "target", "draft", "small")
    remember_models(LastUsed(target="target", draft="small"))
    chosen = choice.choose(Settings(seed=1), library)
    assert (chosen.config.target_name, chosen.config.draft_name, chosen.pair) == ("target", "small", None)
    assert choice.choose(Settings(draft="none"), library).config.draft is None
    assert choice.choose(Settings(pair="tiny"), library).pair == "tiny"
    assert choice.choose(Settings(target="small"), library).config.draft is None
    choice.choose(Settings(target="small"), library).remember()
    assert last_used() == LastUsed(target="target", draft="small")
    remember_models(LastUsed(target="target", draft="none"))
    assert choice.choose(Settings(), library).config.draft is None


@pytest.mark.parametrize(
    ("last", "gone"),
    [
        (LastUsed(pair="coder"), "coder"),
        (LastUsed(pair="no such"), "no such"),
        (LastUsed(target="target", draft="small"), "target"),
        (LastUsed(target="small", draft="target"), "target"),
        (LastUsed(target="small", draft="../x"), "../x"),
    ],
)
def test_models_used_last_that_are_gone_are_told_and_the_default_is_taken(
    library: Library, last: LastUsed, gone: str
) -> None:
    install(library, "small")
    remember_models(last)
    chosen = choice.choose(Settings(), library)
    assert (chosen.pair, chosen.notes) == ("tiny", (f"{gone}, used last, is no longer here: tiny is taken",))
    assert choice.choose(Settings(pair="tiny"), library).notes == ()
    chosen.remember()
    assert choice.choose(Settings(), library).notes == chosen.notes, "a drive that is away may come back"


def test_a_pair_without_its_draft_and_a_target_alone(library: Library) -> None:
    install(library, "target", "draft", "small")
    plain = choice.choose(Settings(pair="coder", draft="none"), library, require_draft=True)
    assert plain.config.draft is None
    assert not plain.config.require_draft
    alone = choice.choose(Settings(target=str(library.file("small"))), library)
    assert (alone.pair, alone.config.draft) == (None, None)
    other = choice.choose(Settings(target="target", draft="small"), library, require_draft=True)
    assert other.config.draft == library.file("small")
    assert other.config.require_draft


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (Settings(), True),
        (Settings(history=True), True),
        (Settings(history=False), False),
        (Settings(demo=True), False),
    ],
)
def test_answers_are_kept_unless_history_is_off(library: Library, settings: Settings, kept: bool) -> None:
    install(library, "small")
    chosen = choice.choose(settings, library)
    assert chosen.config.library is None
    assert choice.with_answers(chosen, settings).config.library == (paths.data_dir() / "answers" if kept else None)
    assert choice.with_answers(chosen, settings).pair == chosen.pair


def test_what_cannot_be_chosen_says_what_to_do(library: Library) -> None:
    with pytest.raises(UnknownModel, match="bogus"):
        choice.choose(Settings(pair="bogus"), library)
    with pytest.raises(NotInstalled, match="paceline models pull coder"):
        choice.choose(Settings(pair="coder"), library)
    with pytest.raises(UsageError, match="--target small"):
        choice.choose(Settings(pair="small"), library)
    with pytest.raises(UnknownModel, match="--pair coder"):
        choice.choose(Settings(target="coder"), library)


def test_a_checkpoint_and_a_mixed_pair_are_chosen_by_path(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is not asked for: torch may put the target on a device that is not known here."""
    install(library, "small")
    monkeypatch.setattr(fit, "available", lambda: 1000)
    folder = tmp_path / "Big-7.5B"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    config = choice.choose(Settings(target=str(folder), draft="small", weights="nf4"), library).config
    assert (config.target, config.target_name) == (folder, "big-7.5b")
    assert (config.draft, config.draft_name) == (library.file("small"), "small")
    assert engines_for(config) == Engines("torch", "llamacpp")
    assert choice.choose(Settings(pair="tiny", engine="torch", ctx=600), library).config.n_ctx == 600


def test_a_checkpoint_that_drafts_is_no_burden_that_is_known(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(library, "small")
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setattr(fit, "available", lambda: fit.need([fit.of_file(library.file("small"))], 1024))
    assert choice.choose(Settings(target="small", draft=str(tmp_path)), library).config.n_ctx == 1024


def test_what_an_engine_does_not_take_is_said_at_once(library: Library) -> None:
    install(library, "small")
    with pytest.raises(ConfigError, match="--engine torch"):
        choice.choose(Settings(weights="nf4"), library)
    with pytest.raises(ConfigError, match="--engine llamacpp"):
        choice.choose(Settings(engine="torch", kv="q8_0"), library)


def test_the_context_is_cut_to_the_memory_that_is_free(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    install(library, "small")
    load = fit.of_file(library.file("small"))
    monkeypatch.setattr(fit, "available", lambda: fit.need([load], 10**9))
    assert choice.choose(Settings(), library).config.n_ctx is None
    monkeypatch.setattr(fit, "available", lambda: fit.need([load], 1024))
    assert choice.choose(Settings(), library).config.n_ctx == 1024
    assert choice.choose(Settings(ctx=600), library).config.n_ctx == 600
    with pytest.raises(NotEnoughMemory, match=r"2,048 tokens of context need .*B and .*B are free: take --ctx 1024"):
        choice.choose(Settings(ctx=2048), library)
    monkeypatch.setattr(fit, "available", lambda: 1000)
    with pytest.raises(NotEnoughMemory, match="take a smaller model"):
        choice.choose(Settings(), library)


def test_folders_are_private_and_move_with_the_home(home: Path) -> None:
    old = os.umask(0)
    try:
        for folder in (paths.models_dir(), paths.log_dir(), paths.cache_dir()):
            make_private(folder)
            assert folder.is_relative_to(home)
            if os.name == "posix":
                assert folder.stat().st_mode & 0o777 == 0o700
                assert folder.parent.stat().st_mode & 0o777 == 0o700
        file = paths.private_file(paths.config_dir() / "x")
        if os.name == "posix":
            assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)
