"""What is said of a whole answer, from the reasons of its rounds."""

from engine.reasons import Reason, Reasons


def test_each_source_has_its_rounds_and_what_was_left_out_has_the_last_word() -> None:
    reasons = Reasons()
    for gain in (0.5, 1.5):
        reasons.note(Reason("x", "lookup", 0.4, 0.9, gain), "lookup")
    reasons.note(Reason("x", "model", 0.5, 0.8, 0.1), "model")
    reasons.note(Reason("off: a match of 2: needs 0.71, has 0.44"), None)
    reasons.note(Reason("off: no room for a draft", passing=True), None)
    assert reasons.text == (
        "lookup in 2 of 5 rounds (+100% expected); draft model in 1 of 5 rounds (+10% expected); "
        "off: a match of 2: needs 0.71, has 0.44"
    )
    assert (reasons.about.needed, reasons.about.observed) == (0.4, 0.9)
    assert reasons.gain is not None
    assert abs(reasons.gain - 0.7) < 1e-9


def test_where_nothing_was_drafted_the_numbers_are_those_of_what_was_not() -> None:
    reasons = Reasons()
    reasons.note(Reason("off", "model", None, 0.75, -0.4), None)
    assert (reasons.text, reasons.about.observed, reasons.gain) == ("off", 0.75, None)


def test_before_any_round_there_is_nothing_to_say() -> None:
    assert (Reasons().text, Reasons().about, Reasons().gain) == ("", Reason(""), None)


def test_what_a_round_cannot_help_is_said_only_where_there_is_nothing_else() -> None:
    reasons = Reasons()
    reasons.note(Reason("no room", passing=True), None)
    assert reasons.text == "no room"
    reasons.note(Reason("off"), None)
    reasons.note(Reason("no room", passing=True), None)
    assert reasons.text == "off"
