"""The vocabulary of a GGUF file, read through llama.cpp.

The one invariant: no id reaches llama.cpp unchecked, because an id out of range aborts the process.
"""

import ctypes
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np

from engine.backends.llamacpp_library import lib
from engine.backends.llamacpp_load import LlamaCppOptions, load_model
from engine.errors import LoadFailed, ModelError

_UNUSED = 2
_CONTROL = 8
_STRIP_LEFT, _STRIP_RIGHT = 128, 256
_BUFFER = 512
_MOST = 1 << 30
"""More tokens than any text has: llama.cpp says so when a count overflows."""


@contextmanager
def open_vocabulary(path: Path) -> "Iterator[LlamaCppVocabulary]":
    """The vocabulary of a file, there while the context is open; nothing else of it is loaded.  LoadFailed."""
    with _without_weights(path) as model:
        if lib.llama_vocab_type(lib.llama_model_get_vocab(model)) == 0:
            raise LoadFailed(f"{path.name} has no tokenizer: take another file of this model")
        vocab = LlamaCppVocabulary(model)
        try:
            yield vocab
        finally:
            vocab.invalidate()


def count_numbers(path: Path) -> int:
    """How many numbers the weights of a file are; nothing of them is loaded.  LoadFailed."""
    with _without_weights(path) as model:
        return int(lib.llama_model_n_params(model))


@contextmanager
def _without_weights(path: Path) -> Iterator[int]:
    """The native model of a file, of which no more is loaded than its header and its vocabulary."""
    model = load_model(LlamaCppOptions(path=path, gpu_layers=0), None, vocab_only=True)
    try:
        yield model
    finally:
        lib.llama_model_free(model)


class LlamaCppVocabulary:
    """Tokens of one loaded model; usable until the model is closed."""

    def __init__(self, model: int) -> None:
        self._vocab: int | None = lib.llama_model_get_vocab(model)
        self._buffer = ctypes.create_string_buffer(_BUFFER)
        vocab = self._alive()
        self.columns: int = lib.llama_vocab_n_tokens(vocab)
        """Width of a row of logits, padding included."""
        self._attributes = [lib.llama_vocab_get_attr(vocab, token) for token in range(self.columns)]
        template = lib.llama_model_chat_template(model, None)
        self.chat_template: str | None = None if template is None else template.decode("utf-8", "replace")
        bos, eos = (token if token >= 0 else None for token in (lib.llama_vocab_bos(vocab), lib.llama_vocab_eos(vocab)))
        self.bos: int | None = bos if lib.llama_vocab_get_add_bos(vocab) else None
        self.eos: int | None = eos

    def invalidate(self) -> None:
        """The model is about to be freed: from here on every use is an error instead of a crash."""
        self._vocab = None

    def _alive(self) -> int:
        if self._vocab is None:
            raise ModelError("the model is closed: load it again")
        return self._vocab

    @cached_property
    def size(self) -> int:
        """Real tokens; unused entries at the end only pad the table."""
        last = self.columns
        while last and (self._attributes[last - 1] == 0 or self._attributes[last - 1] & _UNUSED):
            last -= 1
        return last

    @cached_property
    def eog(self) -> frozenset[int]:
        """The ids that end an answer."""
        vocab = self._alive()
        return frozenset(token for token in range(self.size) if lib.llama_vocab_is_eog(vocab, token))

    @cached_property
    def control(self) -> Mapping[str, int]:
        """Text of each control token and its id, the lowest where two have the same text."""
        ids = [token for token in range(self.size) if self._attributes[token] & _CONTROL]
        return {self._text(token).decode("utf-8", "replace"): token for token in reversed(ids)}

    @cached_property
    def strips(self) -> tuple[frozenset[int], frozenset[int]]:
        """The control tokens that swallow the blanks before them, and those that swallow the blanks after them."""
        left, right = (
            frozenset(token for token in self.control.values() if self._attributes[token] & attribute)
            for attribute in (_STRIP_LEFT, _STRIP_RIGHT)
        )
        return left, right

    @cached_property
    def fingerprint(self) -> str:
        """A hash over text and attributes of every token, and over the roles."""
        vocab = self._alive()
        texts = [self._text(token) for token in range(self.size)]
        digest = hashlib.sha256(b"".join(texts))
        digest.update(np.array([len(text) for text in texts], np.int32).tobytes())
        digest.update(np.array(self._attributes[: self.size], np.int32).tobytes())
        roles = (lib.llama_vocab_type(vocab), self.bos, lib.llama_vocab_get_add_eos(vocab), sorted(self.eog))
        digest.update(repr(roles).encode())
        return digest.hexdigest()[:32]

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text; control tokens in it stay text, nothing is added."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        while True:
            ids = np.empty(room, np.int32)
            pointer = ids.ctypes.data_as(ctypes.POINTER(lib.llama_token))
            count = lib.llama_tokenize(self._alive(), data, len(data), pointer, room, False, False)
            if count >= 0:
                return [int(token) for token in ids[:count]]
            if room >= -count or -count > _MOST:
                raise ModelError("this text cannot be turned into tokens: shorten it")
            room = -count

    def piece(self, token: int) -> bytes:
        """The bytes of one token, b"" for control tokens; IndexError for an id that is out of range."""
        if not 0 <= token < self.size:
            raise IndexError(f"there is no token {token}: ids run from 0 to {self.size - 1}")
        return b"" if self._attributes[token] & _CONTROL else self._text(token)

    def _text(self, token: int) -> bytes:
        """What the token stands for, control tokens by their name."""
        vocab = self._alive()
        count = lib.llama_token_to_piece(vocab, token, self._buffer, len(self._buffer), 0, True)
        if count < 0:
            self._buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(vocab, token, self._buffer, len(self._buffer), 0, True)
        return self._buffer.raw[:count]
