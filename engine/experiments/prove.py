"""Is what the engine emits the target's own distribution?  Tests by counting, then texts with speculation on and off.

The engine itself is tested, not a copy of its loop: over models whose rows are remembered (engine.experiments.replay)
it answers thousands of times for the price of some dozens of passes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.config import Rule, Sampling
from engine.engine import Engine, Rules, lossless
from engine.errors import ModelError
from engine.experiments.prove_count import Case, Side, count
from engine.experiments.prove_plan import Plan, Prompt, Setting, prompts, settings
from engine.experiments.prove_records import LEVEL, Compared, Counted, DraftKind, Report, Working
from engine.experiments.prove_text import compare_texts
from engine.experiments.replay import Replayed, Rows, noise
from engine.experiments.sabotage import sabotaged
from engine.pair import Pair

RULES: tuple[Rule, ...] = ("rejection", "coupled")
STAND_IN_NOISE = 1.5
"""Logits by which the target's rows are blurred where it has to be its own draft."""
_SEEDS = 2**24
"""How far apart the seeds of two tests begin."""

Event = Working | Counted | Compared | Report


def prove(pair: Pair, plan: Plan | None = None, rules: Rules = lossless) -> Iterator[Event]:
    """Test a loaded pair with these rules; the last event is the Report.  ModelError where nothing can be drafted."""
    if not pair.can_draft:
        raise ModelError("nothing is drafted with this model, so there is nothing to prove: take another pair")
    plan = plan or Plan(settings())
    counted: list[Counted] = []
    compared: list[Compared] = []
    for counting in _Counting(pair, plan, rules).run():
        yield counting
        if isinstance(counting, Counted):
            counted.append(counting)
    for comparing in compare_texts(Engine(pair, rules=rules), plan):
        yield comparing
        if isinstance(comparing, Compared):
            compared.append(comparing)
    yield _report(pair, plan, rules, counted, compared)


def _report(pair: Pair, plan: Plan, rules: Rules, counted: list[Counted], compared: list[Compared]) -> Report:
    p_values = [p for test in counted for p in test.p_values.values() if p is not None]
    return Report(
        passed=all(test.passed for test in counted) and all(test.passed for test in compared),
        target=pair.target_name,
        draft=pair.draft_name,
        sabotage=rules is sabotaged,
        width_limit=pair.width_limit,
        tests=len(p_values),
        level=LEVEL,
        threshold=plan.threshold,
        least=min(p_values, default=None),
        counted=counted,
        compared=compared,
        notes=list(pair.notes),
    )


class _Counting:
    """All tests by counting."""

    def __init__(self, pair: Pair, plan: Plan, rules: Rules) -> None:
        self._plan = plan
        self._vocab = pair.target.vocab
        self._prompts = {setting: prompts(self._vocab, setting.conversations) for setting in plan.settings}
        if not all(self._prompts.values()):
            raise ModelError("this model's prompts hold nothing twice, so lookup cannot be tested: take another model")
        self._rows = [Rows(model) for model in (pair.target, pair.draft) if model is not None]
        self._sides = [_side(pair, self._rows, draft, rules) for draft in (None, self._draft())]

    def _draft(self) -> Replayed:
        """The draft model, or the target itself with its logits blurred, where there is none."""
        if len(self._rows) > 1:
            return Replayed(self._rows[1])
        columns = self._rows[0].after([0]).size
        return Replayed(self._rows[0], noise(0, columns, STAND_IN_NOISE))

    def run(self) -> Iterator[Working | Counted]:
        """Each setting with each drafter and each rule."""
        tests = [(setting, side) for setting in self._plan.settings for side in self._sides]
        total = len(tests) * len(RULES)
        for number, (setting, side) in enumerate(tests):
            sampling, prompt = self._choose(setting, side)
            for done, rule in enumerate(RULES, number * len(RULES)):
                for event in count(Case(setting, sampling, prompt, side, rule, done * _SEEDS), self._plan.threshold):
                    if isinstance(event, Counted):
                        yield event
                    else:
                        yield Working(what="counting answers", share=(done + event / setting.rounds) / total)
            for rows in self._rows:  # a row is as wide as the vocabulary, and each test asks for others
                rows.forget({prompt.ids for known in self._prompts.values() for prompt in known})

    def _choose(self, setting: Setting, side: Side) -> tuple[Sampling, Prompt]:
        """The prompt on which a wrong rule would show most."""
        options = []
        for prompt in self._prompts[setting]:
            row = self._rows[0].after(prompt.ids)[: self._vocab.size]
            options.append((setting.sampling(row, prompt.guess), prompt))
        return max(options, key=lambda option: side.shows(*option))


def _side(pair: Pair, rows: Sequence[Rows], draft: Replayed | None, rules: Rules) -> Side:
    """An engine with this drafter alone; each has a target of its own, as no two contexts may share a cache."""
    target = Replayed(rows[0])
    kind: DraftKind = "lookup" if draft is None else "model" if len(rows) > 1 else "stand-in"
    alone = replace(pair, target=target, draft=draft, width_limit=None, exit_layers=None)
    return Side(kind, Engine(alone, rules=rules), target, draft)
