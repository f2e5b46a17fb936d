"""Text as it may be shown: joined it is the full decode, cut at the first stop, never half a character."""

import codecs
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.detokenize import TextStream, sanitize
from tests.engine.slow import first_stop

FAMILY = "👨‍👩‍👧 🇩🇪 漢字 e\u0301 עברית ok"
PIECES = st.lists(st.one_of(st.binary(max_size=5), st.text("ab€👩", max_size=3).map(str.encode)), max_size=12)
STOPS = st.lists(st.text("ab€👩\ufffd", min_size=1, max_size=4), max_size=3)


def stream_of(pieces: list[bytes], stops: list[str]) -> tuple[TextStream, list[str]]:
    """The stream after all pieces and `finish`, and what each call returned."""
    stream = TextStream(lambda token: pieces[token], stops)
    shown = [stream.push(token) for token in range(len(pieces))]
    return stream, [*shown, stream.finish()]


@settings(deadline=None)
@given(PIECES, STOPS)
def test_the_shown_text_is_the_full_decode_up_to_the_first_stop(pieces: list[bytes], stops: list[str]) -> None:
    whole = b"".join(pieces).decode("utf-8", "replace")
    cut = first_stop(whole, stops)
    stream, shown = stream_of(pieces, stops)
    assert "".join(shown) == stream.text == whole[:cut]
    assert stream.stopped == (cut is not None)


@settings(deadline=None)
@given(PIECES, STOPS)
def test_how_the_bytes_fall_into_tokens_does_not_matter(pieces: list[bytes], stops: list[str]) -> None:
    one, _ = stream_of([b"".join(pieces)], stops)
    many, _ = stream_of([bytes((byte,)) for piece in pieces for byte in piece], stops)
    some, _ = stream_of(pieces, stops)
    assert one.text == many.text == some.text


@settings(deadline=None)
@given(PIECES, STOPS)
def test_nothing_that_may_become_a_stop_is_shown(pieces: list[bytes], stops: list[str]) -> None:
    stream = TextStream(lambda token: pieces[token], stops)
    for token in range(len(pieces)):
        stream.push(token)
        text = b"".join(pieces[: token + 1]).decode("utf-8", "replace")
        if not stream.stopped:
            for stop in stops:
                tails = (n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n]))
                held = next(tails, 0)
                assert len(stream.text) <= len(text) - held


@settings(deadline=None)
@given(st.lists(st.text("ab€👩", max_size=3), max_size=8), st.text("ab€👩", min_size=1, max_size=3), st.data())
def test_kept_counts_the_tokens_with_a_part_before_the_cut(texts: list[str], stop: str, data: st.DataObject) -> None:
    raw = "".join(texts).encode()
    borders = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=8)) | {0, len(raw)})
    pieces = [raw[a:b] for a, b in pairwise(borders)]
    stream, _ = stream_of(pieces, [stop])
    shown = len(stream.text.encode())
    starts = borders[:-1]
    expected = sum(start < shown for start in starts) if stream.stopped else len(pieces)
    assert stream.kept == expected


@pytest.mark.parametrize("at", range(len(FAMILY.encode()) + 1))
def test_a_character_cut_anywhere_is_shown_whole(at: int) -> None:
    raw = FAMILY.encode()
    _, shown = stream_of([raw[:at], raw[at:]], [])
    assert "".join(shown) == FAMILY
    assert "\ufffd" not in "".join(shown)


def test_dangling_bytes_become_one_replacement_at_the_end_only() -> None:
    _, shown = stream_of([b"hi ", "👩".encode()[:3]], [])
    assert shown == ["hi ", "", "\ufffd"]


def test_invalid_bytes_in_the_middle_are_replaced_at_once() -> None:
    _, shown = stream_of([b"a\xff", b"\xe2\x82", b"b\xe2", b"\x82\xac"], [])
    assert shown == ["a\ufffd", "", "\ufffdb", "€", ""]


@pytest.mark.parametrize(
    ("pieces", "stops", "shown", "kept"),
    [
        (["Hi", "\nU", "ser", ":", "x"], ["\nUser:"], "Hi", 1),
        (["Hi\n", "User:"], ["\nUser:"], "Hi", 1),
        (["a", "a", "a", "b"], ["aab"], "a", 1),
        (["aaa", "b"], ["aab"], "a", 1),
        (["stop", "x"], ["stop"], "", 0),
        (["xst", "op"], ["stop"], "x", 1),
        (["one ", "END", "two"], ["two", "END"], "one ", 1),
        (["abc"], ["bc", "abc"], "", 0),
        (["ab", "c"], ["abcd", "b"], "a", 1),
        (["x", "", "", "stop", ""], ["stop"], "x", 3),
        (["Hi", "\nUse"], ["\nUser:"], "Hi\nUse", 2),
    ],
)
def test_stops(pieces: list[str], stops: list[str], shown: str, kept: int) -> None:
    stream, _ = stream_of([piece.encode() for piece in pieces], stops)
    assert (stream.text, stream.kept) == (shown, kept)


@pytest.mark.parametrize(
    ("pieces", "stop", "kept"),
    [
        ([b"\xe2", b"\xe2", b"\x82\xac"], "€", 1),
        ([b"a\xe2", b"\x82\xac"], "€", 1),
        ([b"\xe2\x82", b"a"], "a", 1),
        ([b"\xe2\x82", b"xa"], "a", 2),
        ([b"a", b"\xe2\x82", b"a"], "\ufffda", 1),
    ],
)
def test_kept_counts_where_the_first_byte_of_the_stop_came_from(pieces: list[bytes], stop: str, kept: int) -> None:
    stream, _ = stream_of(pieces, [stop])
    assert stream.stopped
    assert stream.kept == kept


def test_an_unmatched_tail_waits_and_is_shown_when_it_cannot_match() -> None:
    _, shown = stream_of([b"Hi\n", b"Us", b"e", b"d"], ["\nUser:"])
    assert shown == ["Hi", "", "", "\nUsed", ""]


def test_tokens_after_the_stop_are_ignored() -> None:
    stream = TextStream(lambda token: [b"a", b"!", b"b"][token], ["!"])
    assert [stream.push(token) for token in (0, 1, 2, 2)] == ["a", "", "", ""]
    assert (stream.text, stream.kept, stream.stopped, stream.finish()) == ("a", 1, True, "")


ESCAPES = [
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J",
    "\x1b[6n",
    "\x1bP1$r\x1b\\",
    "\x9b31m",
    "\x9d8;;x\x9c",
    "\x1b[?1003h",
    "\r",
    "\0",
    "\x7f",
]


@pytest.mark.parametrize("text", ESCAPES)
def test_no_control_character_survives(text: str) -> None:
    safe = sanitize(f"a{text}b")
    assert len(safe) == len(text) + 2
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in safe)


def test_harmless_text_is_left_alone_and_escape_is_visible() -> None:
    assert sanitize("tab\tline\n é 漢 👨‍👩‍👧 עברית") == "tab\tline\n é 漢 👨‍👩‍👧 עברית"
    assert sanitize("\x1b[31m") == "␛[31m"


@settings(deadline=None)
@given(st.text(), st.integers(0, 20))
def test_sanitizing_piece_by_piece_is_sanitizing_the_whole(text: str, at: int) -> None:
    assert sanitize(text[:at]) + sanitize(text[at:]) == sanitize(text)


@settings(deadline=None)
@given(PIECES, STOPS)
def test_each_character_is_counted_for_the_token_it_began_in(pieces: list[bytes], stops: list[str]) -> None:
    stream = TextStream(lambda token: pieces[token], stops)
    settled: list[int] = []
    for token in range(len(pieces)):
        stream.push(token)
        assert sum(stream.gained) == len(stream.text)
        assert settled == stream.gained[: len(settled)]
        assert len(settled) <= stream.settled <= stream.kept
        settled = stream.gained[: stream.settled]
    stream.finish()
    assert settled == stream.gained[: len(settled)]
    assert stream.settled == stream.kept
    assert sum(stream.gained[: stream.kept]) == len(stream.text)
    whole = [text_before(pieces, end) for end in range(len(pieces) + 1)]
    for token, gained in enumerate(stream.gained[: stream.kept - 1]):
        assert sum(stream.gained[:token]) + gained == whole[token + 1]


def text_before(pieces: list[bytes], end: int) -> int:
    """How many characters begin in the first pieces: those that are whole in them, and one that is not."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return len(decoder.decode(b"".join(pieces[:end]))) + bool(decoder.getstate()[0])


@settings(deadline=None)
@given(PIECES, STOPS, st.integers(0, 12))
def test_what_goes_on_ends_as_if_it_had_never_been_broken_off(pieces: list[bytes], stops: list[str], cut: int) -> None:
    said = codecs.getincrementaldecoder("utf-8")("replace").decode(b"".join(pieces[:cut]))
    if first_stop(said, stops) is not None:
        return
    whole, _ = stream_of(pieces, stops)
    stream = TextStream(lambda token: pieces[cut + token], stops, b"".join(pieces[:cut]))
    for token in range(len(pieces[cut:])):
        stream.push(token)
    stream.finish()
    assert stream.stopped == whole.stopped
    assert stream.kept == max(0, whole.kept - cut) if stream.stopped else stream.kept == len(pieces[cut:])
    assert sum(stream.gained[: stream.kept]) == len(stream.text)
    shown, _ = stream_of(pieces[:cut], stops)
    assert shown.text[: len(shown.text) - stream.replaces] + stream.text == whole.text


def test_a_stop_that_began_in_what_was_said_takes_that_back() -> None:
    pieces = [b"D", b"x"]
    stream = TextStream(lambda token: pieces[token], ["END"], b"so EN")
    assert [stream.push(token) for token in range(2)] == ["", ""]
    assert (stream.stopped, stream.kept, stream.replaces) == (True, 0, 2)
    stream = TextStream(lambda token: pieces[token], ["END"], b"so ENE")
    assert [stream.push(1), stream.finish(), stream.replaces] == ["x", "", 0]
