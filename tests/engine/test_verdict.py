"""The verdict on a greedy answer: a near tie is reported where it is, a clean answer is not, and nothing is hidden."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.backends.toy import ToyLM, ToyModel, ToyVocabulary
from engine.calibration import WidthPlan, measure_widths
from engine.config import Sampling
from engine.context import common_prefix
from engine.engine import Engine
from engine.model import FloatArray
from engine.stats import Verdict
from engine.verdict import Change, Leads
from tests.fakes import FaultyModel, engine_of, fixed, last, request

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
END = 15
GREEDY = Sampling(temperature=0)


class LeadLM(ToyModel):
    """Says 0, 1, 2, ... after the prompt, each ahead of token 14 by `leads` at its place (else 9), and then ends."""

    def __init__(self, leads: dict[int, float], length: int = 10) -> None:
        super().__init__(ToyVocabulary.letters(END + 1, eog=[END]))
        self.leads, self.answer_length = leads, length

    def row(self, ids: Sequence[int]) -> FloatArray:
        at = len(ids) - len(PROMPT)
        out = np.full(self.vocab.size, -30, np.float32)
        out[at if at < self.answer_length else END] = 20
        out[14] = 20 - self.leads.get(at, 9.0)
        return out


def verdict(leads: dict[int, float], length: int = 3, **options: object) -> Verdict:
    engine = engine_of(LeadLM(leads), LeadLM(leads), change=Change(lead=0.5))
    return last(engine.answer_ids(PROMPT, request(GREEDY, fixed(length), **options))).verdict  # type: ignore[arg-type]


def test_a_clean_answer_is_clear() -> None:
    assert verdict({}) == Verdict(kind="clear", threshold=0.5)


@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_near_tie_is_named_wherever_it_is(at: int, length: int) -> None:
    assert verdict({at: 0.4}, length) == Verdict(kind="near_ties", threshold=0.5, near_ties=[at])


def test_the_token_that_ends_the_answer_counts() -> None:
    assert verdict({10: 0.3, 2: 0.1}).near_ties == [2, 10]


def test_tokens_past_the_end_of_an_answer_do_not_count() -> None:
    assert verdict({7: 0.1}, 3, max_tokens=6).kind == "clear"
    # the stop is complete with token 4; token 5 and 6 were drafted and verified with it
    assert verdict({5: 0.1}, 6, stop=("e",)).kind == "clear"
    assert verdict({4: 0.1}, 6, stop=("e",)).near_ties == [4]


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_a_token_drawn_after_an_end_that_was_drafted_does_not_count(length: int) -> None:
    """Where the end is the last draft of a round, its row gives one more token."""
    for answer in range(1, 10):
        model = LeadLM({answer + 1: 0.1}, answer)
        engine = engine_of(model, LeadLM({}, answer), change=Change(lead=0.5))
        assert last(engine.answer_ids(PROMPT, request(GREEDY, fixed(length)))).verdict.kind == "clear"


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("snapshots", [None, 4])
def test_a_near_tie_that_a_stop_cut_off_is_named(at: int, snapshots: int | None) -> None:
    """Though the cache was taken back behind it: by plain passes the answer might not have stopped there."""
    model = LeadLM({at: 0.1})
    if snapshots is not None:
        model.kind, model.snapshots = "recurrent", snapshots
    engine = engine_of(model, LeadLM({}), change=Change(lead=0.5))
    events = engine.answer_ids(PROMPT, request(GREEDY, fixed(0), stop=("abcdef"[at],)))
    for _ in range(1 + 2 * at):  # one Reading, then two events a round
        next(events)
    engine._planner.speculation = fixed(3)  # type: ignore[union-attr]
    answer = last(events)
    assert (len(answer.ids), answer.verdict.near_ties) == (at, [at])


def test_a_lead_of_the_threshold_is_clear() -> None:
    assert verdict({4: 0.5}).kind == "clear"


def test_without_drafts_all_is_identical_and_after_them_nothing_is() -> None:
    leads = {1: 0.1}
    engine = engine_of(LeadLM(leads), LeadLM(leads), change=Change(lead=0.5))
    off, on = request(GREEDY, fixed(0), max_tokens=4), request(GREEDY, fixed(2), max_tokens=4)
    assert last(engine.answer_ids(PROMPT, off)).verdict.kind == "identical"
    assert last(engine.answer_ids(PROMPT, on)).verdict.near_ties == [1]
    later = last(engine.answer_ids([*engine.context.ids, 4, 5], off))
    assert (later.verdict.kind, later.speculation.drafted) == ("clear", 0)


def test_only_tokens_from_the_first_wide_pass_on_are_judged() -> None:
    leads = {1: 0.1, 6: 0.1}
    engine = engine_of(LeadLM(leads), LeadLM(leads), change=Change(lead=0.5))
    events = engine.answer_ids(PROMPT, request(GREEDY, fixed(0)))
    for _ in range(7):  # one Reading, then two events a round
        next(events)
    engine._planner.speculation = fixed(2)  # type: ignore[union-attr]
    assert last(events).verdict.near_ties == [6]


def test_what_is_not_measured_or_not_greedy_is_said_so() -> None:
    engine = engine_of(ToyLM(16), ToyLM(16, blur=0.3))
    assert last(engine.answer_ids(PROMPT, request(GREEDY, fixed(2)))).verdict.kind == "unmeasured"
    assert last(engine.answer_ids(PROMPT, request(Sampling(), fixed(2)))).verdict.kind == "not_greedy"


def test_nothing_is_claimed_of_a_cache_that_was_moved() -> None:
    engine = engine_of(LeadLM({}), change=Change(lead=0.5))
    off = request(GREEDY, fixed(0), max_tokens=4)
    assert last(engine.answer_ids(PROMPT, off)).verdict.kind == "identical"
    engine.context.forget(2, 4)
    moved = last(engine.answer_ids([*PROMPT[:2], *PROMPT[4:], 0, 1, 2, 3, 7, 8], off))
    assert moved.cache.target.reused > 2
    assert moved.verdict.kind == "unmeasured"
    assert last(engine.answer_ids(PROMPT, off)).verdict.kind == "identical"


LOGITS = st.floats(-20, 20)
CHANGES = st.floats(-1, 1)


@given(
    logits=st.tuples(LOGITS, LOGITS),
    changes=st.tuples(CHANGES, CHANGES),
    used=st.tuples(st.booleans(), st.booleans()),
    penalty=st.sampled_from([0.5, 0.9, 1.0, 1.1, 1.3, 2.0]),
)
def test_only_a_near_tie_can_fall_the_other_way(
    logits: tuple[float, float], changes: tuple[float, float], used: tuple[bool, bool], penalty: float
) -> None:
    def lead(values: Sequence[float]) -> float:
        first, second = (
            (value / penalty if value > 0 else value * penalty) if old else value
            for value, old in zip(values, used, strict=True)
        )
        return first - second

    moved = [value + change for value, change in zip(logits, changes, strict=True)]
    assume(all(value * after > 0 for value, after in zip(logits, moved, strict=True)))
    change = Change(lead=abs(changes[0] - changes[1]), logit=max(map(abs, changes)))
    sampling = Sampling(temperature=0, repeat_penalty=penalty)
    for now, then in ((lead(logits), lead(moved)), (lead(moved), lead(logits))):
        if now > 0 > then:
            leads = Leads()
            leads.note(0, [now * 0.999])
            assert leads.verdict(change, sampling).near_ties == [0]


def test_without_a_penalty_the_lead_alone_counts() -> None:
    leads = Leads()
    leads.note(0, [0.6, 0.4])
    found = leads.verdict(Change(lead=0.5, logit=3.0), Sampling(temperature=0))
    assert (found.threshold, found.near_ties) == (0.5, [1])
    assert Change(lead=0.5, logit=1.0).threshold(Sampling(repeat_penalty=2.0)) == 0.5 * 2 + 1.0 * (2 - 0.5)


class Rounding(ToyLM):
    """Passes over several tokens move each logit a little, as sums in another order do."""

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        out = super().forward(tokens, rows)
        if len(tokens) > 1 and rows:
            rng = np.random.default_rng([len(tokens), self.length, *self._cells[-4:]])
            out += rng.uniform(-0.01, 0.01, out.shape).astype(np.float32)
        return out


def test_a_text_changes_only_at_a_place_that_the_verdict_names() -> None:
    changed = clear = 0
    for seed in range(60):
        widths = measure_widths(Rounding(24, seed=seed), WidthPlan(widths=(2, 4), contexts=(40, 250), leads=True))
        assert 0.015 < widths.change.lead <= 0.0401
        off, on = (
            last(
                engine_of(Rounding(24, seed=seed), ToyLM(24, seed=seed, blur=0.1), change=widths.change).answer_ids(
                    PROMPT, request(GREEDY, fixed(length), max_tokens=40)
                )
            )
            for length in (0, 3)
        )
        clear += on.verdict.kind == "clear"
        if on.ids != off.ids:
            changed += 1
            assert common_prefix(on.ids, off.ids) in on.verdict.near_ties
    assert changed > 3
    assert clear > 12


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("lasting", [False, True])
def test_an_answer_goes_on_without_a_draft_that_fails(at: int, after: bool, lasting: bool) -> None:
    from engine.errors import DecodeFailed

    draft = FaultyModel(
        ToyLM(24, blur=0.2), error=lambda: DecodeFailed("the context is full"), after=after, lasting=lasting
    )
    engine = engine_of(ToyLM(24), draft)
    draft.at = at
    want = last(engine_of(ToyLM(24)).answer_ids(PROMPT, request(GREEDY, fixed(0)))).ids
    got = last(engine.answer_ids(PROMPT, request(GREEDY, fixed(2))))
    assert got.ids == want
    assert sum("draft model failed" in note for note in got.notes) == 1
    held(engine)
    draft.lasting = False
    again = last(engine.answer_ids([*PROMPT, *got.ids, 1], request(GREEDY, fixed(2))))
    assert again.speculation.by_source["model"].drafted > 0


def held(engine: Engine) -> None:
    for cache in engine.context.caches:
        inner = cache.model.inner if isinstance(cache.model, FaultyModel) else cache.model
        assert inner._cells[: cache.length] == engine.context.ids[: cache.length]  # type: ignore[attr-defined]
