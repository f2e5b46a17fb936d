"""What leaving a model early is worth: agreement counted on a toy, costs by its clock, and the choice from both."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import EarlyLM
from engine.calibration_store import CalibrationStore, Key
from engine.calibration_text import sample_ids
from engine.costs import DraftCost
from engine.errors import CannotRewind, Interrupted
from engine.exit_table import (
    CONTEXT,
    PLACES,
    WIDTH,
    ExitPoint,
    ExitTable,
    best_exit,
    choose,
    exits,
    gain,
    measure_exit,
)
from engine.gain import gains
from engine.model import FloatArray
from tests.fakes import FakeClock

LAYER_S, HEAD_S = 0.001, 0.004


class Timed(EarlyLM):
    """Each layer takes its time for each token, a pass the head's once more; some of its columns are no tokens."""

    def __init__(self, n_batch: int = 64, n_ctx: int = 4096) -> None:
        super().__init__(24, n_ctx)
        self.n_batch, self.padding = n_batch, 3
        self.clock = FakeClock()
        self.timed = 0
        self.slow: set[int] = set()
        """Which of the passes that are as wide as the timed ones take a second more."""

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        self.clock.now += HEAD_S + LAYER_S * layers * len(tokens)
        return super().leave(tokens, rows, layers)

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        ahead, after = len(self._ahead), self._after
        out = super().forward(tokens, rows)
        self.clock.now += HEAD_S + LAYER_S * (self.layers * len(tokens) - ahead * after)
        if len(tokens) == rows == WIDTH:
            self.clock.now += self.timed in self.slow
            self.timed += 1
        return out

    def _filled(self, rows: Sequence[FloatArray]) -> FloatArray:
        out = super()._filled(rows)
        out[:, self.vocab.size :] = 99
        return out


def measured(model: Timed, tried: Sequence[int] = (2, 5, 7)) -> ExitTable:
    return measure_exit(model, tried, clock=model.clock)


@pytest.mark.parametrize("n_batch", [7, 64, 512])
def test_agreement_is_counted_behind_the_same_ids(n_batch: int) -> None:
    table = measured(Timed(n_batch))
    model = EarlyLM(24)
    ids = sample_ids(model.vocab, CONTEXT + PLACES)
    for point in table.points:
        same = [
            np.argmax(model.early_row(ids[:end], point.layers)) == np.argmax(model.row(ids[:end]))
            for end in range(CONTEXT + 1, CONTEXT + PLACES + 1)
        ]
        assert point.agreement == np.mean(same)
    early, later, latest = (point.agreement for point in table.points)
    assert 0 < early < later < latest < 1


def test_costs_are_those_of_one_early_token_and_of_what_is_taken_up() -> None:
    for point in measured(Timed()).points:
        assert point.ms == pytest.approx(1e3 * (HEAD_S + LAYER_S * point.layers))
        assert point.saved_ms == pytest.approx(1e3 * LAYER_S * point.layers)
        assert point.cost == DraftCost(point.ms, point.saved_ms)


def test_a_narrow_batch_is_timed_at_its_own_width() -> None:
    table = measured(Timed(n_batch=3))
    assert [point.saved_ms for point in table.points] == pytest.approx([2.0, 5.0, 7.0])


def test_the_cache_is_empty_afterwards_and_a_small_context_is_enough() -> None:
    model = Timed(n_ctx=16)
    model.forward([1, 2, 3], 0)
    table = measured(model)
    assert model.length == 0
    assert [point.layers for point in table.points] == [2, 5, 7]
    assert model.leave([1], 1, 2).shape == (1, 27)


def test_progress_grows_to_the_whole_and_what_it_raises_ends_the_measurement() -> None:
    told: list[float] = []
    model = Timed()
    measure_exit(model, (2, 5), told.append)
    assert told == sorted(told)
    assert (len(set(told)), told[-1]) == (8, 1.0)

    def stop(share: float) -> None:
        if share > 0.5:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        measure_exit(model, (2, 5), stop)
    assert model.length == 0


def test_one_slow_pass_changes_nothing_and_two_of_three_are_seen() -> None:
    def table(slow: set[int]) -> ExitTable:
        model = Timed()
        model.slow = slow
        return measured(model)

    assert table(set()).steady
    assert table({1}) == table(set())
    assert not table({0, 2}).steady


def test_a_cache_that_cannot_go_back_is_not_measured() -> None:
    model = EarlyLM(24, kind="recurrent")
    with pytest.raises(CannotRewind):
        measure_exit(model, (2,))
    assert model.length == 0


@given(st.integers(1, 200))
def test_the_exits_that_are_tried_are_inside(layers: int) -> None:
    tried = exits(layers)
    assert all(1 <= number < layers for number in tried)
    assert list(tried) == sorted(set(tried))
    assert tried or layers == 1
    if layers >= 8:
        assert (tried[0], tried[-1]) == (layers // 8, layers * 6 // 8)


# The choice


def point(layers: int, agreement: float, ms: float, saved_ms: float = 0.0) -> ExitPoint:
    return ExitPoint(layers=layers, agreement=agreement, ms=ms, saved_ms=saved_ms)


def flat(width: int) -> float:
    return 10.0 + 0.01 * width


def test_the_gain_is_that_of_the_best_length() -> None:
    one = point(4, 0.8, 2.0, 0.5)
    assert gain(one, flat) == max(gains([0.8] * 8, flat, DraftCost(1.5)))
    assert gain(point(4, 0.0, 20.0), flat) < 1


def test_the_choice_weighs_agreement_against_cost() -> None:
    quick, right = point(2, 0.5, 1.0), point(6, 0.9, 6.0)
    assert best_exit([quick, right], flat) == quick
    assert best_exit([quick, point(6, 0.9, 2.0)], flat).layers == 6
    assert best_exit([point(6, 0.9, 6.0, 5.0), quick], flat).layers == 6  # most of it is not run again
    same = [point(5, 0.5, 1.0), point(3, 0.5, 1.0)]
    assert best_exit(same, flat).layers == 3
    with pytest.raises(ValueError):
        best_exit([], flat)


def test_auto_takes_what_pays_and_a_number_is_taken_at_its_word() -> None:
    poor = ExitTable(points=(point(2, 0.1, 4.0), point(6, 0.6, 9.0)))
    assert choose(poor, 0, 8, flat)[0] is None
    assert choose(poor, 0, 8, flat)[1].startswith("early exit is not used, as no number of layers is expected to pay")
    for layers in (2, 6):
        found, note = choose(poor, layers, 8, flat)
        assert found == poor.at(layers)
        assert "not expected to pay here" in note
    good = ExitTable(points=(point(2, 0.5, 1.0), point(4, 0.75, 2.0, 0.5)))
    found, note = choose(good, 0, 8, flat)
    assert found == good.at(4)
    assert note.startswith("early exit: after 4 of 8 layers its choice is the whole model's in 75% of places, and a ")
    assert note.endswith("draft takes 0.15 of the time of a token")


def test_a_table_is_kept_and_found(tmp_path: Path) -> None:
    table = ExitTable(points=(point(2, 0.5, 1.0, -0.25), point(6, 0.9, 6.0)))
    key = Key(file="f", library="l", cpu="c", device="d", threads=2)
    store = CalibrationStore(tmp_path)
    store.put(key, table)
    assert store.get(key, ExitTable) == table
    assert table.at(6) == table.points[1]
    assert table.at(5) is None
