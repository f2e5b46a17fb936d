"""A small vocabulary: every byte, a few merged tokens, and control tokens that no text can become."""

from collections.abc import Mapping, Sequence

MERGED = (" ~", "hello", " world", "ass", "user", "\n\n", " the", "<|", "|>", "é", "👩", "ab", "aab")
CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


class FakeVocabulary:
    """Bytes are ids 0 to 255, then merged tokens (taken longest first), then control tokens."""

    def __init__(
        self,
        merged: Sequence[str] = MERGED,
        control: Sequence[str] = CHATML,
        eog: Sequence[str] = ("<|endoftext|>", "<|im_end|>"),
        bos: str | None = None,
        chat_template: str | None = None,
        strips: tuple[Sequence[str], Sequence[str]] = ((), ()),
    ) -> None:
        self._pieces = [bytes((byte,)) for byte in range(256)] + [text.encode() for text in merged]
        self._ids = {piece: token for token, piece in enumerate(self._pieces)}
        self._longest = max(map(len, self._pieces))
        first = len(self._pieces)
        self.control: Mapping[str, int] = {text: first + at for at, text in enumerate(control)}
        self._pieces += [b""] * len(control)
        self.size = len(self._pieces)
        self.eog = frozenset(self.control[text] for text in eog if text in self.control)
        self.eos = min(self.eog, default=None)
        self.bos = None if bos is None else self.control[bos]
        self.chat_template = chat_template
        left, right = (frozenset(self.control[text] for text in texts) for texts in strips)
        self.strips = left, right
        self.fingerprint = repr((self._pieces, self.control, sorted(self.eog), self.bos))

    def tokenize(self, text: str) -> list[int]:
        data, at, ids = text.encode(), 0, []
        while at < len(data):
            size = next(n for n in range(self._longest, 0, -1) if data[at : at + n] in self._ids)
            size = len(data[at : at + size])
            ids.append(self._ids[data[at : at + size]])
            at += size
        return ids

    def piece(self, token: int) -> bytes:
        if not 0 <= token < self.size:
            raise IndexError(f"no token {token}")
        return self._pieces[token]

    def show(self, ids: Sequence[int]) -> str:
        """The text of a prompt with its control tokens, each between signs that no text of the tests holds."""
        names = {token: f"⟦{text}⟧" for text, token in self.control.items()}
        return b"".join(names[i].encode() if i in names else self._pieces[i] for i in ids).decode("utf-8", "replace")
