"""A file with fewer tokens says of those kept what the whole one says, and its tokenizer still spells anything."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import pairing
from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.llamacpp_cut import cut
from engine.backends.llamacpp_quantize import Form, quantize
from engine.errors import ModelError
from engine.experiments.tune_tokens import kept_tokens
from engine.mapped import MappedModel
from tests.tiny_gguf import WORDS, Tiny, write_gemma, write_llama

TEXT = "The harbour wakes before the town does, näïve 日本."


def opened(path: Path) -> LlamaCppModel:
    return LlamaCppModel(LlamaCppOptions(path=path, n_ctx=256, threads=1))


@pytest.mark.parametrize("write", [write_llama, write_gemma])
@pytest.mark.parametrize("weights", [None, "q4_0"])
def test_rows_of_the_tokens_kept_are_those_of_the_whole_file(
    tmp_path: Path, write: Callable[[Path, Tiny], Path], weights: str | None
) -> None:
    words = ["▁harbour", "▁wakes", "▁town", "▁before"] if write is write_gemma else []
    whole = write(tmp_path / "whole.gguf", Tiny(layers=6, merges=WORDS, extra=words, padding=3))
    if weights:
        quantize(whole, tmp_path / "small.gguf", Form(weights="q4_0"))
        whole = tmp_path / "small.gguf"
    model = opened(whole)
    keep = kept_tokens(model.vocab, ["The harbour wakes"], model.vocab.size - 8)
    assert len(keep) == model.vocab.size - 8
    cut(whole, tmp_path / "cut.gguf", keep)
    assert (tmp_path / "cut.gguf").stat().st_size < whole.stat().st_size
    small = opened(tmp_path / "cut.gguf")
    assert [small.vocab.piece(place) for place in range(len(keep))] == [model.vocab.piece(token) for token in keep]
    ids = [token for token in model.vocab.tokenize(TEXT) if token in keep]
    assert len(ids) > 10
    ours = model.forward(ids, len(ids))[:, keep]
    rows = small.forward([keep.index(token) for token in ids], len(ids))
    np.testing.assert_allclose(rows, ours, rtol=0, atol=1e-5)
    for one in (model, small):
        one.close()


def test_the_cut_vocabulary_keeps_its_roles_and_spells_all_text(tmp_path: Path) -> None:
    whole = write_llama(tmp_path / "whole.gguf", Tiny(merges=WORDS))
    model = opened(whole)
    cut(whole, tmp_path / "cut.gguf", kept_tokens(model.vocab, [], 300))
    small = opened(tmp_path / "cut.gguf")
    assert small.vocab.size == 300
    assert small.vocab.control.keys() == model.vocab.control.keys()
    assert small.vocab.piece(small.vocab.eos or 0) == model.vocab.piece(model.vocab.eos or 0) == b""
    assert small.vocab.eos in small.vocab.eog
    assert len(small.vocab.eog) == len(model.vocab.eog)
    assert small.vocab.chat_template == model.vocab.chat_template
    ids = small.vocab.tokenize(TEXT)
    assert b"".join(map(small.vocab.piece, ids)) == TEXT.encode()
    assert len(ids) > len(model.vocab.tokenize(TEXT)), "some words are gone"


def test_it_drafts_through_a_map(tmp_path: Path) -> None:
    whole = write_llama(tmp_path / "whole.gguf", Tiny(merges=WORDS))
    model = opened(whole)
    cut(whole, tmp_path / "cut.gguf", kept_tokens(model.vocab, [TEXT], 320))
    small = opened(tmp_path / "cut.gguf")
    fit = pairing.compare(model.vocab, small.vocab)
    assert fit.kind == "map"
    assert fit.map is not None
    mapped = MappedModel(small, fit.map)
    ids = model.vocab.tokenize("The harbour wakes")
    row = mapped.forward(ids, 1)[0]
    shared = np.isfinite(row)
    assert shared.sum() == 320
    np.testing.assert_allclose(row[shared], model.forward(ids, 1)[0][shared], rtol=0, atol=1e-5)


def test_what_cannot_be_cut_is_one_line_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("GGUF is not all of it, and this is no header at all")
    (tmp_path / "empty.gguf").write_bytes(b"")
    whole = write_llama(tmp_path / "whole.gguf")
    for source, keep in (("text.gguf", [0]), ("empty.gguf", [0]), ("whole.gguf", [0, 10**6])):
        with pytest.raises(ModelError, match=f"{source} cannot be cut") as caught:
            cut(tmp_path / source, tmp_path / "out.gguf", keep)
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelError, match="cannot be written"):
        cut(whole, tmp_path / "nowhere" / "out.gguf", [0, 1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.gguf", "text.gguf", "whole.gguf"]
