"""The figures of an answer from its events: turn, chat and session apart, and each as stats defines it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.counts import Counts
from app.live import HOLD_MS, Live, Meter
from engine.config import Speculation
from engine.stats import Receipt, SourceCount, Verdict
from tests.app.fakes_panel import brought, figured, play
from tests.fakes_client import answer, one_round, reading


def of_answer(ids: int, rounds: int, drafted: int, accepted: int) -> object:
    """A record of an answer with these counts."""
    import msgspec

    counts = {"rounds": rounds, "drafted": drafted, "accepted": accepted}
    by_source = {"lookup": SourceCount(drafted=drafted, accepted=accepted)}
    spec = msgspec.structs.replace(answer("x").speculation, by_source=by_source, **counts)
    return answer("x", ids=list(range(ids)), speculation=spec)


def test_a_new_answer_resets_the_turn_alone() -> None:
    meter = Meter()
    play(meter, [figured()] * 3)
    live = meter.begin()
    assert live.turn == Counts()
    assert live.chat.rounds == live.session.rounds == 3
    assert (live.speeds, live.by_position, live.reason.text, live.ttft_s) == ((), (), "", None)


def test_a_new_chat_resets_turn_and_chat_and_the_session_goes_on() -> None:
    meter = Meter()
    play(meter, [figured()] * 3)
    live = meter.new_chat()
    assert live.turn == live.chat == Counts()
    assert live.session.rounds == 3
    live = play(meter, [figured()] * 2)
    assert (live.turn.rounds, live.chat.rounds, live.session.rounds) == (2, 2, 5)


def test_an_answer_written_again_or_given_up_has_cost_what_it_cost() -> None:
    meter = Meter()
    play(meter, [figured()] * 3)
    meter.finish(answer("abc"))
    live = play(meter, [figured()] * 2)
    assert live.turn.rounds == 2
    assert live.chat.rounds == 2 + answer("abc").speculation.rounds


def test_the_engines_own_figures_replace_those_counted() -> None:
    meter = Meter()
    play(meter, [figured()] * 3)
    record = of_answer(ids=7, rounds=3, drafted=12, accepted=5)
    live = meter.finish(record)  # type: ignore[arg-type]
    turn = live.turn
    assert (turn.emitted, turn.drafted, turn.accepted, turn.lookup, turn.target) == (7, 12, 5, 5, 2)
    assert live.chat == live.session == turn
    assert live.target == Receipt(reused=790, read=22)
    assert live.draft == Receipt(reused=7, read=2)
    assert live.ttft_s == 0.4
    assert live.verdict == Verdict(kind="clear", threshold=0.4)
    assert live.context == 812 + 7


def test_an_opened_answer_is_shown_and_counted_nowhere() -> None:
    meter = Meter()
    play(meter, [figured()] * 3)
    meter.new_chat()
    live = meter.show(answer("abc"))
    assert live.turn.emitted == 3
    assert live.chat == Counts()
    assert live.session.rounds == 3
    assert meter.begin().session.rounds == 3


ROUNDS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(1, 900)).map(
        lambda it: one_round(drafted=it[0], accepted=min(it[:2]), emitted=min(it[:2]) + 1, ms=it[2])
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(answers=st.lists(st.tuples(ROUNDS, st.booleans()), max_size=5))
def test_counts_add_up(answers: list[tuple[list, bool]]) -> None:  # type: ignore[type-arg]
    meter = Meter()
    chat: list[object] = []
    everything: list[object] = []
    for rounds, new_chat in answers:
        if new_chat:
            meter.new_chat()
            chat = []
        live = play(meter, rounds)
        chat, everything = chat + rounds, everything + rounds
        for counts, those in ((live.turn, rounds), (live.chat, chat), (live.session, everything)):
            assert counts.rounds == len(those)
            assert counts.drafted == sum(one.drafted for one in those)
            assert counts.accepted == sum(one.accepted for one in those)
            assert counts.emitted == counts.accepted + counts.rounds
            assert 0 <= counts.accepted <= counts.drafted


def test_acceptance_by_position_is_kept_over_drafted_there() -> None:
    meter = Meter()
    live = play(meter, [one_round(drafted=d, accepted=a) for d, a in ((4, 1), (3, 3), (2, 0))])
    assert live.by_position == (2 / 3, 1 / 3, 1 / 2, 0.0)


def test_origins_are_those_of_the_tokens() -> None:
    meter = Meter()
    meter.begin()
    meter.take(brought("lookup", "lookup", "model", "target"))
    live = meter.add(one_round(emitted=4))
    turn = live.turn
    assert (turn.lookup, turn.model, turn.exit, turn.target) == (2, 1, 0, 1)
    assert turn.share("lookup") == 0.5
    assert turn.share("exit") == 0.0
    assert Counts().share("target") is None


@pytest.mark.parametrize(
    ("plain", "saved"),
    [((100.0, 30.0), 10.0), ((10.0, 20.0), -90.0), ((None, 80.0), 20.0), ((None, None), None)],
)
def test_what_is_won_is_what_plain_passes_would_have_taken(
    plain: tuple[float | None, ...], saved: float | None
) -> None:
    live = play(Meter(), [figured(plain_ms=ms, ms=60.0) for ms in plain])
    assert live.turn.saved_ms == saved


def test_a_reason_stands_long_enough_to_be_read() -> None:
    meter = Meter()
    meter.begin()
    said = [meter.add(one_round(plan=str(at), ms=HOLD_MS / 4)).reason.text for at in range(9)]
    assert said == ["0"] * 4 + ["4"] * 4 + ["8"]


def test_the_first_token_is_timed_until_the_engine_says_it() -> None:
    now = [5.0]
    meter = Meter(clock=lambda: now[0])
    meter.begin()
    now[0] = 5.5
    assert meter.take(brought("target")).ttft_s == 0.5
    now[0] = 9.0
    assert meter.add(one_round()).ttft_s == 0.5
    assert meter.finish(answer("abc")).ttft_s == 0.4


def test_reading_gives_the_receipts_of_both_models() -> None:
    meter = Meter()
    meter.begin()
    live = meter.read(reading(812, 900, reused=790))
    assert (live.target, live.context) == (Receipt(reused=790, read=22), 812)
    from engine.events import Reading

    live = meter.read(Reading(model="draft", reused=5, done=9, total=20))
    assert (live.target, live.draft, live.context) == (Receipt(reused=790, read=22), Receipt(reused=5, read=4), 812)


def test_speculation_that_is_off_has_no_source() -> None:
    meter = Meter()
    meter.begin()
    off = Speculation(mode="off")
    assert meter.add(one_round()).source == "lookup"
    assert meter.add(one_round(drafted=0, accepted=0)).source == "lookup"
    assert meter.add(one_round(drafted=0, accepted=0, speculation=off)).source is None


def test_nothing_is_known_before_anything_has_happened() -> None:
    assert Meter().live == Live()
