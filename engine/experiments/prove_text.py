"""Answers with speculation on against the same with it off, as text: greedy, and sampled by a seed (coupled).

In strict exactness they are equal by construction; here it is seen whether they are.
"""

from collections.abc import Iterator, Sequence

from engine.config import Request, Sampling, Speculation
from engine.engine import Engine
from engine.events import Finished
from engine.experiments.parting import parting
from engine.experiments.prove_plan import Plan, messages
from engine.experiments.prove_records import Compared, Difference, Working
from engine.stats import Answer

SAMPLINGS = {"greedy": Sampling(temperature=0), "T 0.8, seed 7": Sampling(temperature=0.8, seed=7)}
OFF, AUTO = Speculation(mode="off"), Speculation()


def compare_texts(engine: Engine, plan: Plan) -> Iterator[Working | Compared]:
    """Each way to draft against none; a Compared each."""
    ways = [*(Speculation(mode="fixed", length=length) for length in _lengths(engine, plan)), AUTO]
    parts, done = len(SAMPLINGS) * (len(ways) + 1), 0
    for name, sampling in SAMPLINGS.items():
        off: list[Answer] = []
        for way in (OFF, *ways):
            answers: list[Answer] = []
            for turns in plan.texts:
                yield Working(what="comparing texts", share=(done + len(answers) / len(plan.texts)) / parts)
                answers.append(_answer(engine, turns, sampling, way, plan.tokens))
            done += 1
            if way is OFF:
                off = answers
            else:
                yield _compared(engine, name, way, list(zip(plan.texts, off, answers, strict=True)))


def _lengths(engine: Engine, plan: Plan) -> list[int]:
    """The fixed lengths that this pair can draft."""
    limits = [engine.pair.target.reach]
    limits += [None if engine.pair.width_limit is None else engine.pair.width_limit - 1]
    most = min((limit for limit in limits if limit is not None), default=max(plan.lengths))
    return [length for length in plan.lengths if length <= most]


def _answer(engine: Engine, turns: Sequence[str], sampling: Sampling, way: Speculation, tokens: int) -> Answer:
    request = Request(messages=messages(turns), sampling=sampling, speculation=way, max_tokens=tokens)
    *_, last = engine.answer(request)
    assert isinstance(last, Finished)
    return last.answer


def _compared(
    engine: Engine, sampling: str, way: Speculation, answers: Sequence[tuple[Sequence[str], Answer, Answer]]
) -> Compared:
    """`answers` are conversations, each with its answer without drafts and the one with them."""
    differ = [(turns[-1], off, on) for turns, off, on in answers if (off.ids, off.text) != (on.ids, on.text)]
    return Compared(
        sampling=sampling,
        mode="auto" if way.length is None else str(way.length),
        prompts=len(answers),
        tokens=sum(len(off.ids) for _, off, _ in answers),
        equal=len(answers) - len(differ),
        drafted=sum(on.speculation.drafted for _, _, on in answers),
        accepted=sum(on.speculation.accepted for _, _, on in answers),
        difference=_difference(engine, *differ[0]) if differ else None,
        passed=not differ,
    )


def _difference(engine: Engine, prompt: str, off: Answer, on: Answer) -> Difference:
    place = parting(engine.pair.target.vocab.piece, off.ids, on.ids)
    return Difference(prompt=prompt, token=place.token, off=place.off, on=place.on)
