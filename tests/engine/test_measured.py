"""What is measured is kept under all that it depends on, and measured again where it does not suffice."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from engine.backends.toy import ToyLM
from engine.calibration import STRETCH, CostTable, Setting, Widths
from engine.calibration_store import CalibrationStore
from engine.config import EngineConfig
from engine.events import Loading
from engine.measured import StrictChoice, change_of_leads, costs, key_of, own_strict
from engine.opening import Opened
from engine.stats import HeldAs


class PlacedToy(ToyLM):
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
    CalibrationStore(config(file).cache_dir).put(key_of(config(file), one), CostTable(ms={1: 12345.0}))
    found = costs(config(file), opened(file), None, lambda _: None)
    assert found.target(1) < 12345
    assert found.drafts == {}
    drafted = costs(config(file), opened(file), one, lambda _: None)
    assert "model" in drafted.drafts


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
