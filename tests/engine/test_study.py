"""Measured while nobody waits: whatever is interrupted, caches hold what they held, and what is known is kept."""

from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.calibration import Widths
from engine.calibration_store import CalibrationStore, Key
from engine.config import Request, Sampling
from engine.contention import Pace
from engine.cost_book import CostBook
from engine.cost_table import COST_WIDTHS, DRAFT_WIDTHS, FAR_WIDTHS, FIRST_WIDTHS
from engine.engine import Engine
from engine.errors import DecodeFailed, Interrupted, LoadFailed
from engine.events import Finished
from engine.flash import FlashChoice, FlashTrial
from engine.pair import Pair
from engine.stats import Answer
from engine.study import FAR_CONTEXT, Study
from tests.fakes import FakeClock

KEY = Key(file="f", library="l", cpu="c", device="cpu", threads=2)


class ThreadedLM(ToyLM):
    """Notes the threads that it is given."""

    threads = used = 2
    same_on_any_threads = True

    def use_threads(self, count: int) -> None:
        self.used = count


class Laboratory:
    """Two toys whose passes take a programmed time, and the study of them."""

    def __init__(self, folder: Path | None = None, n_ctx: int = 4096, flash: float | None = None) -> None:
        self.clock = FakeClock()
        self.target, self.draft = ToyLM(24, n_ctx, seed=5), ToyLM(24, n_ctx, seed=5, blur=0.4)
        self.clock.takes(self.target, lambda width: 0.01 + 0.001 * width)
        self.clock.takes(self.draft, lambda width: 0.002 + 0.0001 * width)
        store = CalibrationStore(folder)
        self.book = CostBook(self.target, store, KEY, self.clock)
        self.book.measure_now(FIRST_WIDTHS, lambda _: None, 100)
        self.drafting = CostBook(
            self.draft, store, Key(file="d", library="l", cpu="c", device="cpu", threads=2), self.clock
        )
        self.drafting.measure_now((1,), lambda _: None, 100)
        self.leads: list[Widths] = []
        self.chosen: list[FlashChoice] = []
        self.others: list[ToyLM] = []
        self.faster = flash
        trial = None if flash is None else FlashTrial("off", self.other, self.chosen.append, self.clock)
        self.study = Study(self.book, self.drafting, self.leads.append, trial)
        self.pair = Pair(self.target, self.draft, costs=self.study.costs, study=self.study)
        self.engine = Engine(self.pair, clock=self.clock)

    def other(self, n_ctx: int) -> ToyLM:
        if not self.faster:
            raise LoadFailed("no room")
        model = ToyLM(24, n_ctx)
        factor = self.faster
        self.clock.takes(model, lambda width: factor * (0.01 + 0.001 * width))
        self.others.append(model)
        return model

    def answer(self, prompt: Sequence[int], tokens: int = 12) -> Answer:
        request = Request(messages=(), sampling=Sampling(temperature=0), max_tokens=tokens)
        last = list(self.engine.answer_ids(prompt, request))[-1]
        assert isinstance(last, Finished)
        return last.answer

    def run(self) -> None:
        for _ in self.engine.study():
            pass


def lengths(lab: Laboratory) -> list[int]:
    return [lab.target.length, lab.draft.length]


def test_before_the_first_answer_everything_becomes_known(tmp_path: Path) -> None:
    lab = Laboratory(tmp_path)
    assert lab.pair.change is None
    lab.run()
    assert lab.pair.change is not None
    assert [widths.contexts for widths in lab.leads] == [(40, 250)]
    assert lab.book.table.at[0].keys() == set(COST_WIDTHS)
    assert lab.book.table.at[FAR_CONTEXT].keys() == set(FAR_WIDTHS)
    assert lab.drafting.table.at[0].keys() == set(DRAFT_WIDTHS)
    assert lab.pair.costs.target(64, 0) == pytest.approx(74)
    assert lab.pair.costs.reading["model"](8) == pytest.approx(2.8)
    assert lengths(lab) == [0, 0]
    passes = lab.clock.now
    lab.run()
    assert lab.clock.now == passes, "measured once"


def test_the_planner_hears_of_it() -> None:
    lab = Laboratory()
    before = lab.engine._experience.costs.target(64, 0)
    lab.target.on_pass = None
    lab.clock.takes(lab.target, lambda width: 0.02 + 0.004 * width)
    lab.run()
    assert lab.engine._experience.costs.target(64, 0) != before
    assert lab.engine._experience.costs.target(64, 0) == pytest.approx(276)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.booleans())
def test_wherever_it_ends_the_conversation_is_as_before(steps: int, held: int, interrupted: bool) -> None:
    """And the answers to come are those that they would have been."""
    lab, alone = Laboratory(), Laboratory()
    prompt = [token % 24 for token in range(3 + held)]
    if held:
        assert lab.answer(prompt).ids == alone.answer(prompt).ids
    ids, before = list(lab.engine.context.ids), lengths(lab)
    with closing(lab.engine.study()) as study:
        for _ in islice(study, steps):
            pass
        if interrupted:
            spend = lab.target.on_pass
            lab.target.on_pass = lambda _: lab.engine.pause()
            with suppress(Interrupted):
                list(study)
            lab.target.on_pass = spend
    assert lengths(lab) == before
    assert lab.engine.context.ids == ids
    longer = [*(ids or prompt), 1, 2, 3]
    assert lab.answer(longer).ids == alone.answer(longer).ids


def test_a_study_that_was_interrupted_goes_on_from_what_it_has(tmp_path: Path) -> None:
    lab = Laboratory(tmp_path)
    with closing(lab.engine.study()) as study:
        for _ in islice(study, 12):
            pass
    known = lab.book.table.at[0].keys()
    assert len(FIRST_WIDTHS) < len(known) < len(COST_WIDTHS)
    began = lab.clock.now
    kept = CostBook(lab.target, CalibrationStore(tmp_path), KEY, lab.clock)
    assert kept.table == lab.book.table
    lab.run()
    assert lab.clock.now > began
    assert lab.book.table.at[0].keys() == set(COST_WIDTHS)


def test_behind_a_conversation_costs_and_leads_are_measured_where_it_stands() -> None:
    lab = Laboratory()
    lab.answer([token % 24 for token in range(700)])
    held = lab.target.length
    lab.run()
    assert lab.book.table.at[held].keys() == set(FAR_WIDTHS)
    assert [widths.contexts for widths in lab.leads] == [(held, held + 64)]
    assert lab.pair.change is not None
    assert lengths(lab)[0] == held


@pytest.mark.parametrize(("asked", "contexts"), [(20, (40, 250)), (100, (111, 250)), (225, (236, 300))])
def test_behind_a_short_conversation_leads_are_measured_as_far_out_as_at_load(
    asked: int, contexts: tuple[int, int]
) -> None:
    lab = Laboratory()
    lab.answer([token % 24 for token in range(asked)])
    held = lab.target.length
    lab.run()
    assert [widths.contexts for widths in lab.leads] == [contexts]
    assert lab.target.length == held


def test_nothing_is_studied_with_fewer_threads_than_what_is_kept_stands_for() -> None:
    lab = Laboratory()
    target = ThreadedLM(24, 4096)
    lab.engine._pace = Pace([target], lambda: lambda width, context: 1.0, lab.clock)
    for _ in range(5):
        lab.engine._pace.took(1, 10.0, 0)
    assert target.used == 1
    assert list(lab.engine.study()) == []
    for _ in range(4):
        lab.engine._pace.took(1, 10.0, 0)  # one thread is no faster
    assert target.used == 2
    assert any(True for _ in lab.engine.study())


def test_a_cache_that_cannot_go_back_is_left_alone_once_it_holds_something() -> None:
    lab = Laboratory()
    lab.target.kind = "recurrent"  # type: ignore[assignment]
    list(lab.engine.study())
    assert lab.leads == []
    lab.target.forward([1, 2, 3], 0)
    lab.engine.context.ids = [1, 2, 3]
    assert list(lab.engine.study()) == []


def test_a_model_that_fails_is_not_studied_again_and_its_cache_is_not_counted_on() -> None:
    lab = Laboratory()

    def fail(tokens: Sequence[int]) -> None:
        raise DecodeFailed("no")

    lab.answer([1, 2, 3])
    lab.target.on_pass = fail
    with pytest.raises(DecodeFailed):
        lab.run()
    lab.target.on_pass = None
    assert list(lab.engine.study()) == []
    assert lab.engine.context.target.length == 0
    assert lab.answer([1, 2, 3]).ids == Laboratory().answer([1, 2, 3]).ids


@pytest.mark.parametrize(("factor", "chosen"), [(0.8, "on"), (0.99, "off"), (1.5, "off")])
def test_flash_attention_is_chosen_by_the_time_that_passes_take(factor: float, chosen: str) -> None:
    lab = Laboratory(flash=factor)
    lab.run()
    (choice,) = lab.chosen
    assert choice.flash_attention == chosen
    assert choice.ratio == pytest.approx(factor, rel=0.01)
    assert all(not model.length for model in lab.others), "closed"
    lab.run()
    assert len(lab.others) == 1, "tried once"


def test_without_room_for_a_second_context_the_setting_stays() -> None:
    lab = Laboratory(flash=0.0)
    lab.run()
    assert lab.chosen == []


@pytest.mark.parametrize("n_ctx", [64, 300, 700])
def test_small_contexts_are_studied_as_far_as_they_go(n_ctx: int) -> None:
    lab = Laboratory(n_ctx=n_ctx)
    lab.run()
    assert max(lab.book.table.at[0]) < n_ctx
    assert lengths(lab) == [0, 0]
