"""Threads on a machine that others use as well: a simulated one, whose free cores are known."""

import pytest

from engine.backends.toy import ToyLM
from engine.contention import PAUSES, Contention, Pace
from tests.fakes import FakeClock

MS = 26.0


class Machine:
    """Two cores: what passes take with one thread and with two, while others keep so many of the cores busy."""

    def __init__(self, threads: int = 2) -> None:
        self.clock = FakeClock()
        self.contention = Contention(threads, self.clock)
        self.used: list[int] = []

    def ms(self, threads: int, busy: int) -> float:
        """As measured: two spinning threads for one free core are slower than one."""
        alone = MS * 1.43 if threads == 1 else MS
        return alone if threads + busy <= 2 else {1: MS * 1.6, 2: MS * 2.3}[threads]

    def run(self, passes: int, busy: int, expected: float = MS) -> float:
        """Milliseconds a pass."""
        began = self.clock.now
        for _ in range(passes):
            self.used.append(self.contention.threads)
            ms = self.ms(self.contention.threads, busy)
            self.clock.now += ms / 1e3
            self.contention.observe(ms, expected)
        return 1e3 * (self.clock.now - began) / passes


def test_a_free_machine_uses_all_its_cores() -> None:
    machine = Machine()
    assert machine.run(1000, busy=0) == pytest.approx(MS)
    assert set(machine.used) == {2}


def test_where_a_core_is_busy_one_thread_is_soon_used_and_two_come_back() -> None:
    machine = Machine()
    machine.run(50, busy=0)
    machine.run(20, busy=1)
    assert machine.contention.threads == 1
    assert machine.run(3000, busy=1) < 1.05 * machine.ms(1, 1)
    machine.run(round(1.1 * 1e3 * PAUSES[1] / MS), busy=0)
    assert machine.contention.threads == 2
    assert machine.run(100, busy=0) == pytest.approx(MS)


def test_costs_that_are_wrong_change_nothing_for_long() -> None:
    """All passes take three times what they should; one thread is no better."""
    machine = Machine()
    machine.run(4000, busy=0, expected=MS / 3)
    assert machine.used.count(1) < 0.02 * len(machine.used)


def test_a_single_pass_that_stalls_changes_nothing() -> None:
    machine = Machine()
    for _ in range(50):
        machine.run(4, busy=0)
        machine.contention.observe(40 * MS, MS)
    assert set(machine.used) == {2}


def test_a_trial_that_stalls_ends_at_once() -> None:
    contention = Contention(3, FakeClock())
    for _ in range(5):
        contention.observe(2 * MS, MS)
    assert contention.threads == 2
    assert contention.observe(5 * MS, MS) == 3


def test_never_fewer_than_one() -> None:
    contention = Contention(1, FakeClock())
    assert {contention.observe(10 * MS, MS) for _ in range(100)} == {1}


class ThreadedLM(ToyLM):
    """Notes the threads that it is given."""

    threads = 2
    same_on_any_threads = True
    used = 2

    def use_threads(self, count: int) -> None:
        self.used = count


@pytest.mark.parametrize(("same", "used"), [(True, 1), (False, 2)])
def test_target_and_draft_follow_where_results_are_the_same(same: bool, used: int) -> None:
    target, draft = ThreadedLM(), ThreadedLM()
    target.same_on_any_threads = same
    pace = Pace([target, draft], lambda: lambda width, context: 10.0 * width, FakeClock())
    for _ in range(5):
        pace.took(4, 100.0, 0)
    assert (target.used, draft.used) == (used, used)


def test_models_that_know_nothing_of_threads_are_left_alone() -> None:
    draft = ThreadedLM()
    pace = Pace([ToyLM(), draft], lambda: lambda width, context: 1.0, FakeClock())
    for _ in range(50):
        pace.took(1, 100.0, 0)
    assert draft.used == 2
