"""The header reader: right on whole files, and one named error on every other kind of bytes."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES
from hypothesis import given
from hypothesis import strategies as st

from models import gguf
from models.errors import BadFile, NotGGUF, NotWritable, Oversized, Truncated
from tests.models import tinygguf as make


def written(folder: Path, content: bytes, name: str = "m.gguf") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    header = gguf.check(written(tmp_path, make.tiny()))
    assert header.version == 3
    assert header.metadata["llama.block_count"] == 2
    assert header.metadata["tokenizer.ggml.tokens"] == gguf.Skipped(32)
    assert (header.tensors, header.weights, header.exact) == (2, 384, True)
    assert header.expected_bytes == len(make.tiny())


def test_what_the_reference_writer_writes(tmp_path: Path) -> None:
    path = tmp_path / "w.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(3)
    writer.add_array("llama.attention.head_count_kv", [1, 0, 2])
    writer.add_token_list([f"ü{n}" for n in range(70_000)])
    writer.add_token_scores([0.5] * 70_000)
    writer.add_bool("flag", True)
    writer.add_tensor("odd", np.zeros((3, 5), dtype=np.float32))
    writer.add_tensor("half", np.zeros((4, 4), dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = gguf.check(path)
    assert header.metadata["llama.attention.head_count_kv"] == (1, 0, 2)
    assert header.metadata["tokenizer.ggml.tokens"] == gguf.Skipped(70_000)
    assert header.metadata["tokenizer.ggml.scores"] == gguf.Skipped(70_000)
    assert header.metadata["flag"] is True
    assert header.weights == 3 * 5 * 4 + 4 * 4 * 2


def test_every_tensor_type_has_its_size() -> None:
    assert {int(kind): size for kind, size in GGML_QUANT_SIZES.items()} == gguf.TENSOR_TYPES


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = make.tiny()
    path = tmp_path / "cut.gguf"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Truncated, match="incomplete"):
            gguf.check(path)


def test_a_cut_names_both_lengths(tmp_path: Path) -> None:
    whole = make.tiny()
    with pytest.raises(Truncated, match=f"incomplete: {len(whole) - 1:,} of {len(whole):,} bytes"):
        gguf.check(written(tmp_path, whole[:-1]))


def test_a_byte_too_many_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Oversized, match=r"too long: [\d,]+ bytes where its header says [\d,]+; fetch it again"):
        gguf.check(written(tmp_path, make.tiny() + b"\0"))


def test_padding_after_the_last_tensor_may_be_there_or_not(tmp_path: Path) -> None:
    data = bytes(20)
    bare = make.gguf(make.described(), [make.tensor("a", [5], 0, 0)], data)
    for padding in range(13):
        assert gguf.check(written(tmp_path, bare + bytes(padding))).expected_bytes == len(bare)


def test_an_unknown_architecture_or_tensor_type_is_no_fault_of_the_file(tmp_path: Path) -> None:
    assert gguf.check(written(tmp_path, make.tiny("zebra"))).metadata["general.architecture"] == "zebra"
    newer = make.gguf(make.described(), [make.tensor("a", [5], 999, 0)], bytes(4000))
    assert gguf.check(written(tmp_path, newer)).exact is False


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html>sign in", "web page"),
        (b"\n  <html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"lmgg" + bytes(100), "old GGML"),
        (b"tjgg" + bytes(100), "old GGJT"),
        (b"PK\x03\x04" + bytes(100), "zip archive"),
        (b"hello, this is text", "no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1, too old"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "version 9, too new"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    ],
)
def test_what_only_looks_like_a_model_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(NotGGUF, match=words):
        gguf.check(written(tmp_path, content))


HUGE = 2**63


@pytest.mark.parametrize(
    "content",
    [
        make.gguf([], counts=(HUGE, 0)),
        make.gguf([], counts=(0, HUGE)),
        make.gguf([struct.pack("<Q", HUGE)], counts=(0, 1)),
        make.gguf([make.entry("k", 8, struct.pack("<Q", HUGE))]),
        make.gguf([make.entry("k", 9, struct.pack("<IQ", 8, HUGE))]),
        make.gguf([make.entry("k", 9, struct.pack("<IQ", 0, HUGE))]),
        make.gguf([make.entry("k", 9, struct.pack("<IQ", 9, 1))]),
        make.gguf([make.entry("k", 9, struct.pack("<IQQ", 8, 1, HUGE))]),
        make.gguf([make.entry("k", 77, b"")]),
        make.gguf([make.number("general.alignment", 0)]),
        make.gguf([], [make.text("t") + struct.pack("<I", 2**31)]),
        make.gguf([], [make.tensor("t", [2**62, 2**62], 0, 0)], bytes(64)),
    ],
)
def test_claims_beyond_reason_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BadFile):
        gguf.check(written(tmp_path, content))


@pytest.mark.parametrize(
    "start",
    [
        make.gguf([], counts=(2**20, 0)),
        make.gguf([], counts=(0, 2**20)),
        make.gguf([make.entry("k", 8, struct.pack("<Q", 2**25))]),
        make.gguf([struct.pack("<Q", 2**20)], counts=(0, 1)),
        make.gguf([make.entry("k", 9, struct.pack("<IQ", 8, 2**24 - 99))]),
        make.gguf([make.entry("k", 9, struct.pack("<IQ", 0, 2**26 + 99))]),
    ],
    ids=["tensors", "entries", "text", "key", "texts", "bytes"],
)
def test_claims_that_fit_a_huge_file_are_refused_too(tmp_path: Path, start: bytes) -> None:
    path = written(tmp_path, start)
    with path.open("r+b") as file:
        file.truncate(2 * gguf.MAX_HEADER)
    with pytest.raises(NotGGUF, match=r"header (claims|is longer)"):
        gguf.check(path)


@pytest.mark.parametrize(
    "alignment",
    [make.entry("general.alignment", 8, make.text("\x1b[2J\n" * 500)), make.entry("general.alignment", 7, b"\1")],
    ids=["text", "truth"],
)
def test_an_alignment_of_another_type_is_named_on_one_line(tmp_path: Path, alignment: bytes) -> None:
    path = written(tmp_path, make.gguf([alignment], [make.tensor("t", [1], 0, 0)], bytes(4)))
    with pytest.raises(NotGGUF, match="claims an alignment") as raised:
        gguf.check(path)
    assert str(raised.value).isprintable()


def check_outcome(path: Path) -> str:
    try:
        gguf.check(path)
    except BadFile as error:
        return str(error)
    return "whole"


@given(position=st.integers(4, 500), value=st.integers(0, 255))
def test_any_changed_byte_gives_a_header_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    content = bytearray(make.tiny())
    content[position % len(content)] = value
    path = written(tmp_path_factory.getbasetemp(), bytes(content), "changed.gguf")
    outcome = check_outcome(path)
    assert outcome == "whole" or outcome.isprintable()


@pytest.mark.parametrize("name", ["модель", "模型 文件", "🚴 d", "x" * 200])
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert gguf.check(written(folder, make.tiny(), f"{name}.gguf")).tensors == 2


@pytest.mark.parametrize("path", ["nowhere.gguf", ".", "a\0b"])
def test_a_path_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotWritable, match="cannot be read"):
        gguf.check(tmp_path / path)
