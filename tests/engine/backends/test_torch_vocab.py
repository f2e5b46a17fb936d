"""A checkpoint's vocabulary: text comes back, no control token comes from text, each id means what llama.cpp says."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.backends.llamacpp_vocab import LlamaCppVocabulary, open_vocabulary
from engine.detokenize import TextStream
from engine.errors import LoadFailed
from engine.model import Vocabulary
from engine.pairing import Fit, compare
from tests import tiny_gguf
from tests.real_vocab import WORDS

tiny_torch = pytest.importorskip("tests.tiny_torch", reason="needs the torch extra")
CheckpointVocabulary = pytest.importorskip("engine.backends.torch_vocab").CheckpointVocabulary

COLUMNS = 512
CONTROL_TEXTS = (*tiny_gguf.BPE_CONTROL, *tiny_gguf.SPM_CONTROL, "<unk>", "</s>", "<0x0A>", "<|fim_pad|>", "[PAD0]")
PIECES = (*WORDS, *CONTROL_TEXTS, "the ", "ther", "e\u0301", "\r\n", "\x00", "\u00a0", "²³", "٣", "3.14", "I'LL", "==")
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=10).map("".join)
KINDS = {
    "bpe": (tiny_torch.write_llama, tiny_gguf.write_llama, {}),
    "spm": (tiny_torch.write_gemma3, tiny_gguf.write_gemma, {"layers": 1, "template": tiny_gguf.GEMMA}),
    "spm with a space": (tiny_torch.write_gemma3, tiny_gguf.write_gemma, {"layers": 1, "space_prefix": True}),
}
ENDS = (
    "<|fim_pad|>", "<fim-pad>", "<PAD>", "<|fim_repo|>", "<|repo_name|>", "<reponame>", "<|file_sep|>", "<|eot_id|>",
    "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "</s>", "<|eom_id|>", "<EOT>",
    "_<EOT>", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
)  # fmt: skip
NO_ENDS = ("<|fim_prefix|>", "<fim_suffix>", "<MID>", "<tool_call>", "<s>", "<bos>", "<|user|>")
TOGETHER = (
    ("<|return|>", "<|call|>", "<|end|>"), ("<|return|>", "<|end|>"), ("<|calls|>", "<|flush|>", "<|end|>"),
    ("<|tool_response>", "</s>"),
)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Vocabulary, ...]]:
    """The same vocabulary, of a checkpoint and of a GGUF file."""
    write, write_gguf, more = KINDS[request.param]
    place = tmp_path_factory.mktemp("vocab")
    checkpoint = CheckpointVocabulary(write(place / "tiny", tiny_torch.Tiny(padding=3, **more)), COLUMNS)
    with open_vocabulary(write_gguf(place / "tiny.gguf", tiny_gguf.Tiny(padding=3, **more))) as gguf:
        yield checkpoint, gguf


def text_of(vocab: Vocabulary, ids: Sequence[int]) -> str:
    return b"".join(map(vocab.piece, ids)).decode()


def assert_same(one: Vocabulary, other: LlamaCppVocabulary) -> None:
    """All that a vocabulary says is the same in both."""
    assert compare(one, other) == Fit()
    assert dict(one.control) == dict(other.control)
    assert (one.size, one.eog, one.eos, one.bos) == (other.size, other.eog, other.eos, other.bos)
    assert (one.strips, one.chat_template) == (other.strips, other.chat_template)


def edit(folder: Path, name: str, change: Callable[[dict], object]) -> None:
    """Change one of the JSON files of a folder; what is not there begins empty."""
    path = folder / name
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_torch.write_tokenizer(tmp_path / "tiny")


@given(TEXTS)
def test_text_comes_back_and_becomes_no_control_token(both: tuple[Vocabulary, ...], text: str) -> None:
    vocab, _ = both
    ids = vocab.tokenize(text)
    prefix = text_of(vocab, vocab.tokenize("a"))[:-1] if text else ""
    assert text_of(vocab, ids) == prefix + text.replace("▁", " " if vocab.bos else "▁")
    assert not set(ids) & set(vocab.control.values())
    stream = TextStream(vocab.piece)
    assert "".join([*map(stream.push, ids), stream.finish()]) == text_of(vocab, ids)


@settings(max_examples=300)
@given(TEXTS)
def test_ids_are_those_of_llama_cpp(both: tuple[Vocabulary, ...], text: str) -> None:
    vocab, gguf = both
    assert vocab.tokenize(text) == gguf.tokenize(text)


def test_each_id_means_what_it_means_in_a_gguf_file(both: tuple[Vocabulary, ...]) -> None:
    assert_same(*both)


@pytest.mark.parametrize("names", [*((name,) for name in (*ENDS, *NO_ENDS)), *TOGETHER], ids=" ".join)
def test_what_llama_cpp_knows_by_name_ends_an_answer(tmp_path: Path, names: tuple[str, ...]) -> None:
    vocab = CheckpointVocabulary(tiny_torch.write_tokenizer(tmp_path / "tiny", tiny_torch.Tiny(extra=names)), COLUMNS)
    with open_vocabulary(tiny_gguf.write_llama(tmp_path / "tiny.gguf", tiny_gguf.Tiny(extra=names))) as gguf:
        assert vocab.eog == gguf.eog
        assert dict(vocab.control) == dict(gguf.control)


def test_a_known_name_that_is_no_special_token_is_one_here(folder: Path) -> None:
    def add(document: dict) -> None:
        size = max(entry["id"] for entry in document["added_tokens"]) + 1
        flags = {"single_word": False, "lstrip": False, "rstrip": True, "normalized": False, "special": False}
        document["added_tokens"] += [
            {"id": size + at, "content": text, **flags} for at, text in enumerate(("<|fim_pad|>", "<tool_call>"))
        ]

    edit(folder, "tokenizer.json", add)
    vocab = CheckpointVocabulary(folder, COLUMNS)
    pad, call = vocab.size - 2, vocab.size - 1
    assert vocab.control["<|fim_pad|>"] == pad
    assert pad in vocab.eog
    assert vocab.strips == (frozenset(), {pad})
    assert pad not in vocab.tokenize("a<|fim_pad|>")
    assert text_of(vocab, vocab.tokenize("a<|fim_pad|>")) == "a<|fim_pad|>"
    assert vocab.tokenize("<tool_call>") == [call]  # what is no control token may come from text, as in llama.cpp
    assert vocab.piece(call) == b"<tool_call>"
    assert call not in vocab.eog


def test_a_known_name_that_text_becomes_is_text(folder: Path) -> None:
    def add(document: dict) -> None:
        words = document["model"]["vocab"]
        words |= {"</": 280, "</s": 281, "</s>": 282}
        document["model"]["merges"] += [["<", "/"], ["</", "s"], ["</s", ">"]]
        document["pre_tokenizer"]["use_regex"] = False

    edit(folder, "tokenizer.json", add)
    vocab = CheckpointVocabulary(folder, COLUMNS)
    assert vocab.tokenize("</s>") == [282]
    assert vocab.piece(282) == b"</s>"
    assert 282 not in vocab.eog


def test_holes_and_padding(folder: Path) -> None:
    edit(folder, "tokenizer.json", lambda document: document["model"]["vocab"].update({"late": 300}))
    vocab = CheckpointVocabulary(folder, 320)
    assert (vocab.size, vocab.columns) == (301, 320)
    assert (vocab.piece(299), vocab.piece(300)) == (b"", b"late")
    for token in (-1, 301, 319):
        with pytest.raises(IndexError, match="300"):
            vocab.piece(token)


def test_control_tokens_without_a_column_are_left_out(folder: Path) -> None:
    vocab = CheckpointVocabulary(folder, 272)
    assert (vocab.size, list(vocab.control), vocab.eos) == (272, ["<|endoftext|>"], None)
    assert vocab.eog == {271}


def test_a_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    with pytest.raises(LoadFailed, match=r"271 tokens, its model 260.*fetch"):
        CheckpointVocabulary(folder, 260)


def test_what_a_tokenizer_would_cut_fill_or_compose_stays(folder: Path) -> None:
    plain = CheckpointVocabulary(folder, COLUMNS).tokenize("e\u0301 the the")
    cut = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    fill = {
        "strategy": {"Fixed": 99}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "a",
    }  # fmt: skip
    changes: list[dict] = [
        {"truncation": cut},
        {"padding": fill},
        {"normalizer": {"type": "NFC"}},
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}},
    ]
    for change in changes:
        edit(folder, "tokenizer.json", lambda document, change=change: document.update(change))
        assert CheckpointVocabulary(folder, COLUMNS).tokenize("e\u0301 the the") == plain


def test_surrogates_are_read_as_elsewhere(folder: Path) -> None:
    vocab = CheckpointVocabulary(folder, COLUMNS)
    assert vocab.tokenize("a\ud800") == vocab.tokenize("a?")


@pytest.mark.parametrize("columns", [COLUMNS, 271])
def test_what_no_token_spells_becomes_no_control_token(folder: Path, columns: int) -> None:
    def lose(document: dict) -> None:
        del document["model"]["vocab"]["z"]
        document["model"]["vocab"]["<|endoftext|>"] = 271
        document["model"]["unk_token"] = "<|endoftext|>"

    edit(folder, "tokenizer.json", lose)
    vocab = CheckpointVocabulary(folder, columns)
    assert vocab.tokenize("azb") == vocab.tokenize("a") + vocab.tokenize("b")


def test_every_file_may_name_ends(folder: Path) -> None:
    assert CheckpointVocabulary(folder, COLUMNS).eog == {271, 273}
    edit(folder, "generation_config.json", lambda document: document.update(eos_token_id=[65, 9999, None]))
    edit(folder, "config.json", lambda document: document.update(eos_token_id=66, text_config={"eos_token_id": [67]}))
    edit(folder, "tokenizer_config.json", lambda document: document.update(eos_token="<|im_start|>"))
    assert CheckpointVocabulary(folder, COLUMNS).eog == {65, 66, 67, 271, 272, 273}


def test_what_opens_a_prompt(folder: Path) -> None:
    def opening(**config: object) -> int | None:
        edit(folder, "tokenizer_config.json", lambda document: document.update(config))
        return CheckpointVocabulary(folder, COLUMNS).bos

    assert opening() is None
    assert opening(bos_token={"content": "<|im_start|>"}) is None
    assert opening(add_bos_token=True) == 272
    assert opening(add_bos_token=False) is None
    special = {"<|im_end|>": {"id": "<|im_end|>", "ids": [273], "tokens": ["<|im_end|>"]}}
    end, text = {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    for puts, config, opens in (
        ([text, end], None, None),
        ([end, text], None, 273),
        ([end, text], False, None),
    ):
        processor = {"type": "TemplateProcessing", "single": puts, "pair": puts, "special_tokens": special}
        edit(folder, "tokenizer.json", lambda document, it=processor: document.update(post_processor=it))
        assert opening(add_bos_token=config) == opens


def test_where_a_chat_template_may_stand(folder: Path) -> None:
    def template() -> str | None:
        return CheckpointVocabulary(folder, COLUMNS).chat_template

    assert template() == tiny_gguf.CHATML
    named = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes"}]
    edit(folder, "tokenizer_config.json", lambda document: document.update(chat_template=named))
    assert template() == "yes"
    edit(folder, "tokenizer_config.json", lambda document: document.pop("chat_template"))
    assert template() is None
    edit(folder, "chat_template.json", lambda document: document.update(chat_template="beside"))
    assert template() == "beside"
    (folder / "chat_template.jinja").write_text("first", encoding="utf-8")
    assert template() == "first"


def test_fingerprints(tmp_path: Path) -> None:
    def of(name: str, tiny: object, **config: object) -> str:
        folder = tiny_torch.write_tokenizer(tmp_path / name, tiny)
        edit(folder, "config.json", lambda document: document.update(config))
        return CheckpointVocabulary(folder, COLUMNS).fingerprint

    plain = of("plain", tiny_torch.Tiny())
    assert of("twin", tiny_torch.Tiny(template="other")) == plain
    others = {
        of("more", tiny_torch.Tiny(extra=("more",))),
        of("joined", tiny_torch.Tiny(merges=[*tiny_gguf.MERGES[:-1], "a n"])),
        of("ends", tiny_torch.Tiny(), eos_token_id=65),
    }
    assert len(others | {plain}) == 4


KINDLESS = {"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0], ["<s>", 0.0]], "byte_fallback": False}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("tokenizer.json", None, "no tokenizer.json.*or a GGUF file"),
        ("tokenizer.json", "{}", "tokenizer.json is damaged.*fetch it again"),
        ("tokenizer.json", '{"model": ', "tokenizer.json is damaged.*fetch it again"),
        ("tokenizer_config.json", '{"eos', "tokenizer_config.json is damaged.*fetch it again"),
        ("tokenizer_config.json", b"\xff\xfe", "tokenizer_config.json is damaged.*fetch it again"),
        ("tokenizer_config.json", "[" * 100_000, "tokenizer_config.json is damaged.*fetch it again"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(folder: Path, name: str, text: str | bytes | None, says: str) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LoadFailed, match=says) as raised:
        CheckpointVocabulary(folder, COLUMNS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("change", [{"model": KINDLESS}, {"decoder": None}, {"decoder": {"type": "Fuse"}}])
def test_kinds_that_are_not_read_are_refused(folder: Path, change: dict) -> None:
    edit(folder, "tokenizer.json", lambda document: document.update(change))
    with pytest.raises(LoadFailed, match="kind that is not read: take a GGUF file"):
        CheckpointVocabulary(folder, COLUMNS)


@pytest.mark.tiny
def test_a_real_vocabulary_is_that_of_its_gguf_file(tiny_path: Path, tmp_path: Path) -> None:
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    converted = AutoTokenizer.from_pretrained(tiny_path.parent, gguf_file=tiny_path.name)
    # transformers' conversion forgets that this vocabulary takes each digit by itself, which its own checkpoint says
    steps = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    converted.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    converted.save_pretrained(tmp_path)
    with open_vocabulary(tiny_path) as gguf:
        vocab = CheckpointVocabulary(tmp_path, gguf.columns)
        assert_same(vocab, gguf)

        @settings(max_examples=500)
        @given(TEXTS)
        def ids_are_the_same(text: str) -> None:
            assert vocab.tokenize(text) == gguf.tokenize(text)

        ids_are_the_same()
