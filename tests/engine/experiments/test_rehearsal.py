"""Recordings played again: time goes by the table, text stays, and auto holds its own against every fixed length."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import Speculation
from engine.costs import Costs, DraftCost
from engine.experience import Experience
from engine.experiments.rehearsal import Recording, fastest, rehearse, without_draft

FLAT = Costs(lambda width, _: 10 * (1 + 0.05 * (width - 1) / 7), {"model": DraftCost(0.6)})
"""A simulated GPU: a pass over 8 costs 1.05 of a pass over 1, a drafted token 0.06."""
STEEP = Costs(lambda width, _: 9.0 + 19.0 * width)
OFF, AUTO = Speculation(mode="off"), Speculation()


def novel(tokens: int, seed: int = 1) -> Recording:
    """Text in which nothing repeats."""
    draw = random.Random(seed)
    return Recording(kind="novel", prompt=tuple(range(50)), answer=tuple(draw.sample(range(100, 10**6), tokens)))


def chance(*parts: tuple[float, int]) -> Callable[[int], bool]:
    """Agreement with these chances, each up to a place."""
    draw = random.Random(5)
    table = [draw.random() < next(c for c, end in parts if place < end) for place in range(parts[-1][1])]
    return table.__getitem__


def fixed(length: int) -> Speculation:
    return Speculation(mode="fixed", length=length)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=80), st.sampled_from([OFF, AUTO, fixed(3), fixed(9)]))
def test_what_is_said_is_the_recording(answer: list[int], speculation: Speculation) -> None:
    recording = Recording(kind="x", prompt=(0, 1, 2, 0, 1), answer=tuple(answer))
    played = rehearse(recording, speculation, FLAT, agrees=chance((0.5, 500)))
    said = [token for done in played.rounds for token in done.tokens]
    names = {token: at for at, token in enumerate(dict.fromkeys((*recording.prompt, *recording.answer)))}
    assert said == [names[token] for token in answer]


def test_time_goes_by_the_table_and_the_context() -> None:
    costs = Costs(lambda width, held: 5.0 * width + held)
    played = rehearse(Recording(kind="x", prompt=(1, 2, 3), answer=(4, 5, 6)), OFF, costs)
    assert (played.ms, played.tokens) == (pytest.approx(5 + 3 + 5 + 4), 2)


@pytest.mark.parametrize("agreed", [0.2, 0.5, 0.8, 0.95])
def test_auto_is_near_the_best_fixed_length_on_a_flat_machine(agreed: float) -> None:
    recording, agrees = novel(1500), chance((agreed, 2000))
    best = fastest([rehearse(recording, fixed(k), FLAT, agrees=agrees) for k in (1, 2, 3, 4, 6, 8, 12, 16)])
    assert rehearse(recording, AUTO, FLAT, agrees=agrees).pace > 0.97 * best.pace


def test_auto_follows_within_ten_rounds_when_acceptance_falls() -> None:
    agrees = chance((0.8, 800), (0.2, 2000))
    played = rehearse(novel(1500), AUTO, FLAT, agrees=agrees)
    place, lengths = 50, []
    for done in played.rounds:
        if place >= 800:
            lengths.append(done.drafted)
        place += len(done.tokens)
    assert max(lengths[:3]) > 4  # it had drafted long
    assert max(lengths[10:30]) <= 3
    late = rehearse(novel(1500), AUTO, FLAT, agrees=agrees)
    assert late.pace > rehearse(novel(1500), OFF, FLAT).pace


def test_auto_loses_nothing_where_nothing_repeats() -> None:
    costs = without_draft(STEEP)
    recording = novel(400)
    assert rehearse(recording, AUTO, costs).ms == pytest.approx(rehearse(recording, OFF, costs).ms)


def test_auto_copies_where_text_repeats() -> None:
    text = novel(300).answer
    recording = Recording(kind="copy", prompt=text, answer=text)
    costs = Costs(lambda width, _: 24.0 + 4.0 * width)
    assert rehearse(recording, AUTO, costs).pace > 3 * rehearse(recording, OFF, costs).pace


def test_a_machine_that_differs_from_its_table_is_found_out() -> None:
    """The table says that wide passes are nearly free; they are not."""
    recording, agrees = novel(600), chance((0.5, 2000))
    experience = Experience(FLAT)
    truth = lambda width, _: 10.0 * width  # noqa: E731
    played = rehearse(recording, AUTO, FLAT, experience, agrees, truth)
    off = rehearse(recording, OFF, FLAT, agrees=agrees, truth=truth)
    assert played.pace > 0.9 * off.pace
    assert all(done.drafted == 0 for done in played.rounds[-100:-50])
