"""What this machine makes of an opened model: measured once, and kept under all that it depends on.

The one invariant: a measurement is taken back only for the same bytes on the same engine, versions, device and setting.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from engine.calibration import (
    LEADS_PLAN,
    STRICT_PLAN,
    Setting,
    Widths,
    candidates,
    measure_widths,
    strict_setting,
)
from engine.calibration_store import CalibrationStore, Key, key_for
from engine.config import EngineConfig, Frozen
from engine.cost_book import CostBook
from engine.cost_table import COST_WIDTHS, DRAFT_WIDTHS, FIRST_WIDTHS
from engine.costs import Cost
from engine.early import leaves_early
from engine.errors import ConfigError, LoadFailed
from engine.events import Loading
from engine.exit_table import ExitPoint, ExitTable, choose, exits, measure_exit
from engine.flash import FlashChoice, FlashTrial, Switch
from engine.lessons import Lessons
from engine.model import Model
from engine.opening import Opened, Tell, llamacpp_library, open_model, telling
from engine.threads import physical_cores
from engine.verdict import Change

Kept = TypeVar("Kept", bound=Frozen)
STRICT_CTX = 2048
"""Context in which widths are compared where a model is opened for that alone: it holds the longest stretch that is."""
FIRST_S, MORE_S, ALL_S = 1.0, 0.5, 8.0
"""Seconds for timing passes at load: those that the first answer needs, some that are still lacking, all."""
SPEED, EXACTNESS = "measuring speed, once", "measuring exactness, once"


class StrictChoice(Frozen, frozen=True, kw_only=True):
    """What strict exactness runs with."""

    setting: Setting
    widths: Widths

    @property
    def price(self) -> str:
        """One sentence for the user."""
        setting = f"a {self.setting.kv} cache, flash attention {self.setting.flash_attention}"
        if (width := self.widths.group) == 1:
            return f"strict exactness ({setting}): no wider pass equals a single one here, so nothing is drafted"
        return f"strict exactness ({setting}): passes of up to {width} tokens, so drafts of up to {width - 1}"


class Shift(Frozen, frozen=True, kw_only=True):
    """Whether the cache of a model keeps right what moves up when a part before it is dropped."""

    right: bool


def best_strict(config: EngineConfig, progress: Tell) -> StrictChoice:
    """Of llama.cpp's settings for the target, the one with the widest group of passes that equal single ones."""

    def make(setting: Setting) -> Model:
        one = msgspec.structs.replace(config, kv=setting.kv, flash_attention=setting.flash_attention)
        return open_model(one, config.target, "llamacpp", lambda _: None, n_ctx_most=STRICT_CTX).model

    def measure() -> StrictChoice:
        settings = candidates(config.kv, config.flash_attention)
        setting, widths = strict_setting(make, settings, telling(progress, EXACTNESS))
        return StrictChoice(setting=setting, widths=widths)

    return _kept(config, _unopened(config), StrictChoice, measure)


def own_strict(config: EngineConfig, target: Opened, progress: Tell) -> StrictChoice:
    """The same for an engine with one setting: in the context that the model was opened with.

    What was measured in a smaller one is measured again, unless no width was left.
    """
    model = target.model
    setting = Setting(kv=model.kv, flash_attention=model.flash_attention)
    if model.reach is not None:  # passes cannot be taken back to be compared
        return StrictChoice(setting=setting, widths=Widths())

    def measure() -> StrictChoice:
        return StrictChoice(setting=setting, widths=measure_widths(model, STRICT_PLAN, telling(progress, EXACTNESS)))

    def suits(known: StrictChoice) -> bool:
        measured = len(known.widths.contexts)
        return measured >= len(STRICT_PLAN.fitting(model.n_ctx)) or (measured > 0 and known.widths.group == 1)

    return _kept(config, key_of(config, target), StrictChoice, measure, suits)


def change_of_leads(config: EngineConfig, target: Opened, progress: Tell) -> Change | None:
    """How far wide passes change logits, for the verdict on greedy answers; None where that cannot be measured."""
    if target.model.reach is not None:
        return None  # passes cannot be taken back to be compared
    if (known := known_leads(config, target)) is not None:
        return known
    widths = measure_widths(target.model, LEADS_PLAN, telling(progress, EXACTNESS))
    keep_leads(config, target, widths)
    return widths.change if widths.contexts else None


def known_leads(config: EngineConfig, target: Opened) -> Change | None:
    """The same from an earlier measurement, if it was made in a context as large: leads change more in a longer one."""
    known = CalibrationStore(config.cache_dir).get(key_of(config, target), Widths)
    if known is None or not known.contexts or len(known.contexts) < len(LEADS_PLAN.fitting(target.model.n_ctx)):
        return None
    return known.change


def keep_leads(config: EngineConfig, target: Opened, widths: Widths) -> None:
    """For later loads."""
    CalibrationStore(config.cache_dir).put(key_of(config, target), widths)


def target_costs(config: EngineConfig, target: Opened, progress: Tell) -> CostBook:
    """What passes of the target cost here: all of them, or what the first answer needs and little more."""
    book = CostBook(target.model, CalibrationStore(config.cache_dir), key_of(config, target))
    told = telling(progress, SPEED)
    if config.calibrate == "load":
        widths, seconds = book.lacking(COST_WIDTHS), ALL_S
    elif widths := book.lacking(FIRST_WIDTHS):
        seconds = FIRST_S
    else:
        widths, seconds = book.lacking(COST_WIDTHS), MORE_S  # for programs that never are idle
    if widths:
        book.measure_now(widths, told, seconds)
    return book


def draft_costs(config: EngineConfig, target: Opened, draft: Opened, drafting: Model, progress: Tell) -> CostBook:
    """What passes of the draft cost here, seen as it drafts: `drafting` may be a map around it."""
    key = key_of(config, draft)
    if drafting is not draft.model:
        key = msgspec.structs.replace(key, file=f"{key.file}, mapped to {key_of(config, target).file}")
    book = CostBook(drafting, CalibrationStore(config.cache_dir), key)
    if first := book.lacking(DRAFT_WIDTHS[:1] if config.calibrate == "idle" else DRAFT_WIDTHS):
        book.measure_now(first, telling(progress, SPEED), FIRST_S)
    return book


def fastest_flash_attention(config: EngineConfig) -> FlashChoice | None:
    """What an earlier run found to be fastest for the target, where the user and exactness leave that open."""
    return CalibrationStore(config.cache_dir).get(_unopened(config), FlashChoice) if leaves_flash_open(config) else None


def leaves_flash_open(config: EngineConfig) -> bool:
    """Whether flash attention may be chosen by speed alone."""
    return config.flash_attention == "auto" and config.exact == "normal" and config.kv in (None, "f16")


def flash_trial(config: EngineConfig, target: Opened) -> FlashTrial | None:
    """The comparison of both settings; None where there is no choice, or it has been made."""
    if target.engine != "llamacpp" or not leaves_flash_open(config) or fastest_flash_attention(config):
        return None
    from engine.backends.llamacpp import LlamaCppModel

    model = target.model
    assert isinstance(model, LlamaCppModel)
    other: Switch = "off" if model.flash_attention == "on" else "on"
    store, key = CalibrationStore(config.cache_dir), _unopened(config)

    def beside(n_ctx: int) -> Model:
        return model.beside(other, n_ctx)

    return FlashTrial(model.flash_attention, beside, lambda choice: store.put(key, choice))


def let_shift(config: EngineConfig, opened: Opened, progress: Tell) -> None:
    """Let a model of llama.cpp's shift its cache where that is right."""
    if opened.engine != "llamacpp":
        return
    from engine.backends.llamacpp import LlamaCppModel

    model = opened.model
    assert isinstance(model, LlamaCppModel)

    def measure() -> Shift:
        progress(Loading(what="trying the cache, once", share=0.0))
        return Shift(right=model.try_shift())

    model.shifts = _kept(config, key_of(config, opened), Shift, measure).right


def early_exit(config: EngineConfig, target: Opened, cost: Cost, progress: Tell) -> tuple[ExitPoint | None, str]:
    """Where the target is to be left, None: nowhere, and a sentence for the user; `cost` is that of whole passes.

    ConfigError where it has fewer layers than asked for.
    """
    model, asked = target.model, config.exit_layers or 0
    if model.reach is not None or not leaves_early(model):
        return None, "early exit is not used: this model has no layers to leave after, or a cache that cannot go back"
    if asked >= model.layers:
        inside = f"take --exit-layers 1 to {model.layers - 1}, or auto"
        raise ConfigError(f"the target has {model.layers} layers, so after {asked} there is no early exit: {inside}")
    tried = sorted({*exits(model.layers), *([asked] if asked else [])})
    table = _kept(
        config,
        key_of(config, target),
        ExitTable,
        lambda: measure_exit(model, tried, telling(progress, SPEED)),
        lambda known: all(known.at(number) for number in tried),
    )
    return choose(table, asked, model.layers, cost)


def lessons(config: EngineConfig, target: Opened, draft: Opened | None) -> Lessons:
    """Where this pair's lessons are kept."""
    return Lessons(CalibrationStore(config.cache_dir), key_of(config, target), key_of(config, draft) if draft else None)


def key_of(config: EngineConfig, opened: Opened) -> Key:
    """All that a measurement of an opened model depends on."""
    model = opened.model
    return msgspec.structs.replace(
        key_for(model.file, opened.library, model.device, model.threads),
        engine=opened.engine,
        weights=opened.weights,
        gpu_layers=config.gpu_layers,
        kv=model.kv,
        flash_attention=model.flash_attention,
    )


def _kept(
    config: EngineConfig,
    key: Key,
    kind: type[Kept],
    measure: Callable[[], Kept],
    suits: Callable[[Kept], bool] = lambda _: True,
) -> Kept:
    store = CalibrationStore(config.cache_dir)
    if (known := store.get(key, kind)) is not None and suits(known):
        return known
    found = measure()
    if not (isinstance(found, ExitTable) and not found.steady):
        store.put(key, found)
    return found


def _unopened(config: EngineConfig) -> Key:
    """The key of what is measured over several settings of llama.cpp's."""
    from engine.backends.llamacpp_library import gpu_name

    threads = config.threads or physical_cores()
    try:
        key = key_for(config.target, llamacpp_library(), (config.gpu_layers and gpu_name()) or "cpu", threads)
    except OSError as error:
        raise LoadFailed(f"there is no model file {config.target}: check the path") from error
    return msgspec.structs.replace(
        key, gpu_layers=config.gpu_layers, kv=config.kv, flash_attention=config.flash_attention
    )
