"""What a pair taught is taken up again by the same pair on the same machine and power, and by no other."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from engine import lessons
from engine.acceptance import Learned
from engine.backends.toy import ToyLM
from engine.calibration_store import CalibrationStore, Key
from engine.config import Speculation
from engine.engine import Engine
from engine.lessons import Lessons, power
from engine.pair import Pair
from tests.fakes import request

TARGET = Key(file="a", library="llama 1", cpu="cpu", device="cpu", threads=2)
DRAFT = msgspec.structs.replace(TARGET, file="b")
LEARNED = Learned(classes={"lookup one 2 0": (1.5, 4.0)}, moods={"lookup": 0.25})


def test_lessons_are_kept_by_target_and_draft(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path)
    Lessons(store, TARGET, DRAFT).keep(LEARNED)
    assert Lessons(store, TARGET, DRAFT).taken_up() == LEARNED
    for other in (
        Lessons(store, TARGET, None),
        Lessons(store, DRAFT, TARGET),
        Lessons(CalibrationStore(None), TARGET, DRAFT),
    ):
        assert other.taken_up() is None


@pytest.mark.parametrize("plugged", [True, False])
def test_a_battery_is_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugged: bool) -> None:
    store = CalibrationStore(tmp_path)
    monkeypatch.setattr(lessons.psutil, "sensors_battery", lambda: None, raising=False)
    Lessons(store, TARGET, DRAFT).keep(LEARNED)
    monkeypatch.setattr(
        lessons.psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=plugged), raising=False
    )
    assert power() == ("mains" if plugged else "battery")
    assert (Lessons(store, TARGET, DRAFT).taken_up() == LEARNED) == plugged


def test_an_engine_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path)

    def make() -> Engine:
        return Engine(Pair(ToyLM(12), ToyLM(12, blur=0.5), lessons=Lessons(store, TARGET, DRAFT)))

    first = make()
    list(first.answer_ids([1, 2, 3, 1, 2], request(None, Speculation(), max_tokens=60)))
    assert first._experience.learned.classes
    assert make()._experience.learned == first._experience.learned


def test_what_was_learned_stays_within_its_bounds() -> None:
    """It is kept for years: a class has one line, however long one chats."""
    from engine.acceptance import DEPTHS, ONE_PLACE, Acceptance
    from engine.drafters import Mark, Offer

    acceptance = Acceptance()
    for match in range(1, 200):
        for other in (0, 1):
            marks = [Mark(match + at, 1 + match % 2, other) for at in range(64)]
            acceptance.learn_copied(Offer("lookup", 64, range(64), marks), range(64))
    assert len(acceptance.learned.classes) <= 4 * len(ONE_PLACE) * (len(DEPTHS) + 1)
    assert all(0 <= kept <= tests < 1001 for kept, tests in acceptance.learned.classes.values())
