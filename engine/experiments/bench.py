"""How fast answers come, by kind of text: off, fixed lengths and auto in turns, on one loaded pair.

The one invariant: every run finds all of the prompt but its last token in both caches, and knows what was known before
this prompt was first answered.  An answer that is not counted reads it; so what reading costs, in either model, has no
part in any figure, and no run is planned by one that said the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.acceptance import Learned
from engine.config import MAX_DRAFT, Message, Request, Speculation
from engine.costs import FREE
from engine.drafters.lookup import LookupDrafter
from engine.engine import Engine
from engine.errors import ModelError
from engine.events import Finished, Round
from engine.experiments.bench_plan import Plan, name
from engine.experiments.bench_prompts import KINDS
from engine.experiments.bench_records import Run, Working
from engine.experiments.hindsight import hindsight, right_offers
from engine.experiments.theory import Drafted, predicted
from engine.experiments.turns import order
from engine.stats import Answer

READS = Speculation(mode="fixed", length=1)
"""How a prompt is read before its runs: a draft model reads it only when it drafts."""


@dataclass(slots=True)
class Played:
    """An answer with its rounds."""

    answer: Answer
    rounds: list[Round] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)


def bench(engine: Engine, plan: Plan) -> Iterator[Working | Run]:
    """Each run as it ends, kind by kind.  ModelError where the pair cannot draft."""
    if not engine.pair.can_draft:
        raise ModelError("nothing is drafted with this model, so there is nothing to compare: take another pair")
    done = 0
    for kind in plan.kinds:
        for number in range(len(KINDS[kind].prompts)):
            known = engine.learned
            for temperature in plan.temperatures:
                for run in _Cell(engine, plan, kind, number, temperature, known).runs():
                    yield Working(what=_what(kind, temperature), share=done / plan.work)
                    if run is not None:
                        done += plan.most(kind)
                        yield run


def _what(kind: str, temperature: float) -> str:
    return f"{kind}, {f'T {temperature:g}' if temperature else 'greedy'}"


@dataclass(frozen=True, slots=True)
class _Cell:
    """One prompt at one temperature."""

    engine: Engine
    plan: Plan
    kind: str
    number: int
    temperature: float
    known: Learned

    def runs(self) -> Iterator[Run | None]:
        """None before anything is read, then each run."""
        yield None
        modes = self.plan.modes
        most = self.plan.most(self.kind)
        self._play(READS, 2)
        for turn in range(self.plan.turns):
            for side in order(len(modes), turn):
                yield self._run(turn, modes[side], self._play(modes[side], most))

    def _play(self, speculation: Speculation, most: int) -> Played:
        text = KINDS[self.kind].prompts[self.number]
        self.engine.learned = self.known
        return play(
            self.engine,
            Request(
                messages=(Message(role="user", content=text),),
                sampling=self.plan.at(self.temperature),
                speculation=speculation,
                max_tokens=most,
            ),
        )

    def _run(self, turn: int, speculation: Speculation, played: Played) -> Run:
        spec = played.answer.speculation
        return Run(
            kind=self.kind,
            prompt=self.number,
            temperature=self.temperature,
            mode=name(speculation),
            turn=turn,
            tps=played.answer.timings.decode_tps or None,
            emitted=len(played.answer.ids),
            rounds=spec.rounds,
            drafted=spec.drafted,
            accepted=spec.accepted,
            hindsight=_best(self.engine, played),
            predicted=_expected(self.engine, played),
            plan=spec.plan,
        )


def play(engine: Engine, request: Request) -> Played:
    """One answer to its end."""
    rounds: list[Round] = []
    for event in engine.answer(request):
        if isinstance(event, Round):
            rounds.append(event)
        elif isinstance(event, Finished):
            prompt = engine.context.ids[: event.answer.cache.prompt_tokens]
            return Played(event.answer, rounds, prompt)
    raise AssertionError("an answer ends with Finished or an error")


def _best(engine: Engine, played: Played) -> float | None:
    """What a perfect planner would have gained with lookup alone, within what this pair can draft."""
    pair = engine.pair
    limits = [pair.target.reach, None if pair.width_limit is None else pair.width_limit - 1]
    most = min([MAX_DRAFT, *(limit for limit in limits if limit is not None)])
    right = right_offers(LookupDrafter(pair.target.vocab.eog), played.prompt, played.answer.ids, most)
    return hindsight(len(played.prompt), right, pair.costs.target)


def _expected(engine: Engine, played: Played) -> float | None:
    """What theory says of these rounds."""
    costs = engine.pair.costs
    rounds = [
        Drafted(
            length=one.drafted,
            draft_ms=costs.drafts.get(one.source, FREE).net if one.source else 0.0,
            context=one.context - one.emitted,
        )
        for one in played.rounds
    ]
    return predicted(rounds, played.answer.speculation.acceptance_per_test, costs.target)
