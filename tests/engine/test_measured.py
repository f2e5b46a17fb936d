"""What is measured is kept under all that it depends on, and measured again where it does not suffice."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from engine.backends.toy import EarlyLM
from engine.calibration import STRETCH, Setting, Widths
from engine.calibration_store import CalibrationStore
from engine.config import EngineConfig
from engine.cost_table import COST_WIDTHS, FIRST_WIDTHS, CostTable
from engine.errors import ConfigError
from engine.events import Loading
from engine.exit_table import measure_exit
from engine.measured import (
    StrictChoice,
    change_of_leads,
    draft_costs,
    early_exit,
    key_of,
    known_leads,
    own_strict,
    target_costs,
)
from engine.opening import Opened
from engine.stats import HeldAs
from tests.fakes import FakeClock


class PlacedToy(EarlyLM):
    """A toy that says what it was opened from."""

    file: Path
    kv: HeldAs = "bf16"
    flash_attention: Literal["on", "off"] = "off"
    threads = 2
    device = "cpu"


def opened(file: Path, n_ctx: int = 4096) -> Opened:
    model = PlacedToy(n_ctx=n_ctx)
    model.file = file
    return Opened(model, "torch", "torch 2", "bf16")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.write_bytes(b"weights")
    return path


def config(file: Path, **options: object) -> EngineConfig:
    return EngineConfig(target=file, cache_dir=file.parent / "kept", **options)  # type: ignore[arg-type]


def test_nothing_of_one_engine_version_device_or_setting_is_taken_for_another(file: Path, tmp_path: Path) -> None:
    one = opened(file)
    others = [replace(one, engine="llamacpp"), replace(one, library="torch 3"), replace(one, weights="nf4")]
    for name, value in (("kv", "f16"), ("flash_attention", "on"), ("threads", 1), ("device", "GPU")):
        model = opened(file).model
        setattr(model, name, value)
        others.append(replace(one, model=model))
    (tmp_path / "other").write_bytes(b"Weights")
    others.append(opened(tmp_path / "other"))
    keys = [key_of(config(file), one), *(key_of(config(file), other) for other in others)]
    keys.append(key_of(config(file, gpu_layers=0), one))
    assert len({msgspec.json.encode(key) for key in keys}) == len(keys)
    assert key_of(config(file), opened(file)) == keys[0]


def test_costs_of_a_model_that_only_drafted_are_measured_again_for_a_target(file: Path) -> None:
    one = opened(file)
    CalibrationStore(config(file).cache_dir).put(key_of(config(file), one), CostTable(at={0: {1: 12345.0}}))
    found = target_costs(config(file), opened(file), lambda _: None).table
    assert found.at[0].keys() == set(COST_WIDTHS)
    assert found.cost(1) == 12345, "what was kept is not measured again"


def test_what_is_left_for_idle_time_is_not_measured_at_load(file: Path) -> None:
    idle = config(file, calibrate="idle")
    told: list[Loading] = []
    assert target_costs(idle, opened(file), told.append).table.at[0].keys() == set(FIRST_WIDTHS)
    assert told
    model = opened(file).model
    assert draft_costs(idle, opened(file), opened(file), model, told.append).table.at[0].keys() == {1}
    assert known_leads(idle, opened(file)) is None
    leads = change_of_leads(config(file), opened(file), told.append)
    assert known_leads(idle, opened(file)) == leads is not None


def test_what_a_mapped_draft_costs_is_no_word_on_the_draft_itself(file: Path) -> None:
    one = opened(file)
    store = CalibrationStore(config(file).cache_dir)
    store.put(key_of(config(file), one), CostTable(at={0: {1: 12345.0}}))
    mapped = draft_costs(config(file), opened(file), one, opened(file).model, lambda _: None)
    assert mapped.table.cost(1) < 12345
    assert draft_costs(config(file), opened(file), one, one.model, lambda _: None).table.cost(1) == 12345


def test_strict_keeps_the_setting_that_there_is(file: Path) -> None:
    """A toy's passes are equal at any width."""
    told: list[Loading] = []
    found = own_strict(config(file), opened(file), told.append)
    assert found.setting == Setting(kv="bf16", flash_attention="off")
    assert found.widths.group == 16
    assert told
    told.clear()
    assert own_strict(config(file), opened(file), told.append) == found
    assert not told, "measured once"


def test_strict_in_a_small_context_is_no_word_on_a_large_one(file: Path) -> None:
    small = own_strict(config(file), opened(file, n_ctx=40 + STRETCH + 16), lambda _: None)
    assert small.widths.contexts == (40,)
    assert len(own_strict(config(file), opened(file), lambda _: None).widths.contexts) == 4


@pytest.mark.parametrize(("contexts", "again"), [((40,), False), ((), True)])
def test_once_no_width_is_left_nothing_is_measured_again(file: Path, contexts: tuple[int, ...], again: bool) -> None:
    none = StrictChoice(setting=Setting(kv="bf16", flash_attention="off"), widths=Widths(contexts=contexts))
    CalibrationStore(config(file).cache_dir).put(key_of(config(file), opened(file)), none)
    told: list[Loading] = []
    own_strict(config(file), opened(file), told.append)
    assert bool(told) is again
    assert "so nothing is drafted" in none.price


def test_a_cache_that_cannot_go_back_is_not_measured(file: Path) -> None:
    model = PlacedToy(kind="recurrent")
    model.file = file
    told: list[Loading] = []
    recurrent = Opened(model, "torch", "torch 2")
    assert own_strict(config(file), recurrent, told.append).widths.group == 1
    assert change_of_leads(config(file), recurrent, told.append) is None
    assert told == []


def flat(width: int) -> float:
    return 1000.0 + width


def test_early_exits_are_measured_once_and_again_for_a_number_that_was_not_tried(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = partial(measure_exit, clock=FakeClock())  # what was measured on a busy machine is not kept
    monkeypatch.setattr("engine.measured.measure_exit", steady)
    told: list[Loading] = []
    found, note = early_exit(config(file, exit_layers=0), opened(file), flat, told.append)
    assert found is not None
    assert f"after {found.layers} of 8 layers" in note
    assert told
    told.clear()
    assert early_exit(config(file, exit_layers=0), opened(file), flat, told.append) == (found, note)
    other, _ = early_exit(config(file, exit_layers=3), opened(file), flat, told.append)
    assert other is not None
    assert other.layers == 3
    assert not told, "every eighth is tried at once"
    seventh, _ = early_exit(config(file, exit_layers=7), opened(file), flat, told.append)
    assert seventh is not None
    assert seventh.layers == 7
    assert told
    told.clear()
    early_exit(config(file, exit_layers=0), opened(file), flat, told.append)
    assert not told, "the eighths were measured with it"


@pytest.mark.parametrize("asked", [8, 9, 80])
def test_no_layer_left_to_verify_is_refused_with_the_numbers(file: Path, asked: int) -> None:
    with pytest.raises(ConfigError, match=f"8 layers, so after {asked} .*--exit-layers 1 to 7, or auto"):
        early_exit(config(file, exit_layers=asked), opened(file), flat, lambda _: None)


@pytest.mark.parametrize(("kind", "layers"), [("recurrent", 8), ("dense", 1)])
def test_where_there_is_no_early_exit_it_is_said_and_nothing_is_measured(
    file: Path, kind: Literal["recurrent", "dense"], layers: int
) -> None:
    model = PlacedToy(kind=kind)
    model.file, model.layers = file, layers
    told: list[Loading] = []
    found, note = early_exit(config(file, exit_layers=0), Opened(model, "torch", "torch 2"), flat, told.append)
    assert found is None
    assert note.startswith("early exit is not used: this model has")
    assert told == []
