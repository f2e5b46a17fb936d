"""What this machine makes of an opened model: measured once, and kept under all that it depends on.

The one invariant: a measurement is taken back only for the same bytes on the same engine, versions, device and setting.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from engine.calibration import (
    COST_WIDTHS,
    LEADS_PLAN,
    STRICT_PLAN,
    CostTable,
    Setting,
    Widths,
    candidates,
    measure_costs,
    measure_widths,
    strict_setting,
)
from engine.calibration_store import CalibrationStore, Key, key_for
from engine.config import EngineConfig, Frozen
from engine.costs import Cost, Costs, DraftCost
from engine.early import leaves_early
from engine.errors import ConfigError, LoadFailed
from engine.events import Loading
from engine.exit_table import ExitPoint, ExitTable, choose, exits, measure_exit
from engine.lessons import Lessons
from engine.model import Model
from engine.opening import Opened, Tell, llamacpp_library, open_model, telling
from engine.stats import Source
from engine.threads import physical_cores
from engine.verdict import Change

Kept = TypeVar("Kept", bound=Frozen)
STRICT_CTX = 2048
"""Context in which widths are compared where a model is opened for that alone: it holds the longest stretch that is."""
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
    """How far wide passes change logits, for the verdict on greedy answers.

    What was measured in a smaller context is measured again, as leads change more in a longer one.
    """
    model = target.model
    if model.reach is not None:
        return None  # passes cannot be taken back to be compared
    contexts = LEADS_PLAN.fitting(model.n_ctx)
    widths = _kept(
        config,
        key_of(config, target),
        Widths,
        lambda: measure_widths(model, LEADS_PLAN, telling(progress, EXACTNESS)),
        lambda known: len(known.contexts) >= len(contexts),
    )
    return widths.change if widths.contexts else None


def costs(config: EngineConfig, target: Opened, draft: Opened | None, progress: Tell) -> Costs:
    """What passes of both cost here."""

    def table(opened: Opened, widths: tuple[int, ...]) -> CostTable:
        told = telling(progress, SPEED)
        return _kept(
            config,
            key_of(config, opened),
            CostTable,
            lambda: measure_costs(opened.model, widths, told),
            lambda known: known.ms.keys() >= set(widths),  # a model that was a draft before has fewer
        )

    drafts: dict[Source, DraftCost] = {}
    if draft:
        drafts["model"] = DraftCost(table(draft, COST_WIDTHS[:1]).cost(1))
    measured = table(target, COST_WIDTHS)
    return Costs(lambda width, _: measured.cost(width), drafts)


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
    if not (isinstance(found, CostTable | ExitTable) and not found.steady):
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
