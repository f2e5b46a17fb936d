"""Tokens of two vocabularies are matched by bytes and role: spellings keep the bytes, rows keep the mass."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.toy import ToyVocabulary
from engine.model import FloatArray
from engine.token_map import TokenMap
from tests.engine.vocabularies import LETTERS, PAIRS, doubled, every_byte, large, small, vocabulary

VOCABULARIES = (small, large, every_byte, doubled)
TWO = [(target(), draft()) for target, draft in permutations(VOCABULARIES, 2)]
two = pytest.mark.parametrize(("target", "draft"), TWO)


def mapped(token_map: TokenMap, row: FloatArray) -> FloatArray:
    out = np.full(token_map.target.size, -np.inf, np.float32)
    token_map.row(row, out)
    return out


def joined(vocab: ToyVocabulary, ids: tuple[int, ...]) -> bytes:
    return b"".join(map(vocab.piece, ids))


@two
def test_a_spelling_has_the_bytes_of_its_token(target: ToyVocabulary, draft: ToyVocabulary) -> None:
    token_map = TokenMap(target, draft)
    known = {piece for token in range(draft.size) if len(piece := draft.piece(token)) == 1}
    for token in range(target.size):
        spelled, data = token_map.spell(token), target.piece(token)
        assert spelled
        assert all(0 <= one < draft.size for one in spelled)
        if data and token not in target.eog and {bytes([byte]) for byte in data} <= known:
            assert joined(draft, spelled) == data


@two
def test_roles_are_spelled_by_roles(target: ToyVocabulary, draft: ToyVocabulary) -> None:
    token_map = TokenMap(target, draft)
    for name, token in target.control.items():
        spelled = token_map.spell(token)
        if token in target.eog:
            assert spelled[0] in draft.eog
            assert len(spelled) == 1
        elif name in draft.control:
            assert spelled == (draft.control[name],)
        elif token == target.bos and draft.bos is not None:
            assert spelled == (draft.bos,)


def test_a_control_token_that_the_draft_lacks_is_plain_text() -> None:
    draft = every_byte()
    token_map = TokenMap(large(), draft)
    assert joined(draft, token_map.spell(large().control["<start>"])) == b"<start>"


def test_a_token_that_the_draft_cannot_spell_is_a_question_mark_or_any_token() -> None:
    target, draft = ToyVocabulary([b"x", b""]), ToyVocabulary([b"a", b"?"])
    assert [TokenMap(target, draft).spell(token) for token in (0, 1)] == [(1,), (1,)]
    assert TokenMap(target, ToyVocabulary([b"a"])).spell(0) == (0,)


def test_a_tokenizer_that_puts_a_space_before_text_puts_none_into_a_token() -> None:
    class Spaced(ToyVocabulary):
        def tokenize(self, text: str) -> list[int]:
            return super().tokenize(f" {text}")

    draft = Spaced([b" a", b" ", b"a", b"b"])
    token_map = TokenMap(ToyVocabulary([b"ab", b" ab"]), draft)
    assert [joined(draft, token_map.spell(token)) for token in (0, 1)] == [b"ab", b" ab"]


def test_parts_of_characters_are_spelled_by_the_longest_tokens_first() -> None:
    draft = ToyVocabulary([b"\x9f", b"\x98", b"\x80", b"\x9f\x98", b"\xf0"])
    assert TokenMap(ToyVocabulary([b"\x9f\x98\x80\xf0"]), draft).spell(0) == (3, 2, 4)


def test_of_equal_bytes_the_token_that_the_tokenizer_makes_stands_for_all() -> None:
    one, last = small(), doubled()
    first = vocabulary([*LETTERS, *PAIRS, *LETTERS], ["</s>"], ["</s>"])
    letters = range(len(LETTERS))
    for many, made in ((last, range(len(LETTERS) + len(PAIRS), last.size - 1)), (first, letters)):
        assert {TokenMap(one, many).spell(token)[0] for token in letters} == set(made)
        row = mapped(TokenMap(many, one), np.zeros(one.size, np.float32))
        assert set(np.flatnonzero(np.isfinite(row))) == {*made, *many.eog}


def brute(target: ToyVocabulary, draft: ToyVocabulary, row: FloatArray) -> dict[object, float]:
    """Probabilities by what a token means, summed over the draft's tokens, restricted to what both have."""

    def meaning(vocab: ToyVocabulary, token: int) -> object:
        if token in vocab.eog:
            return "the end"
        names = {at: name for name, at in vocab.control.items()}
        return names.get(token) or vocab.piece(token)

    weights = np.exp(row.astype(np.float64) - row.max())
    ours = {meaning(target, token) for token in range(target.size)}
    out: dict[object, float] = {}
    for token in range(draft.size):
        if (what := meaning(draft, token)) in ours:
            out[what] = out.get(what, 0.0) + float(weights[token])
    total = sum(out.values())
    return {what: weight / total for what, weight in out.items()}


@pytest.mark.parametrize("seed", range(3))
@two
def test_a_row_is_the_drafts_distribution_over_what_is_shared(
    target: ToyVocabulary, draft: ToyVocabulary, seed: int
) -> None:
    row = np.random.default_rng(seed).normal(0, 2, draft.size + 3).astype(np.float32)
    row[draft.size :] = 99  # padding has no say
    out = mapped(TokenMap(target, draft), row)
    probs = np.exp(out.astype(np.float64) - out.max())
    probs /= probs.sum()
    wanted = brute(target, draft, row[: draft.size])
    names = {at: name for name, at in target.control.items()}
    found: dict[object, float] = {}
    for token in np.flatnonzero(probs).tolist():
        what = "the end" if token in target.eog else names.get(token) or target.piece(token)
        found[what] = found.get(what, 0.0) + probs[token]
    assert found.keys() == wanted.keys()
    assert all(abs(found[what] - wanted[what]) < 1e-6 for what in wanted)


def test_ends_pair_by_name_and_the_rest_of_them_by_role() -> None:
    target = vocabulary([b"a"], ["<stop>", "<end>"], ["<stop>", "<end>"])
    target.eos = 2
    draft = vocabulary([b"a"], ["<one>", "<stop>", "<two>"], ["<one>", "<stop>", "<two>"])
    row = mapped(TokenMap(target, draft), np.log([0.1, 0.2, 0.3, 0.4]).astype(np.float32))
    np.testing.assert_allclose(np.exp(row), [0.1, 0.3, 0.2 + 0.4], rtol=1e-6)


def test_text_never_becomes_a_control_token_nor_an_end() -> None:
    target = vocabulary([b"<end>", b"a"], ["<go>"], [])
    draft = vocabulary([b"<go>", b"a"], ["<end>"], ["<end>"])
    row = mapped(TokenMap(target, draft), np.zeros(3, np.float32))
    assert np.flatnonzero(np.isfinite(row)).tolist() == [1]
    token_map = TokenMap(vocabulary([b"<end>"], [], []), vocabulary([b"<", b"end", b">"], ["<end>"], ["<end>"]))
    assert token_map.spell(0) == (0, 1, 2)


@given(st.permutations(range(small().size)), st.integers(0, 9))
def test_equal_tokens_in_another_order_are_the_same_row_bit_for_bit(order: list[int], seed: int) -> None:
    target = small()
    names = {token: name for name, token in target.control.items()}
    pieces = [target.piece(token) for token in order]
    draft = ToyVocabulary(pieces, {names[t]: i for i, t in enumerate(order) if t in names})
    draft.eog = frozenset(order.index(token) for token in target.eog)
    row = np.random.default_rng(seed).normal(0, 3, target.size).astype(np.float32)
    np.testing.assert_array_equal(mapped(TokenMap(target, draft), row[order]), row)


def test_overlap_counts_tokens_of_a_text_of_the_target_and_of_the_draft() -> None:
    overlap = TokenMap(large(), small()).overlap
    assert overlap.draft == 8 / 9  # all but <s>
    assert overlap.target == 8 / 49  # letters, <end>, <start>
    assert 0.5 < overlap.text < 1
    assert TokenMap(ToyVocabulary([b"\x00", b"\x01"]), ToyVocabulary([b"\x01"])).overlap.text == 0.5
    assert "100% of the tokens" in str(TokenMap(small(), every_byte()).overlap)
