"""The shape of a model: any header gives facts that can be counted with, or one error that names the file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import fit
from models.errors import NotGGUF
from models.facts import facts
from models.gguf import MAX_KEPT, Header, Skipped, Value

WHOLE: dict[str, Value] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 8,
    "llama.context_length": 512,
    "llama.attention.head_count": 2,
    "tokenizer.ggml.tokens": Skipped(32),
}
KEYS = [
    *WHOLE,
    "llama.attention.head_count_kv",
    "llama.attention.key_length",
    "llama.attention.value_length",
    "llama.vocab_size",
]
SCALARS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.integers(0, 9), st.floats(), st.booleans())
VALUES = st.one_of(
    SCALARS, st.text(max_size=9), st.lists(SCALARS, max_size=4).map(tuple), st.integers(0, 2**26).map(Skipped)
)


def header(metadata: dict[str, Value], name: str = "m.gguf") -> Header:
    return Header(Path(name), 1000, 3, metadata, 1, 400, 600, 1000, 32, True)


def check_named(message: str) -> None:
    assert message.startswith("m.gguf ")
    assert message.isprintable()


@given(changed=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_metadata_gives_facts_or_a_named_error(changed: dict[str, Value]) -> None:
    try:
        shape = facts(header({**WHOLE, **changed}))
    except NotGGUF as error:
        check_named(str(error))
        return
    assert min(shape.n_layer, shape.n_embd, shape.n_ctx_train) > 0
    numbers = (shape.n_vocab, shape.n_layer, shape.n_embd, shape.n_head, shape.kv_width, shape.n_ctx_train)
    assert all(type(number) is int and number >= 0 for number in numbers)
    load = fit.Load(weights=1000, facts=shape)
    assert fit.need([load], 512) >= 1000
    assert 0 <= fit.largest_context([load], 8192, 1 << 30) <= 8192


@pytest.mark.parametrize("key", ["llama.attention.head_count", "llama.attention.head_count_kv"])
@pytest.mark.parametrize("numbers", [(float("nan"), 1), (1, float("inf")), (2.5, 2), (2, -1), (True, True), (2,), ()])
def test_numbers_by_layer_are_whole_and_one_for_each_layer(key: str, numbers: tuple[int | float, ...]) -> None:
    with pytest.raises(NotGGUF, match=f"m.gguf says nothing of use about {key}: "):
        facts(header({**WHOLE, key: numbers}))


@pytest.mark.parametrize("key", ["llama.block_count", "llama.embedding_length", "llama.context_length"])
@pytest.mark.parametrize("value", [0, -1, 2**32, True, 2.0, "2", Skipped(2), (2, 2)])
def test_what_is_no_number_of_something_is_refused(key: str, value: Value) -> None:
    with pytest.raises(NotGGUF, match=f"m.gguf says nothing of use about {key}: "):
        facts(header({**WHOLE, key: value}))


def test_as_many_layers_as_can_be_told_apart() -> None:
    assert facts(header({**WHOLE, "llama.block_count": MAX_KEPT})).n_layer == MAX_KEPT
    with pytest.raises(NotGGUF, match="block_count"):
        facts(header({**WHOLE, "llama.block_count": MAX_KEPT + 1}))


def test_an_error_names_the_file_and_shows_no_control_characters() -> None:
    with pytest.raises(NotGGUF, match=r"draft\.gguf names no architecture"):
        facts(header({}, "draft.gguf"))
    with pytest.raises(NotGGUF, match=r"draft\.gguf says nothing") as raised:
        facts(header({"general.architecture": "\x1b[2J\n" + "x" * 5000}, "draft.gguf"))
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300
