"""The vocabulary of a model file, with llama.cpp's own reading of whole texts beside it, and texts to read."""

import random
from pathlib import Path

import llama_cpp as lib

from engine.backends.llamacpp_vocab import LlamaCppVocabulary

WORDS = (
    "hello", " world", " the", "\n", "  ", " ", "<", "|", "é", "👩‍💻", "漢", "def f(x):\n    return x<3", "'", "1234",
    "\t", "im_end",
)  # fmt: skip


def some_text(generator: random.Random) -> str:
    """A text that spells no control token, with blanks anywhere but at its end."""
    return "".join(generator.choices(WORDS, k=generator.randint(1, 30))) + "."


class RealVocabulary:
    """The vocabulary of a file, and llama.cpp's own reading of control texts beside it."""

    def __init__(self, path: Path) -> None:
        params = lib.llama_model_default_params()
        params.vocab_only = True
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        self.vocab = LlamaCppVocabulary(self._model)

    def whole(self, text: str) -> list[int]:
        """Ids of a text in which control texts are control tokens."""
        data = text.encode()
        ids = (lib.llama_token * (len(data) + 8))()
        handle = lib.llama_model_get_vocab(self._model)
        count = lib.llama_tokenize(handle, data, len(data), ids, len(ids), False, True)
        return list(ids[:count])

    def close(self) -> None:
        self.vocab.invalidate()
        lib.llama_model_free(self._model)
