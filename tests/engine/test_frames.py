import io
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import errors, frames
from engine.config import EngineConfig, Message, Request, Sampling, Speculation
from engine.errors import ConfigError, EngineError, PromptTooLong
from engine.events import Failed, Finished, Kept, Loaded, Loading, Reading, Resumed, Round, Tokens
from engine.frames import (
    Ask,
    BadFrame,
    Count,
    Counted,
    Keep,
    Load,
    Noted,
    Prepare,
    Quit,
    Resume,
    SetSpeculation,
    Stop,
)
from tests.engine.host_fake import answer_of

texts = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.lists(st.integers(0, 2**31))
requests = st.builds(
    Request,
    messages=st.lists(
        st.builds(
            Message,
            role=st.sampled_from(["system", "user", "assistant"]),
            content=texts,
            ids=st.none() | ids.map(tuple),
        )
    ).map(tuple),
    sampling=st.builds(
        Sampling,
        temperature=st.floats(0, 10),
        seed=st.none() | st.integers(0, 2**63 - 1),
        logit_bias=st.dictionaries(st.integers(0, 2**31), st.floats(-100, 100) | st.just(-math.inf)),
    ),
    stop=st.lists(texts.filter(bool)).map(tuple),
)
counts = st.integers(0, 2**40)
speculations = st.builds(Speculation) | st.builds(Speculation, mode=st.just("fixed"), length=st.integers(1, 64))
paths = st.binary(min_size=1).map(lambda raw: Path(raw.replace(b"\0", b"/").decode("utf-8", "surrogateescape")))
commands = (
    st.builds(Ask, request=requests)
    | st.builds(Load, config=st.builds(EngineConfig, target=paths, draft=st.none() | paths))
    | st.builds(SetSpeculation, speculation=speculations)
    | st.builds(Keep, folder=paths, most=st.none() | counts)
    | st.builds(Resume, folder=paths)
    | st.builds(Prepare, request=requests)
    | st.builds(Count, texts=st.lists(texts))
    | st.builds(Stop)
    | st.builds(Quit)
)
rounds = st.builds(
    Round,
    source=st.sampled_from(["lookup", "model", "exit", None]),
    drafted=counts,
    accepted=counts,
    emitted=counts,
    context=counts,
    ms=st.floats(0, 1e9),
    plan=texts,
    speculation=speculations,
)
replies = (
    st.builds(Loading, what=texts, share=st.floats(0, 1))
    | st.builds(Loaded, target=texts, draft=st.none() | texts, n_ctx=st.integers(1, 2**31), device=texts)
    | st.builds(Reading, model=st.just("target"), reused=st.just(0), done=st.just(1), total=st.just(2))
    | st.builds(Tokens, text=texts, ids=ids, origins=st.lists(st.sampled_from(["target", "lookup", "model", "exit"])))
    | rounds
    | st.builds(Finished, answer=ids.map(answer_of))
    | st.builds(Failed, kind=texts, message=texts, numbers=st.dictionaries(texts, st.integers(-(2**63), 2**63)))
    | st.builds(Kept, bytes=counts, reason=texts)
    | st.builds(Resumed, target=counts, draft=st.none() | counts, reason=texts)
    | st.builds(Counted, counts=st.lists(counts), failed=texts)
    | st.builds(Noted)
)


@given(st.lists(commands))
def test_commands_come_back_as_they_went(sent: list[frames.AnyCommand]) -> None:
    stream = io.BytesIO(b"".join(frames.pack(command) for command in sent))
    assert list(frames.read(stream, frames.commands)) == sent


@given(st.lists(replies))
def test_replies_come_back_as_they_went(sent: list[frames.Reply]) -> None:
    stream = io.BytesIO(b"".join(frames.pack(reply) for reply in sent))
    assert list(frames.read(stream, frames.replies)) == sent


@given(commands, st.data())
def test_a_cut_stream_is_told_from_an_ended_one(command: frames.AnyCommand, data: st.DataObject) -> None:
    frame = frames.pack(command)
    cut = data.draw(st.integers(1, len(frame) - 1))
    with pytest.raises(BadFrame, match="the stream ends"):
        list(frames.read(io.BytesIO(frame[:cut]), frames.commands))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_record_or_a_bad_frame(body: bytes) -> None:
    try:
        frames.unpack(body, frames.commands)
    except BadFrame:
        return
    assert msgspec.msgpack.decode(body)


def test_a_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    with pytest.raises(BadFrame, match="over the limit"):
        list(frames.read(io.BytesIO(b"\xff\xff\xff\xff" + b"x" * 16), frames.commands))


def test_a_value_out_of_range_is_a_bad_frame() -> None:
    body = msgspec.msgpack.encode({"type": "SetSpeculation", "speculation": {"mode": "fixed", "length": 1000}})
    with pytest.raises(BadFrame, match="1000"):
        frames.unpack(body, frames.commands)


def test_a_message_over_the_limit_is_refused_by_the_sender() -> None:
    message = Message(role="user", content="x" * (frames.LIMIT + 1))
    with pytest.raises(ConfigError, match="shorten it"):
        frames.pack(Ask(request=Request(messages=(message,))))


def test_half_a_surrogate_pair_is_refused_by_the_sender() -> None:
    with pytest.raises(ConfigError, match="ud83d"):
        frames.pack(Ask(request=Request(messages=(Message(role="user", content="\ud83d"),))))


def test_a_number_of_more_than_64_bits_is_refused_by_the_sender() -> None:
    with pytest.raises(ConfigError, match="too large"):
        frames.pack(Ask(request=Request(messages=(), max_tokens=2**70)))


def error_kinds() -> list[type[EngineError]]:
    kinds: list[type[EngineError]] = [EngineError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return [kind for kind in kinds if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", error_kinds())
def test_every_error_of_the_tree_crosses(kind: type[EngineError]) -> None:
    error = PromptTooLong(100, 64) if kind is PromptTooLong else kind("wrong:\n do this")
    back = frames.error_of(frames.failed(error))
    assert type(back) is kind
    assert str(back) == " ".join(str(error).split())
    assert vars(back) == vars(error)


@pytest.mark.parametrize("kind", ["internal", "OSError", "Exception", "", "__name__"])
def test_a_kind_outside_the_tree_is_the_base(kind: str) -> None:
    assert type(frames.error_of(Failed(kind=kind, message="x"))) is EngineError
