"""Calibration on toy models whose rows depend on the width of the pass, as those of real kernels do."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import ToyLM
from engine.calibration import (
    CONTEXTS,
    STRETCH,
    Setting,
    WidthPlan,
    Widths,
    candidates,
    change,
    measure_widths,
    rounds_of,
    strict_setting,
)
from engine.calibration_store import CalibrationStore, Key, key_for
from engine.calibration_text import TEXT, sample_ids
from engine.cost_table import CostTable
from engine.errors import Interrupted
from engine.model import FloatArray
from engine.verdict import Change

SHORT = (10, 50)


class WidthLM(ToyLM):
    """Adds `shift` to the first logit of passes whose width `odd` says yes to; counts what it is asked."""

    def __init__(self, odd: object, shift: float = 0.25, n_ctx: int = 2048, kind: str = "dense") -> None:
        super().__init__(vocab_size=24, n_ctx=n_ctx, kind=kind)
        self.odd, self.shift = odd, shift
        self.passes: list[tuple[int, int]] = []
        self.closed = 0
        self._last = np.zeros((0, 24), np.float32)

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        self.passes.append((self.length, len(tokens)))
        self._last.fill(np.nan)  # rows are valid until the next call, no longer
        out = self._last = super().forward(tokens, rows)
        if self.odd(len(tokens), self.length):
            out[:, 0] += np.float32(self.shift)
        return out

    def close(self) -> None:
        self.closed += 1
        super().close()


def plan(**changes: object) -> WidthPlan:
    return WidthPlan(**{"contexts": SHORT, **changes})


def test_all_widths_are_equal_where_rows_depend_on_the_ids_alone() -> None:
    widths = measure_widths(ToyLM(vocab_size=24), plan())
    assert widths == Widths(equal=(1, 2, 3, 4, 5, 6, 7, 8, 12, 16), contexts=SHORT)
    assert widths.group == 8


def test_other_widths_are_found_with_their_change_of_the_lead() -> None:
    widths = measure_widths(WidthLM(lambda width, _: width > 3), plan())
    assert widths.equal == (1, 2, 3)
    assert widths.group == 3
    assert widths.change.lead == pytest.approx(0.25, abs=1e-6)


def test_one_bit_in_one_logit_is_enough() -> None:
    widths = measure_widths(WidthLM(lambda width, _: width == 5, shift=1e-6), plan())
    assert widths.equal == (1, 2, 3, 4, 6, 7, 8, 12, 16)
    assert widths.group == 4


def test_width_1_may_be_the_odd_one() -> None:
    assert measure_widths(WidthLM(lambda width, _: width == 1), plan()).equal == (1,)


def test_a_long_context_and_the_end_of_the_stretch_count() -> None:
    last = SHORT[-1] + STRETCH
    widths = measure_widths(WidthLM(lambda width, length: width == 4 and length > last - 5), plan())
    assert 4 not in widths.equal
    assert widths.equal == (1, 2, 3, 5, 6, 7, 8, 12, 16)


def test_a_failed_width_is_not_tried_again() -> None:
    model = WidthLM(lambda width, _: width > 3)
    measure_widths(model, plan())
    assert not [width for length, width in model.passes if length > SHORT[0] + STRETCH + 16 and 3 < width < 17]


def test_leads_of_failed_widths_at_every_context_where_that_is_wanted() -> None:
    class Worse(WidthLM):
        def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
            self.shift = 0.25 if self.length < SHORT[1] else 0.75
            return super().forward(tokens, rows)

    for leads, most in ((False, 0.25), (True, 0.75)):
        widths = measure_widths(Worse(lambda width, _: width == 4), plan(leads=leads))
        assert widths.change.lead == pytest.approx(most, abs=1e-6)
        assert 4 not in widths.equal
        assert widths.contexts == SHORT


def test_the_group_alone_costs_less() -> None:
    model = WidthLM(lambda width, _: width == 4)
    widths = measure_widths(model, plan(group_only=True))
    assert widths.equal == (1, 2, 3)
    assert {width for length, width in model.passes if length > SHORT[0]} == {1, 2, 3}


def test_a_group_that_is_too_small_ends_the_measurement() -> None:
    model = WidthLM(lambda width, _: width > 2)
    widths = measure_widths(model, plan(group_only=True, at_least=3))
    assert widths.group == 2
    assert widths.contexts == SHORT[:1]
    assert measure_widths(model, plan(group_only=True, at_least=2)).contexts == SHORT


def test_a_cache_that_forgets_to_rewind_is_caught() -> None:
    class Sticky(WidthLM):
        def rewind(self, length: int) -> None:
            dropped = self._cells[length:]
            super().rewind(length)
            if len(dropped) in (2, 3) and length > SHORT[0]:
                self._cells[-1] = dropped[-1]

    assert measure_widths(Sticky(lambda *_: False), plan()).equal != measure_widths(ToyLM(24), plan()).equal


def test_a_model_that_cannot_rewind_has_width_1_alone() -> None:
    model = ToyLM(vocab_size=24, kind="recurrent")
    assert measure_widths(model, plan()) == Widths()
    assert model.length == 0


def test_contexts_that_do_not_fit_are_left_out() -> None:
    assert measure_widths(ToyLM(vocab_size=24, n_ctx=300)).contexts == CONTEXTS[:2]
    assert measure_widths(ToyLM(vocab_size=24, n_ctx=40)) == Widths()


def test_progress_grows_to_1_and_may_stop_it() -> None:
    shares: list[float] = []
    model = ToyLM(vocab_size=24)
    measure_widths(model, plan(), shares.append)
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.5
    assert shares[-1] == 1.0

    def stop(share: float) -> None:
        if share > 0.6:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        measure_widths(model, plan(), stop)
    assert model.length == 0


@given(width=st.integers(1, 16), count=st.integers(1, 40))
def test_rounds_cover_the_stretch_once(width: int, count: int) -> None:
    stretch = list(range(count))
    covered: list[int] = []
    for start, kept, tokens in rounds_of(width, stretch):
        assert start == len(covered)
        assert len(tokens) in (1, width)
        assert 1 <= kept <= len(tokens)
        assert tokens[:kept] == stretch[start : start + kept]
        covered += tokens[:kept]
    assert covered == stretch


def test_change_looks_at_the_best_two_of_either_row() -> None:
    single = np.array([[3.0, 1.0, 0.0, -9.0]], np.float32)
    assert change(single, single).lead == 0
    assert change(single, np.array([[2.5, 1.25, 0.0, -9.0]], np.float32)).lead == pytest.approx(0.75)
    assert change(single, np.array([[3.0, 1.0, 2.5, 5.0]], np.float32)).lead == pytest.approx(14.0)
    together = change(single, np.array([[4.0, 2.0, 1.0, -9.0]], np.float32))
    assert (together.lead, together.logit) == (0, 1)
    assert change(single, np.array([[3.0, -1.0, 0.0, -9.0]], np.float32)).logit == 2


@pytest.mark.parametrize(
    ("kv", "flash", "expected"),
    [
        (None, "auto", ["f16 off", "f16 on", "q8_0 on"]),
        (None, "on", ["f16 on", "q8_0 on"]),
        (None, "off", ["f16 off"]),
        ("f16", "auto", ["f16 off", "f16 on"]),
        ("q8_0", "auto", ["q8_0 on"]),
        ("q4_0", "on", ["q4_0 on"]),
    ],
)
def test_what_the_user_chose_restricts_the_candidates(kv: str | None, flash: str, expected: list[str]) -> None:
    assert [f"{s.kv} {s.flash_attention}" for s in candidates(kv, flash)] == expected


@pytest.mark.parametrize(
    ("groups", "winner", "group"),
    [((1, 3, 7), "q8_0 on", 7), ((5, 5, 5), "f16 off", 5), ((2, 6, 3), "f16 on", 6), ((1, 1, 1), "f16 off", 1)],
)
def test_strict_takes_the_largest_group_and_the_first_of_equals(
    groups: tuple[int, int, int], winner: str, group: int
) -> None:
    settings = candidates(None, "auto")
    made: list[WidthLM] = []
    shares: list[float] = []

    def make(setting: Setting) -> WidthLM:
        limit = groups[settings.index(setting)]
        made.append(WidthLM(lambda width, _: limit < width < 17))
        return made[-1]

    setting, widths = strict_setting(make, settings, shares.append)
    assert f"{setting.kv} {setting.flash_attention}" == winner
    assert widths.group == group
    assert [model.closed for model in made] == [1, 1, 1]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_the_text_is_long_enough_and_any_vocabulary_will_do() -> None:
    assert len(TEXT) > 2_000
    for size in (2, 24, 200):
        ids = sample_ids(ToyLM(vocab_size=size).vocab, 1_000)
        assert len(ids) == 1_000
        assert all(0 <= token < size for token in ids)


KEY = Key(file="f", library="l", cpu="c", device="cpu", threads=2)
RECORD = Widths(equal=(1, 2, 3), change=Change(lead=0.4, logit=0.7), contexts=(40,))
TABLE = CostTable(at={40: {1: 24.5, 16: 106.0}})


def test_measurements_come_back_under_their_own_key_alone(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path / "cache")
    assert store.get(KEY, Widths) is None
    store.put(KEY, RECORD)
    store.put(KEY, TABLE)
    again = CalibrationStore(tmp_path / "cache")
    assert again.get(KEY, Widths) == RECORD
    assert again.get(KEY, CostTable) == TABLE
    for other in (
        Key(file="g", library="l", cpu="c", device="cpu", threads=2),
        Key(file="f", library="l", cpu="c", device="cpu", threads=1),
        Key(file="f", library="l", cpu="c", device="cpu", threads=2, kv="q8_0"),
    ):
        assert again.get(other, Widths) is None
    assert all(path.suffix == ".json" for path in (tmp_path / "cache").iterdir())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": 1}', b"\xff\xfe"])
def test_damaged_files_count_as_none_and_are_written_anew(tmp_path: Path, damage: bytes) -> None:
    store = CalibrationStore(tmp_path)
    store.put(KEY, RECORD)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for content in (damage, whole[: len(whole) // 2], whole.replace(b'"equal":[1', b'"equal":["1"')):
        file.write_bytes(content)
        assert store.get(KEY, Widths) is None
    store.put(KEY, RECORD)
    assert store.get(KEY, Widths) == RECORD


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = CalibrationStore(tmp_path / "file")
    store.put(KEY, RECORD)
    assert store.get(KEY, Widths) is None
    CalibrationStore(None).put(KEY, RECORD)
    assert CalibrationStore(None).get(KEY, Widths) is None


def test_the_key_follows_the_content_of_the_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    data = bytearray(3_000_000)
    one.write_bytes(data)
    two.write_bytes(data)
    first = key_for(one, "l", "cpu", 2)
    assert first == key_for(two, "l", "cpu", 2)
    data[2_999_999] = 1
    two.write_bytes(data)
    assert first != key_for(two, "l", "cpu", 2)
    two.write_bytes(data + b"\0")
    assert first.file != key_for(two, "l", "cpu", 2).file
