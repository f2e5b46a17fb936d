"""From a config to a loaded pair: open the files, see whether they fit, and measure what this machine makes of them.

A draft that cannot be used never stops a chat unless the caller asked for that: the target goes on alone and the notes
say why.
"""

import time
from collections.abc import Callable
from pathlib import Path

from engine import pairing
from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.config import EngineConfig
from engine.errors import LoadFailed, PairMismatch
from engine.events import Loading
from engine.pair import Pair

Tell = Callable[[Loading], None]


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
    return Pair(target, draft, "demo-target", "demo-draft", device="demo")


def _llamacpp(config: EngineConfig, progress: Tell) -> Pair:
    target = _open(config, config.target, "target", progress)
    notes: list[str] = []
    draft = None
    try:
        if config.draft is not None:
            draft = _draft(config, config.draft, target, progress, notes)
    except BaseException:
        target.close()
        raise
    return Pair(
        target,
        draft,
        config.target_name or config.target.stem,
        (config.draft_name or config.draft.stem) if draft and config.draft else None,
        exact=config.exact,
        kv=target.kv,
        flash_attention=target.flash_attention,
        threads=target.threads,
        device=target.device,
        notes=notes,
    )


def _open(config: EngineConfig, path: Path, what: str, progress: Tell) -> LlamaCppModel:
    options = LlamaCppOptions(
        path=path,
        n_ctx=config.n_ctx,
        threads=config.threads,
        gpu_layers=config.gpu_layers,
        kv=config.kv or "f16",
        flash_attention=config.flash_attention,
    )
    return LlamaCppModel(options, lambda share: progress(Loading(what=what, share=share)))


def _draft(
    config: EngineConfig, path: Path, target: LlamaCppModel, progress: Tell, notes: list[str]
) -> LlamaCppModel | None:
    """The draft, if it fits; its context is the target's, or its own where that is smaller."""
    draft = _open(config, path, "draft", progress)
    fit = pairing.compare(target.vocab, draft.vocab)
    if fit.fits:
        return draft
    draft.close()
    message = f"{path.name} cannot draft for {config.target.name}: {fit.reason}; take another draft, or --draft none"
    if config.require_draft:
        raise PairMismatch(message)
    notes.append(message)
    return None


