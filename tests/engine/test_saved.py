"""What drafting won or lost in an answer: by what single passes cost, less what its rounds took."""

from collections.abc import Callable

import pytest

from engine.backends.toy import ToyVocabulary
from engine.config import Sampling, Speculation
from engine.costs import Costs, DraftCost
from engine.engine import Engine
from engine.events import Finished, Round
from engine.stats import Answer
from tests.fakes import FakeClock, engine_of, fixed, request, script_pair

PROMPT = [20, 21, 22]
"""Nothing that is answered, so that there is nothing to copy."""
LETTERS = ToyVocabulary.letters(24, eog=[23])
PLAIN, WIDER, DRAFT = 20.0, 2.0, 3.0
MEASURED = Costs(lambda width, _: PLAIN + WIDER * (width - 1), {"model": DraftCost(DRAFT)})


def engine(mask: Callable[[int], bool], answer: int = 20, **options: object) -> Engine:
    """A pair whose passes take what was measured, by a clock that is told the time."""
    target, draft = script_pair(list(range(answer)), mask, LETTERS, len(PROMPT))
    made = engine_of(target, draft, **{"costs": MEASURED, **options})
    clock = FakeClock()
    clock.takes(target, lambda n: (PLAIN + WIDER * (n - 1)) / 1000)
    clock.takes(draft, lambda n: DRAFT / 1000)
    made._clock = clock
    made.context.target.forward(PROMPT[:-1], 0)
    made.context.ids = PROMPT[:-1]  # read already
    assert made.context.draft
    made.context.draft.forward(PROMPT[:-1], 0)
    return made


def run(made: Engine, speculation: Speculation, max_tokens: int = 20, stop: tuple[str, ...] = ()) -> Answer:
    """The answer, whose figure is the sum of its rounds'."""
    asked = request(Sampling(temperature=0), speculation, max_tokens, stop)
    *events, finished = made.answer_ids(PROMPT, asked)
    assert isinstance(finished, Finished)
    rounds = [event for event in events if isinstance(event, Round)]
    saved, spec = finished.answer.speculation.saved_ms, finished.answer.speculation
    if saved is None:
        assert any(one.plain_ms is None for one in rounds)
    else:
        assert saved == pytest.approx(sum(one.plain_ms - one.ms for one in rounds if one.plain_ms is not None))
    assert (rounds[-1].needed, rounds[-1].observed) == (spec.needed, spec.observed)
    return finished.answer


def test_drafts_that_are_right_win_what_the_passes_in_their_place_would_have_taken() -> None:
    saved = run(engine(lambda _: True), fixed(3)).speculation.saved_ms
    # 5 rounds of 4 tokens; the first drafts of a round cost a pass each
    assert saved == pytest.approx(5 * (4 * PLAIN - (PLAIN + 3 * WIDER) - 3 * DRAFT))


def test_drafts_that_are_wrong_lose_all_that_they_took() -> None:
    saved = run(engine(lambda _: False), fixed(2), max_tokens=7).speculation.saved_ms
    # the last two rounds have room for one draft and for none
    assert saved == pytest.approx(-(5 * 2 + 1) * (WIDER + DRAFT))


def test_the_end_of_an_answer_takes_a_pass_as_well() -> None:
    saved = run(engine(lambda _: True, answer=3), fixed(3)).speculation.saved_ms
    # three tokens and the end, which was drafted, too
    assert saved == pytest.approx(4 * PLAIN - (PLAIN + 3 * WIDER) - 3 * DRAFT)


def test_what_stands_behind_a_stop_wins_nothing() -> None:
    saved = run(engine(lambda _: True), fixed(3), stop=("b",)).speculation.saved_ms
    assert saved == pytest.approx(2 * PLAIN - (PLAIN + 3 * WIDER) - 3 * DRAFT)


def test_without_drafts_nothing_is_won_or_lost() -> None:
    answer = run(engine(lambda _: True), fixed(0))
    assert answer.speculation.saved_ms == 0.0
    assert answer.speculation.rounds == 20


def test_a_machine_that_slows_down_is_no_loss() -> None:
    made = engine(lambda _: True)
    target, draft = made.pair.target, made.pair.draft
    clock = made._clock
    assert isinstance(clock, FakeClock)
    clock.takes(target, lambda n: (PLAIN + WIDER * (n - 1)) / 500)  # type: ignore[arg-type]
    clock.takes(draft, lambda n: DRAFT / 500)  # type: ignore[arg-type]
    for _ in range(12):  # the costs follow
        run(made, fixed(3))
        run(made, fixed(0))
    saved = run(made, fixed(3)).speculation.saved_ms
    assert saved == pytest.approx(2 * 5 * (4 * PLAIN - (PLAIN + 3 * WIDER) - 3 * DRAFT), rel=0.1)


def test_a_draft_pass_in_vain_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.planner import FixedDrafting

    monkeypatch.setattr(FixedDrafting, "submits", lambda *_: False)
    answer = run(engine(lambda _: True), fixed(3), max_tokens=4)
    assert answer.speculation.drafted == 0
    assert answer.speculation.saved_ms == pytest.approx(-3 * DRAFT)  # the last token has no room for a draft


def test_where_no_costs_were_measured_it_is_unknown() -> None:
    made = engine(lambda _: True)
    made.pair.costs = engine_of(made.pair.target).pair.costs
    assert run(made, fixed(3)).speculation.saved_ms is None
    assert run(made, fixed(0)).speculation.saved_ms == 0.0


def test_what_is_needed_and_what_is_seen_stand_in_every_round() -> None:
    made = engine(lambda i: i % 4 < 2)
    events = list(made.answer_ids(PROMPT, request(Sampling(temperature=0), Speculation())))
    rounds = [event for event in events if isinstance(event, Round)]
    assert any(one.needed is not None and one.observed is not None for one in rounds)
    run(made, Speculation())
