"""From a config to a loaded pair: open the models, see whether they fit, and measure what this machine makes of them.

A draft that cannot be used never stops a chat unless the caller asked for that: the target goes on alone and the notes
say why.
"""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from engine import measured, pairing
from engine.config import EngineConfig
from engine.costs import Cost
from engine.engines import TITLES, Runs, engines_for
from engine.errors import LoadFailed, PairMismatch
from engine.exit_table import ExitPoint
from engine.flash import Switch
from engine.mapped import MappedModel
from engine.measured import StrictChoice
from engine.model import Model
from engine.opening import Opened, Tell, open_model, telling
from engine.pair import Pair
from engine.study import Study
from engine.token_map import TokenMap
from engine.verdict import Change


def load_pair(config: EngineConfig, progress: Tell) -> Pair:
    """The pair that `config` names; raises LoadFailed, PairMismatch or ConfigError."""
    started = time.perf_counter()
    pair = _demo() if config.backend == "demo" else _Loader(config, progress).load()
    pair.load_s = time.perf_counter() - started
    return pair


def _demo() -> Pair:
    from engine.backends.demo import COSTS, demo_pair

    target, draft = demo_pair()
    return Pair(target, draft, "demo-target", "demo-draft", device="demo", costs=COSTS, change=Change())


class _Loader:
    """Loads one pair; what was opened is closed where that fails."""

    def __init__(self, config: EngineConfig, progress: Tell) -> None:
        self._config, self._progress = config, progress
        self._engines = engines_for(config)
        self._notes: list[str] = []
        self._opened = ExitStack()

    def load(self) -> Pair:
        """The pair."""
        with self._opened:
            strict = self._strict_setting()
            target = self._open(self._config.target, self._engines.target, "target", flash=self._fastest_flash())
            if self._config.exact == "strict":
                strict = strict or measured.own_strict(self._config, target, self._progress)
                self._notes.append(strict.price)
            draft, token_map = self._draft(target)
            pair = self._pair(target, draft, token_map, strict)
            self._opened.pop_all()
        return pair

    def _strict_setting(self) -> StrictChoice | None:
        """Where strict exactness chooses how the target is opened, its choice, which is taken."""
        if self._config.exact != "strict" or self._engines.target != "llamacpp":
            return None
        strict = measured.best_strict(self._config, self._progress)
        kv, flash_attention = strict.setting.kv, strict.setting.flash_attention
        self._config = msgspec.structs.replace(self._config, kv=kv, flash_attention=flash_attention)
        return strict

    def _fastest_flash(self) -> Switch | None:
        """Flash attention for the target, where an earlier run has found out what is faster."""
        if self._engines.target != "llamacpp" or (found := measured.fastest_flash_attention(self._config)) is None:
            return None
        return found.flash_attention

    def _open(
        self, path: Path, engine: Runs, what: str, n_ctx_most: int | None = None, flash: Switch | None = None
    ) -> Opened:
        config = msgspec.structs.replace(self._config, flash_attention=flash) if flash else self._config
        opened = open_model(config, path, engine, telling(self._progress, what), n_ctx_most)
        self._opened.callback(opened.model.close)
        return opened

    def _draft(self, target: Opened) -> tuple[Opened | None, TokenMap | None]:
        """The draft, if there is one that fits, and the map that it needs."""
        path, engine = self._config.draft, self._engines.draft
        if path is None or engine is None:
            return None, None
        try:  # its context is the target's, or what it was trained for
            draft = self._open(path, engine, "draft", n_ctx_most=target.model.n_ctx)
        except LoadFailed as error:
            if self._config.require_draft:
                raise
            self._notes.append(f"the draft model is not used: {error}")
            return None, None
        fit = pairing.compare(target.model.vocab, draft.model.vocab)
        if fit.kind == "none":
            name = self._config.target.name
            self._refuse(
                draft, f"{path.name} cannot draft for {name}: {fit.reason}; take another draft, or --draft none"
            )
            return None, None
        if fit.kind == "map":
            self._notes.append(f"the draft has another vocabulary, so drafts go through a map: {fit.overlap}")
        if engine != target.engine:
            self._notes.append(f"the draft model runs on {TITLES[engine]}, the target on {TITLES[target.engine]}")
        return draft, fit.map

    def _refuse(self, draft: Opened, reason: str) -> None:
        if self._config.require_draft:
            raise PairMismatch(reason)
        draft.model.close()
        self._notes.append(reason)

    def _early_exit(self, target: Opened, cost: Cost) -> ExitPoint | None:
        """Where the target is to be left, if anywhere."""
        if self._config.exit_layers is None:
            return None
        if self._config.exact == "strict":  # what left early ran in passes of one, the rest of it in a wider one
            self._notes.append("early exit is not used: in strict exactness all layers run in passes of one width")
            return None
        point, note = measured.early_exit(self._config, target, cost, self._progress)
        self._notes.append(note)
        return point

    def _study(
        self, target: Opened, draft: Opened | None, drafting: Model | None, strict: StrictChoice | None
    ) -> Study:
        """Measure what is needed now; what is left comes while the engine is idle."""
        config, progress = self._config, self._progress
        book = measured.target_costs(config, target, progress)
        draft_book = None
        if draft and drafting:
            draft_book = measured.draft_costs(config, target, draft, drafting, progress)
        study = Study(book, draft_book, None, measured.flash_trial(config, target))
        if strict:
            return study
        if config.calibrate == "load":
            study.change = measured.change_of_leads(config, target, progress)
        elif (known := measured.known_leads(config, target)) is not None:
            study.change = known
        else:
            study.keep_leads = partial(measured.keep_leads, config, target)
        return study

    def _pair(
        self, target: Opened, draft: Opened | None, token_map: TokenMap | None, strict: StrictChoice | None
    ) -> Pair:
        """Measure both, and put together what is known."""
        config, progress, model = self._config, self._progress, target.model
        drafting: Model | None = draft.model if draft else None
        if draft and token_map:
            drafting = MappedModel(draft.model, token_map)
        study = self._study(target, draft, drafting, strict)
        costs = study.costs
        early = self._early_exit(target, lambda width: costs.target(width, 0))
        if early:
            costs = replace(costs, drafts={**costs.drafts, "exit": early.cost})
        if not strict:  # which reads again what would move
            for opened in filter(None, (target, draft)):
                measured.let_shift(config, opened, progress)
        return Pair(
            model,
            drafting,
            config.target_name or _name(config.target),
            (config.draft_name or _name(config.draft)) if draft and config.draft else None,
            exact=config.exact,
            engine=target.engine,
            weights=target.weights,
            kv=model.kv,
            flash_attention=model.flash_attention,
            threads=model.threads,
            device=model.device,
            costs=costs,
            width_limit=strict.widths.group if strict else None,
            change=study.change,
            study=study,
            exit_layers=early.layers if early else None,
            exit_agreement=early.agreement if early else None,
            lessons=measured.lessons(config, target, draft),
            key=measured.key_of(config, target),
            notes=self._notes,
        )


def _name(path: Path) -> str:
    """How reports call a model: a folder's name may hold dots."""
    return path.name if path.is_dir() else path.stem
