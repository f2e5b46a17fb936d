"""One test by counting: thousands of answers to one prompt, each from a seed of its own, against the chances.

The invariant: what is expected follows from rows and ids alone, position by position, as it would with speculation
off; nothing that drafts or verifies has a part in it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from engine.config import Request, Rule, Sampling, Speculation
from engine.engine import Engine
from engine.events import Finished, Round
from engine.experiments.goodness import Fit, fit, fit_share, kept_share, redraw_bias
from engine.experiments.prove_plan import Prompt, Setting
from engine.experiments.prove_records import Counted, DraftKind
from engine.experiments.replay import Replayed
from engine.sampler import Sampler
from engine.sampling import Distribution, one_hot

END = -1
"""Stands for whatever ended an answer: end-of-generation tokens are not among its ids."""
_TELL_EVERY = 50
"""Answers between two reports of how far a test is."""

Tokens = tuple[int, ...]
Chances = Callable[[Tokens], Distribution]


@dataclass(frozen=True, slots=True)
class Side:
    """A drafter, and an engine over replayed models that has no other."""

    kind: DraftKind
    engine: Engine
    target: Replayed
    draft: Replayed | None
    """None for lookup."""

    def kept_share(self, rule: Rule, sampling: Sampling, prompt: Prompt) -> float:
        """How often this rule should keep the first draft behind the prompt."""
        return kept_share(rule, *self._first(sampling, prompt))

    def shows(self, sampling: Sampling, prompt: Prompt) -> float:
        """How well the first token behind the prompt shows a wrong rule."""
        return redraw_bias(*self._first(sampling, prompt))

    def _first(self, sampling: Sampling, prompt: Prompt) -> tuple[Distribution, Distribution]:
        """What the first token is drawn from, by the target and by the drafter."""
        target = distribution(self.target, sampling, prompt)
        return target, one_hot(prompt.guess) if self.draft is None else distribution(self.draft, sampling, prompt)


@dataclass(frozen=True, slots=True)
class Case:
    """What is tested; answer number n is made with the seed `seed` + n."""

    setting: Setting
    sampling: Sampling
    prompt: Prompt
    side: Side
    rule: Rule
    seed: int


@dataclass(slots=True)
class _Seen:
    """What came of the answers."""

    answers: Counter[Tokens]
    drafted: int = 0
    kept: int = 0


def distribution(model: Replayed, sampling: Sampling, prompt: Prompt, answer: Tokens = ()) -> Distribution:
    """What the next token after prompt and answer is drawn from."""
    sampler = Sampler(sampling, model.vocab.size, model.vocab.eog, len(prompt.ids))
    return sampler(model.row_after((*prompt.ids, *answer)), [*prompt.ids, *answer], ())


def count(case: Case, threshold: float) -> Iterator[int | Counted]:
    """Make the answers and compare them; now and then how many are made, at last the Counted."""
    seen = _Seen(Counter())
    for number in range(case.setting.rounds):
        if number % _TELL_EVERY == 0:
            yield number
        _play(case, case.seed + number, seen)
    yield _counted(case, seen, threshold)


def _play(case: Case, seed: int, seen: _Seen) -> None:
    """One answer of the engine."""
    request = Request(
        messages=(),
        sampling=msgspec.structs.replace(case.sampling, seed=seed),
        speculation=Speculation(mode="fixed", length=case.setting.length, rule=case.rule),
        max_tokens=case.setting.length + 1,
    )
    first: Round | None = None
    for event in case.side.engine.answer_ids(case.prompt.ids, request):
        if isinstance(event, Round):
            first = first or event
        elif isinstance(event, Finished):
            answer = event.answer
    seen.answers[*answer.ids, *([END] if answer.stop_kind == "eos" else [])] += 1
    if first and first.drafted:
        seen.drafted += 1
        seen.kept += first.accepted > 0


def _chances(case: Case, answer: Tokens) -> Distribution:
    """The chances of the next token after `answer`, all that ends it as one."""
    found = distribution(case.side.target, case.sampling, case.prompt, answer)
    ids = np.arange(found.probs.size) if found.ids is None else found.ids
    ends = np.isin(ids, list(case.side.target.vocab.eog))
    return Distribution(np.append(found.probs[ends].sum(), found.probs[~ends]), np.append(END, ids[~ends]))


def _fits(answers: Counter[Tokens], judged: int, chances: Chances) -> list[Fit]:
    """A fit for each of the first `judged` tokens, given the tokens before it."""
    fits = []
    for place in range(judged):
        after: defaultdict[Tokens, Counter[int]] = defaultdict(Counter)
        for answer, times in answers.items():
            if len(answer) > place:
                after[answer[:place]][answer[place]] += times
        fits.append(sum((fit(counts, chances(before)) for before, counts in after.items()), Fit()))
    return fits


def _counted(case: Case, seen: _Seen, threshold: float) -> Counted:
    share = case.side.kept_share(case.rule, case.sampling, case.prompt)
    fits = _fits(seen.answers, case.setting.judged, lambda answer: _chances(case, answer))
    p_values = {f"token {place}": found.p_value for place, found in enumerate(fits, 1)}
    p_values["kept"] = fit_share(seen.kept, seen.drafted, share).p_value
    return Counted(
        setting=case.setting.name,
        rule=case.rule,
        draft=case.side.kind,
        length=case.setting.length,
        rounds=case.setting.rounds,
        kept=seen.kept / max(1, seen.drafted),
        kept_expected=share,
        impossible=sum(found.impossible for found in fits),
        p_values=p_values,
        passed=seen.drafted > 0 and all(p is None or p >= threshold for p in p_values.values()),
    )
