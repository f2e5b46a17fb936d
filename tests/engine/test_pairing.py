"""Pairs fit as they are exactly when every id means the same; others by a map, where they share enough; and why not."""

import pytest

from engine.calibration_text import TEXT
from engine.pairing import Fit, compare
from tests.fakes_vocab import CHATML, MERGED, FakeVocabulary


def test_equal_vocabularies_fit() -> None:
    assert compare(FakeVocabulary(), FakeVocabulary()) == Fit()


def test_a_model_fits_itself_whatever_its_template() -> None:
    assert compare(FakeVocabulary(chat_template="{{ 1 }}"), FakeVocabulary()) == Fit()


def test_equal_ids_fit_though_the_fingerprints_differ() -> None:
    one, other = FakeVocabulary(), FakeVocabulary()
    other.fingerprint = "made by another merge list"
    assert compare(one, other) == Fit()
    assert Fit().kind == "equal"


def swapped() -> FakeVocabulary:
    return FakeVocabulary(merged=("hello", " ~", *MERGED[2:]))


@pytest.mark.parametrize(
    ("draft", "difference"),
    [
        (swapped(), "token 256 is ' ~' in the target and 'hello' in the draft"),
        (FakeVocabulary(control=CHATML[:2]), "the target has 272 tokens, the draft 271"),
        (
            FakeVocabulary(eog=("<|im_end|>",)),
            "token 269 (the control token '<|endoftext|>') ends an answer in the target, not in the draft",
        ),
        (
            FakeVocabulary(eog=CHATML),
            "token 270 (the control token '<|im_start|>') ends an answer in the draft, not in the target",
        ),
        (
            FakeVocabulary(bos="<|endoftext|>"),
            "a prompt opens with no token in the target"
            " and with token 269 (the control token '<|endoftext|>') in the draft",
        ),
        (
            FakeVocabulary(control=("<s>", *CHATML[1:]), eog=("<s>", "<|im_end|>")),
            "token 269 is the control token '<|endoftext|>' in the target and the control token '<s>' in the draft",
        ),
    ],
)
def test_the_first_difference_is_named_and_what_is_shared_fits_by_a_map(draft: FakeVocabulary, difference: str) -> None:
    fit = compare(FakeVocabulary(), draft)
    assert fit.difference == difference
    assert fit.kind == "map"
    assert fit.reason == f"{fit.overlap}; the first difference: {difference}"
    assert fit.reason.startswith("100% of the tokens")


def test_extra_tokens_of_a_fine_tune_are_counted() -> None:
    fit = compare(FakeVocabulary(), FakeVocabulary(control=(*CHATML, "<|tool|>")))
    assert fit.difference == "the target has 272 tokens, the draft 273"


def test_a_control_token_is_not_the_same_as_its_plain_text() -> None:
    target = FakeVocabulary(merged=("<|im_start|>",), control=())
    draft = FakeVocabulary(merged=(), control=("<|im_start|>",), eog=())
    assert compare(target, draft).difference == (
        "token 256 is '<|im_start|>' in the target and the control token '<|im_start|>' in the draft"
    )


def test_a_reason_is_one_line_and_never_acts_on_a_terminal() -> None:
    fit = compare(FakeVocabulary(merged=("\x1b[2J\n" + "x" * 99,)), FakeVocabulary(merged=("é",)))
    assert fit.difference is not None
    assert fit.difference.isprintable()
    assert len(fit.difference) < 150


def test_bytes_that_are_no_text_are_shown_in_hexadecimal() -> None:
    class Odd(FakeVocabulary):
        def piece(self, token: int) -> bytes:
            return b"\xe2\x82" if token == 65 else super().piece(token)

    odd = Odd()
    odd.fingerprint = "odd"
    assert compare(odd, FakeVocabulary()).difference == "token 65 is the bytes e2 82 in the target and 'A' in the draft"


WORDS = tuple(dict.fromkeys(f" {word}" for word in TEXT.split()))


def test_a_draft_that_lacks_most_of_what_the_target_writes_is_refused_with_figures_and_the_first_difference() -> None:
    fit = compare(FakeVocabulary(merged=WORDS), FakeVocabulary(merged=()))
    assert (fit.kind, fit.map) == ("none", None)
    assert fit.overlap is not None
    assert fit.overlap.text < 0.5 < fit.overlap.target
    assert fit.reason.startswith(f"only {fit.overlap.text:.0%} of the tokens")
    assert fit.reason.endswith("too few; the first difference: " + str(fit.difference))


def test_a_draft_that_has_all_that_the_target_writes_fits_however_much_else_it_has() -> None:
    fit = compare(FakeVocabulary(merged=()), FakeVocabulary(merged=WORDS))
    assert fit.map is not None
    assert fit.overlap is not None
    assert (fit.overlap.text, fit.overlap.target) == (1, 1)
    assert fit.overlap.draft == 259 / (259 + len(WORDS))
