"""What only the llama.cpp backend has: broken files, its log, its failures, saved caches, windows."""

import ctypes
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.llamacpp_library import (
    cpu_features,
    gpu_name,
    gpu_offload,
    lib,
    library_version,
    reason,
)
from engine.errors import Interrupted, LoadFailed, ModelError
from tests.engine.backends.contract import fresh_row, interrupted_pass, some_ids
from tests.tiny_gguf import Tiny, write_llama

IDS = list(range(40, 60))
Open = Callable[..., LlamaCppModel]


def damaged(good: bytes) -> dict[str, tuple[bytes, str]]:
    """Content of a file that is no model, and what the message must say."""
    return {
        "empty": (b"", "magic"),
        "html": (b"<!DOCTYPE html><html>nothing here</html>", "invalid magic"),
        "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "invalid magic"),
        "old": (b"lmgg" + good[4:], "invalid magic"),
        "zeros": (bytes(5000), "invalid magic"),
        "in the header": (good[:15], "header"),
        "in the keys": (good[:300], "key-value"),
        "in the table": (good[: good.index(b"output_norm")], "remaining file size"),
        "in the data": (good[: len(good) // 2], "not within the file bounds"),
        "by a byte": (good[:-1], "not within the file bounds"),
        "version": (good[:4] + (9).to_bytes(4, "little") + good[8:], "version 9.*newer release"),
        "count": (good[:8] + (2**60).to_bytes(8, "little") + good[16:], "number of tensors"),
        "architecture": (good.replace(b"llama", b"zebra"), "'zebra'; take another model"),
        "tensor": (good.replace(b"output_norm.weight", b"output_norn.weight"), "output_norm.weight.*fetch it again"),
        "tokenizer": (good.replace(b"default", b"defaulx"), "defaulx"),
        "weights": (good[:-200_000] + np.full(50_000, np.nan, np.float32).tobytes(), "damaged weights.*fetch it again"),
    }


@pytest.mark.parametrize("kind", list(damaged(b"output_norm")))
def test_a_broken_file_is_refused_in_one_line(
    files: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    content, why = damaged((files / "llama.gguf").read_bytes())[kind]
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(LoadFailed, match=f"broken.gguf.*{why}") as caught:
        LlamaCppModel(LlamaCppOptions(path=path))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_settings_that_cannot_be_are_refused_before_the_file_is_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(LoadFailed, match=r"there is no model file.*check the path"):
            LlamaCppModel(LlamaCppOptions(path=path))
    for kv in ("q8_0", "q4_0"):
        with pytest.raises(LoadFailed, match=f"{kv} cache needs flash attention"):
            LlamaCppModel(LlamaCppOptions(path=tmp_path / "none.gguf", kv=kv, flash_attention="off"))


def test_more_context_than_it_was_trained_for_is_refused(load: Open) -> None:
    with pytest.raises(LoadFailed, match=r"4,096 tokens of context, not 4,097: take a smaller --ctx"):
        load(n_ctx=4097)
    assert load(n_ctx=4096).n_ctx == 4096


def test_the_facts_of_a_model(load: Open, files: Path, tmp_path: Path) -> None:
    model = load(n_ctx=None, threads=None)
    assert (model.n_ctx, model.n_ctx_train, model.n_batch) == (4096, 4096, 512)
    assert (model.file, model.kv, model.device) == (files / "llama.gguf", "f16", gpu_name() or "cpu")
    assert model.threads >= 1
    long = write_llama(tmp_path / "long.gguf", Tiny(n_ctx=20_000))
    model = LlamaCppModel(LlamaCppOptions(path=long, threads=1))
    assert model.n_ctx == 8192
    model.close()


@pytest.mark.skipif(gpu_name() is not None, reason="a GPU has defaults of its own")
@pytest.mark.parametrize(
    ("kv", "asked", "used"),
    [("f16", "auto", "off"), ("f16", "on", "on"), ("f16", "off", "off"), ("q8_0", "auto", "on"), ("q4_0", "on", "on")],
)
def test_flash_attention_is_decided_here(load: Open, kv: str, asked: str, used: str) -> None:
    model = load(kv=kv, flash_attention=asked)
    assert model.flash_attention == used
    assert np.isfinite(model.forward(IDS, 1)).all()


def test_progress_is_told_and_can_stop_a_load(files: Path) -> None:
    options = LlamaCppOptions(path=files / "llama.gguf", threads=1)
    shares: list[float] = []
    LlamaCppModel(options, shares.append).close()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0

    def stop(_share: float) -> None:
        raise Interrupted("the user does not want it any more")

    with pytest.raises(Interrupted, match="any more"):
        LlamaCppModel(options, stop)


def test_all_chatter_goes_to_the_logger(
    load: Open, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "paceline.llama"):
        model = load()
        model.forward(IDS, 1)
        model.close()
    assert len(caplog.records) > 50
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert capfd.readouterr() == ("", "")


def test_a_path_in_any_script(files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "モデル ü 😀"
    folder.mkdir()
    path = folder / "Модель.gguf"
    path.write_bytes((files / "llama.gguf").read_bytes())
    model = LlamaCppModel(LlamaCppOptions(path=path, threads=1))
    model.forward(IDS, 0)
    model.save(folder / "кэш")
    model.load(folder / "кэш")
    assert model.length == len(IDS)
    model.close()


def test_a_closed_model_is_an_error_and_no_crash(load: Open, tmp_path: Path) -> None:
    model = load()
    model.close()
    for use in (
        lambda: model.forward([1], 1),
        lambda: model.rewind(0),
        lambda: model.save(tmp_path / "cache"),
        lambda: model.load(tmp_path / "cache"),
        lambda: model.vocab.tokenize("a"),
        lambda: model.vocab.piece(65),
    ):
        with pytest.raises(ModelError, match="closed"):
            use()


def test_the_abort_question_reads_the_flag(load: Open) -> None:
    model = load()
    address = ctypes.addressof(model._flag)
    assert not model._abort(address)
    model.interrupt()
    assert model._abort(address)
    model.forward([1], 1)
    assert not model._abort(address)


def saved(model: LlamaCppModel, path: Path) -> Path:
    model.rewind(0)
    model.forward(IDS, 0)
    model.save(path)
    return path


def expect_unusable(model: LlamaCppModel, path: Path, why: str) -> None:
    model.rewind(0)
    model.forward([5, 6], 0)
    with pytest.raises(LoadFailed, match=why) as caught:
        model.load(path)
    assert "\n" not in str(caught.value)
    assert model.length == 0
    model.forward([1], 1)


def test_a_cache_of_another_kind_is_refused(load: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load()
    path = saved(model, tmp_path / "cache")
    expect_unusable(load("other"), path, "its model is")
    expect_unusable(load(kv="q8_0"), path, "its kv is f16, here it is q8_0")
    expect_unusable(load(flash_attention="on"), path, "its flash attention is off, here it is on")
    expect_unusable(load(n_ctx=16), path, "20 tokens and the context 16")
    monkeypatch.setattr("engine.backends.llamacpp.library_version", lambda: "another")
    expect_unusable(load(), path, "its library is")


def test_a_damaged_cache_is_refused(load: Open, tmp_path: Path) -> None:
    model = load()
    path = saved(model, tmp_path / "cache")
    whole = path.read_bytes()
    for place in (len(whole) - 1, len(whole) // 2, len(whole) - 5000):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        expect_unusable(model, path, "checksum")
    for content in (whole[:-1], whole + b"\0"):
        path.write_bytes(content)
        expect_unusable(model, path, "incomplete")
    for content in (whole[:20], whole[:10], whole[:14] + b"\xff\xff\xff\xff" + whole[18:]):
        path.write_bytes(content)
        expect_unusable(model, path, "cannot be used")
    assert whole.count(b'"length":20') == 1
    path.write_bytes(whole.replace(b'"length":20', b'"length":21'))
    expect_unusable(model, path, "does not take it")
    path.write_bytes(whole)
    model.load(path)
    assert model.length == len(IDS)


def test_a_saved_cache_is_private_and_whole(load: Open, tmp_path: Path) -> None:
    path = saved(load(), tmp_path / "cache")
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in tmp_path.iterdir()] == ["cache"]
    with pytest.raises(OSError):
        load().save(tmp_path / "no such folder" / "cache")


@pytest.mark.parametrize("role", ["bos", "eos"])
def test_a_token_that_a_file_lacks_is_none(load: Open, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    """Though the file wants prompts to be opened."""
    monkeypatch.setattr(lib, f"llama_vocab_{role}", lambda _: -1)
    assert getattr(load("gemma").vocab, role) is None


def test_the_vocabulary_of_a_chat_model(load: Open) -> None:
    vocab = load().vocab
    assert sorted(vocab.control) == ["<|endoftext|>", "<|im_end|>", "<|im_start|>"]
    assert vocab.control["<|im_end|>"] in vocab.eog
    assert vocab.bos is None
    assert vocab.chat_template is not None
    assert "<|im_start|>" in vocab.chat_template
    assert load("gemma").vocab.bos == 2
    for text in ("", "the 😀 \0 \r\n ~", "<|im_end|>\n<|im_start|>system", "\udcff"):
        ids = vocab.tokenize(text)
        assert not set(ids) & set(vocab.control.values())
        assert b"".join(map(vocab.piece, ids)) == text.encode("utf-8", "replace")


def test_padding_is_no_part_of_the_vocabulary(load: Open, files: Path) -> None:
    plain = load().vocab
    write_llama(files / "padded.gguf", Tiny(padding=13))
    padded = load("padded")
    assert padded.vocab.size == plain.size
    assert padded.vocab.columns == plain.columns + 13
    assert padded.vocab.fingerprint == plain.fingerprint
    with pytest.raises(ValueError):
        padded.forward([plain.size], 1)


def test_fingerprints_tell_vocabularies_apart(load: Open, files: Path) -> None:
    one = load().vocab.fingerprint
    assert load("other").vocab.fingerprint == one
    write_llama(files / "more.gguf", Tiny(extra=("more",)))
    assert len({one, load("more").vocab.fingerprint, load("gemma").vocab.fingerprint}) == 3


def test_what_the_doctor_asks() -> None:
    can, why = gpu_offload()
    assert can == (gpu_name() is not None)
    assert why
    assert "llama-cpp-python 0." in library_version()
    assert all(feature.strip("_").isalnum() or "_" in feature for feature in cpu_features().split())


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], "no reason"),
        (["llama_model_load: error loading model: unknown model architecture: 'x'", "failed"], "unknown model arch"),
        (["gguf_init: failed to read magic"], "failed to read magic"),
        (["no colon here"], "no colon here"),
        (["two words: stay"], "two words: stay"),
    ],
)
def test_the_reason_is_the_first_error_line(lines: Sequence[str], text: str) -> None:
    assert text in reason(list(lines))
    assert "llama_model_load" not in reason(list(lines))


def greedy(model: LlamaCppModel, prompt: str, count: int) -> str:
    ids = model.vocab.tokenize(prompt)
    row = fresh_row(model, ids)
    out: list[int] = []
    while len(out) < count:
        out.append(int(row.argmax()))
        row = model.forward(out[-1:], 1)[0]
    return b"".join(map(model.vocab.piece, out)).decode("utf-8", "replace")


@pytest.fixture(scope="module")
def small(tiny_path: Path) -> Iterator[LlamaCppModel]:
    model = LlamaCppModel(LlamaCppOptions(path=tiny_path, n_ctx=2048))
    yield model
    model.close()


@pytest.mark.tiny
def test_a_real_model_knows_its_capital(small: LlamaCppModel) -> None:
    assert "Paris" in greedy(small, "The capital of France is", 4)


@pytest.mark.tiny
def test_a_real_vocabulary(small: LlamaCppModel) -> None:
    vocab = small.vocab
    assert vocab.size == 49_152
    assert {"<|im_start|>", "<|im_end|>"} <= set(vocab.control)
    assert vocab.eog >= {vocab.control["<|im_end|>"]}
    assert vocab.chat_template is not None
    for text in ("naïve 😀 <|im_end|> 漢字\r\n\tx = 1", "<|im_start|>system\n"):
        ids = vocab.tokenize(text)
        assert not set(ids) & set(vocab.control.values())
        assert b"".join(map(vocab.piece, ids)).decode() == text


@pytest.mark.tiny
def test_a_real_pass_can_be_stopped(small: LlamaCppModel) -> None:
    small.rewind(0)
    small.forward(IDS, 0)
    assert interrupted_pass(small, some_ids(small, 512))
    assert small.length == len(IDS)
    row = small.forward([7], 1)[0].copy()
    np.testing.assert_array_equal(row, fresh_row(small, [*IDS, 7], [len(IDS)]))


@pytest.mark.tiny
def test_a_real_cache_is_saved_and_rewound(small: LlamaCppModel, tmp_path: Path) -> None:
    ids = small.vocab.tokenize("One two three four five six seven eight nine ten. " * 30)
    small.rewind(0)
    small.forward(ids[:300], 0)
    small.save(tmp_path / "cache")
    wanted = [small.forward([token], 1)[0].copy() for token in ids[300:306]]
    small.rewind(302)
    np.testing.assert_array_equal(small.forward(ids[302:303], 1)[0], wanted[2])
    small.load(tmp_path / "cache")
    assert small.length == 300
    for token, row in zip(ids[300:306], wanted, strict=True):
        np.testing.assert_array_equal(small.forward([token], 1)[0], row)
