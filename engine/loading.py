"""From a config to a loaded pair: open the files, see whether they fit, and measure what this machine makes of them.

A draft that cannot be used never stops a chat unless the caller asked for that: the target goes on alone and the notes
say why.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from engine import pairing
from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.llamacpp_library import cpu_features, gpu_name, library_version
from engine.calibration import (
    COST_WIDTHS,
    LEADS_PLAN,
    CostTable,
    Setting,
    Widths,
    candidates,
    measure_costs,
    measure_widths,
    strict_setting,
)
from engine.calibration_store import CalibrationStore, Key, key_for
from engine.config import CacheType, EngineConfig, FlashAttention, Frozen
from engine.costs import Costs
from engine.errors import LoadFailed, PairMismatch
from engine.events import Loading
from engine.mapped import MappedModel
from engine.pair import Pair
from engine.threads import physical_cores
from engine.token_map import TokenMap
from engine.verdict import Change

Tell = Callable[[Loading], None]
Kept = TypeVar("Kept", bound=Frozen)
STRICT_CTX = 2048
"""Context in which widths are compared: it holds the longest stretch that is."""


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


def load_pair(config: EngineConfig, progress: Tell) -> Pair:
    """The pair that `config` names; raises LoadFailed, PairMismatch or ConfigError."""
    started = time.perf_counter()
    pair = _demo() if _backend(config) == "demo" else _llamacpp(config, progress)
    pair.load_s = time.perf_counter() - started
    return pair


def _backend(config: EngineConfig) -> str:
    if config.backend == "torch" or (config.backend == "auto" and config.target.is_dir()):
        raise LoadFailed("the torch engine is not part of this version: take a GGUF file and --engine llamacpp")
    return config.backend


def _demo() -> Pair:
    from engine.backends.demo import demo_pair

    target, draft = demo_pair()
    return Pair(target, draft, "demo-target", "demo-draft", device="demo", change=Change())


def open_model(
    config: EngineConfig, path: Path, what: str, progress: Tell, n_ctx_most: int | None = None
) -> LlamaCppModel:
    """Open one file; with `n_ctx_most` the context asked for in `config` does not hold."""
    options = LlamaCppOptions(
        path=path,
        n_ctx=None if n_ctx_most else config.n_ctx,
        n_ctx_most=n_ctx_most,
        threads=config.threads,
        gpu_layers=config.gpu_layers,
        kv=config.kv or "f16",
        flash_attention=config.flash_attention,
    )
    return LlamaCppModel(options, _telling(progress, what))


def _llamacpp(config: EngineConfig, progress: Tell) -> Pair:
    notes: list[str] = []
    strict = _strict(config, progress) if config.exact == "strict" else None
    if strict:
        config = msgspec.structs.replace(config, kv=strict.setting.kv, flash_attention=strict.setting.flash_attention)
        notes.append(strict.price)
    target = open_model(config, config.target, "target", progress)
    draft, token_map = None, None
    try:
        if config.draft is not None:
            draft, token_map = _draft(config, config.draft, target, progress, notes)
        costs = _costs(config, target, draft, progress)
        change = None if strict else _change(config, target, progress)
        if not strict:  # which reads again what would move
            for model in filter(None, (target, draft)):
                _shift(config, model, progress)
    except BaseException:
        for model in filter(None, (target, draft)):
            model.close()
        raise
    return Pair(
        target,
        MappedModel(draft, token_map) if draft and token_map else draft,
        config.target_name or config.target.stem,
        (config.draft_name or config.draft.stem) if draft and config.draft else None,
        exact=config.exact,
        kv=target.kv,
        flash_attention=target.flash_attention,
        threads=target.threads,
        device=target.device,
        costs=costs,
        width_limit=strict.widths.group if strict else None,
        change=change,
        notes=notes,
    )


def _draft(
    config: EngineConfig, path: Path, target: LlamaCppModel, progress: Tell, notes: list[str]
) -> tuple[LlamaCppModel | None, TokenMap | None]:
    """The draft, if it fits, and the map that it needs; its context is the target's, or what it was trained for."""
    try:
        draft = open_model(config, path, "draft", progress, n_ctx_most=target.n_ctx)
    except LoadFailed as error:
        if config.require_draft:
            raise
        notes.append(f"the draft model is not used: {error}")
        return None, None
    try:
        fit = pairing.compare(target.vocab, draft.vocab)
        if fit.kind == "map":
            notes.append(f"the draft has another vocabulary, so drafts go through a map: {fit.overlap}")
        if fit.kind != "none":
            return draft, fit.map
        message = (
            f"{path.name} cannot draft for {config.target.name}: {fit.reason}; take another draft, or --draft none"
        )
        if config.require_draft:
            raise PairMismatch(message)
    except BaseException:
        draft.close()
        raise
    draft.close()
    notes.append(message)
    return None, None


def _strict(config: EngineConfig, progress: Tell) -> StrictChoice:
    """The cache type and flash attention with the widest group of passes that equal single ones; measured once."""

    def make(setting: Setting) -> LlamaCppModel:
        one = msgspec.structs.replace(config, kv=setting.kv, flash_attention=setting.flash_attention, n_ctx=None)
        return open_model(one, config.target, "target", lambda _: None, n_ctx_most=STRICT_CTX)

    def measure() -> StrictChoice:
        settings = candidates(config.kv, config.flash_attention)
        told = _telling(progress, "measuring exactness, once")
        setting, widths = strict_setting(make, settings, told)
        return StrictChoice(setting=setting, widths=widths)

    key = _key(config, config.target, kv=config.kv, flash_attention=config.flash_attention)
    return _kept(config, key, StrictChoice, measure)


def _change(config: EngineConfig, target: LlamaCppModel, progress: Tell) -> Change | None:
    """How far wide passes change logits, for the verdict on greedy answers; measured once.

    What was measured in a smaller context is measured again, as leads change more in a longer one.
    """
    if target.reach is not None:
        return None  # passes cannot be taken back to be compared
    contexts = LEADS_PLAN.fitting(target.n_ctx)
    key = _key(config, config.target, kv=target.kv, flash_attention=target.flash_attention)
    told = _telling(progress, "measuring exactness, once")
    widths = _kept(
        config,
        key,
        Widths,
        lambda: measure_widths(target, LEADS_PLAN, told),
        lambda known: len(known.contexts) >= len(contexts),
    )
    return widths.change if widths.contexts else None


def _shift(config: EngineConfig, model: LlamaCppModel, progress: Tell) -> None:
    """Let the model shift where that is right; tried once."""

    def measure() -> Shift:
        progress(Loading(what="trying the cache, once", share=0.0))
        return Shift(right=model.try_shift())

    key = _key(config, model.file, kv=model.kv, flash_attention=model.flash_attention)
    model.shifts = _kept(config, key, Shift, measure).right


def _costs(config: EngineConfig, target: LlamaCppModel, draft: LlamaCppModel | None, progress: Tell) -> Costs:
    """What passes of both cost here; measured once."""

    def table(model: LlamaCppModel, widths: tuple[int, ...]) -> CostTable:
        key = _key(config, model.file, kv=model.kv, flash_attention=model.flash_attention)
        told = _telling(progress, "measuring speed, once")
        return _kept(config, key, CostTable, lambda: measure_costs(model, widths, told))

    return Costs(table(target, COST_WIDTHS).cost, table(draft, COST_WIDTHS[:1]).cost(1) if draft else None)


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
    if not (isinstance(found, CostTable) and not found.steady):
        store.put(key, found)
    return found


def _key(config: EngineConfig, path: Path, kv: CacheType | None, flash_attention: FlashAttention) -> Key:
    threads = config.threads or physical_cores()
    try:
        build = f"{library_version()}; {cpu_features()}"
        key = key_for(path, build, (config.gpu_layers and gpu_name()) or "cpu", threads)
    except OSError as error:
        raise LoadFailed(f"there is no model file {path}: check the path") from error
    return msgspec.structs.replace(key, gpu_layers=config.gpu_layers, kv=kv, flash_attention=flash_attention)


def _telling(progress: Tell, what: str) -> Callable[[float], None]:
    return lambda share: progress(Loading(what=what, share=share))
