"""The vocabulary of a checkpoint, read from its tokenizer.json.

One invariant: each id means here what it means in a GGUF file of the same model, so that the two engines' models pair;
llama.cpp's rules decide what is a control token and what ends an answer.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import NFC, NFD, NFKC, NFKD, Normalizer, Sequence

from engine.errors import LoadFailed, ModelError

_FIM_ENDS = {
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
    "<reponame>", "<|file_sep|>",
}  # fmt: skip
_ENDS = _FIM_ENDS | {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
    "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
    "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
}  # fmt: skip
"""Tokens by these names end an answer and are control tokens, whatever the tokenizer says of them."""
_FIM = {
    "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
    "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
    "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
}  # fmt: skip
"""Tokens by these names are control tokens, too."""
_NOT_ENDS = (
    ({"<|return|>", "<|call|>"}, "<|end|>"),
    ({"<|calls|>", "<|flush|>"}, "<|end|>"),
    ({"<|tool_response>"}, "</s>"),
)
"""Where a vocabulary has all the names before, the name behind ends no answer in it."""
_PLAIN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_MOVED = [byte for byte in range(256) if byte not in _PLAIN]
_LETTERS = {byte: byte for byte in _PLAIN} | {256 + at: byte for at, byte in enumerate(_MOVED)}
"""The code points by which byte-level vocabularies spell bytes."""
_SPACE = "▁"
_UNICODE = (NFC, NFD, NFKC, NFKD)


class CheckpointVocabulary:
    """Tokens of one checkpoint's folder, for a model of `columns` logits a row.  LoadFailed."""

    def __init__(self, folder: Path, columns: int) -> None:
        self.columns: int = columns
        """Width of a row of logits, padding included."""
        self._folder = folder
        self._config = _read(folder / "tokenizer_config.json")
        self._tokenizer = _open(folder)
        self._ends = _claim_names(self._tokenizer)
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = {token: it for token, it in added.items() if it.special and token < columns}
        self._pieces = self._spell(added)
        self.size: int = len(self._pieces)
        """Real tokens; an id that the tokenizer leaves out stands for nothing."""
        if self.size > columns:
            raise LoadFailed(
                f"the tokenizer of {folder.name} has {self.size:,} tokens, its model {columns:,}: "
                f"fetch all files of one model again"
            )
        self.control: Mapping[str, int] = {it.content: token for token, it in self._special.items()}
        """Text of each control token and its id."""
        self.eos: int | None = self._named("eos_token")
        self.bos: int | None = self._opening()
        self.chat_template: str | None = self._template()

    @cached_property
    def eog(self) -> frozenset[int]:
        """The ids that end an answer: what the checkpoint's files declare, and the names known for it."""
        declared: set[object] = {self.eos, *self._ends}
        for name in ("generation_config.json", "config.json"):
            config = _read(self._folder / name)
            text_config = config.get("text_config")
            for source in (config, text_config if isinstance(text_config, dict) else {}):
                value = source.get("eos_token_id")
                declared.update(value if isinstance(value, list) else [value])
        return frozenset(token for token in declared if isinstance(token, int) and 0 <= token < self.size)

    @cached_property
    def strips(self) -> tuple[frozenset[int], frozenset[int]]:
        """The control tokens that swallow the blanks before them, and those that swallow the blanks after them."""
        special = self._special.items()
        return frozenset(i for i, it in special if it.lstrip), frozenset(i for i, it in special if it.rstrip)

    @cached_property
    def fingerprint(self) -> str:
        """A hash over the bytes of every token, the control tokens' names, and the roles."""
        digest = hashlib.sha256(b"".join(self._pieces))
        roles = (list(map(len, self._pieces)), sorted(self.control.items()), sorted(self.eog), self.bos)
        digest.update(repr(roles).encode())
        return digest.hexdigest()[:32]

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text; control tokens in it stay text, nothing is added."""
        clean = text.encode("utf-8", "replace").decode()
        try:
            ids = self._tokenizer.encode(clean, add_special_tokens=False).ids
        except Exception as error:  # the library has no narrower one
            raise ModelError("this text cannot be turned into tokens: shorten it") from error
        # where no token spells a character, the library gives the unknown one, which may be a control token
        return [token for token in ids if token < self.size and token not in self._special]

    def piece(self, token: int) -> bytes:
        """The bytes of one token, b"" for control tokens; IndexError for an id that is out of range."""
        if not 0 <= token < self.size:
            raise IndexError(f"there is no token {token}: ids run from 0 to {self.size - 1}")
        return self._pieces[token]

    def _spell(self, added: Mapping[int, AddedToken]) -> list[bytes]:
        """The bytes of every token, by id; control tokens that the model has no column for are left out."""
        steps = "" if self._tokenizer.decoder is None else self._tokenizer.decoder.__getstate__().decode()
        if '"ByteLevel"' not in steps and _SPACE not in steps:
            raise _unknown_kind(self._folder)
        spell = _bytes_of_letters if '"ByteLevel"' in steps else _bytes_of_piece
        vocab = self._tokenizer.get_vocab(with_added_tokens=False)
        spelled: dict[int, bytes] = {token: spell(text) for text, token in vocab.items()}
        for token, it in added.items():
            spelled[token] = b"" if it.special else it.content.replace(_SPACE, " ").encode()
        beyond = {token for token, it in added.items() if it.special} - self._special.keys()
        size = 1 + max(spelled.keys() - beyond, default=-1)
        return [spelled.get(token, b"") for token in range(size)]

    def _named(self, role: str) -> int | None:
        """The id of the token that tokenizer_config.json names for a role."""
        value = self._config.get(role)
        text = value.get("content") if isinstance(value, dict) else value
        token = self._tokenizer.token_to_id(text) if isinstance(text, str) else None
        return cast(int, token) if token is not None and token < self.size else None

    def _opening(self) -> int | None:
        """The token put before every prompt, as the configuration or else the tokenizer itself has it."""
        adds = self._config.get("add_bos_token")
        if isinstance(adds, bool):
            return self._named("bos_token") if adds else None
        ids = self._tokenizer.encode("a", add_special_tokens=True).ids
        return cast(int, ids[0]) if ids and ids[0] in self._special else None

    def _template(self) -> str | None:
        beside = self._folder / "chat_template.jinja"
        if beside.is_file():
            return beside.read_text(encoding="utf-8", errors="replace")
        value = self._config.get("chat_template") or _read(self._folder / "chat_template.json").get("chat_template")
        if isinstance(value, list):  # several by name
            named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
            value = named.get("default")
        return value if isinstance(value, str) else None


def _open(folder: Path) -> Tokenizer:
    """The tokenizer of a folder, set so that a text's ids are all of it and nothing else."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise LoadFailed(
            f"{folder.name} has no tokenizer.json, the only form of a tokenizer that is read: "
            f"take a checkpoint that has one, or a GGUF file of this model"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no narrower one
        raise LoadFailed(f"{folder.name}/tokenizer.json is damaged ({error}): fetch it again") from error
    if not isinstance(tokenizer.model, BPE):  # in the others text can become a control token
        raise _unknown_kind(folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    if tokenizer.normalizer is not None:
        tokenizer.normalizer = _without_composing(tokenizer.normalizer)
    return tokenizer


def _unknown_kind(folder: Path) -> LoadFailed:
    return LoadFailed(f"the tokenizer of {folder.name} is of a kind that is not read: take a GGUF file of this model")


def _without_composing(normalizer: Normalizer) -> Normalizer | None:
    """The same without what composes or splits characters, so that text comes back as it was."""
    if isinstance(normalizer, Sequence):
        steps = [step for step in normalizer if not isinstance(step, _UNICODE)]
        return Sequence(steps) if steps else None
    return None if isinstance(normalizer, _UNICODE) else normalizer


def _claim_names(tokenizer: Tokenizer) -> set[int]:
    """Make control tokens of those that llama.cpp knows by name; the ids of those among them that end an answer."""
    added = tokenizer.get_added_tokens_decoder()
    found = {name: token for name in _ENDS | _FIM if (token := tokenizer.token_to_id(name)) is not None}
    for others, name in _NOT_ENDS:
        if others <= found.keys():
            found.pop(name, None)
    for name, token in list(found.items()):
        old = added.get(token)
        if old is None and tokenizer.encode(name, add_special_tokens=False).ids == [token]:
            del found[name]  # it is plain text in this vocabulary
        elif old is None or not old.special:
            strips = {"lstrip": old.lstrip, "rstrip": old.rstrip} if old else {}
            tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False, **strips)])
    return {token for name, token in found.items() if name in _ENDS}


def _bytes_of_letters(text: str) -> bytes:
    try:
        return text.translate(_LETTERS).encode("latin-1")
    except UnicodeEncodeError:  # no spelling of bytes: it stands for itself
        return text.encode()


def _bytes_of_piece(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        try:
            return bytes.fromhex(text[3:5])
        except ValueError:
            pass
    return text.replace(_SPACE, " ").encode()


def _read(path: Path) -> dict[str, object]:
    """The object in a JSON file, {} where there is none.  LoadFailed."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LoadFailed(f"{path.parent.name}/{path.name} is damaged ({error}): fetch it again") from error
    return value if isinstance(value, dict) else {}
