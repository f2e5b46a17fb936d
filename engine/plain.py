"""Plain text that stands between tokens, as ids.

One invariant: it becomes the ids that llama.cpp gives it when it reads the whole text at once, control tokens included.
What that hangs on is the neighbours: some swallow the blanks beside them, and a sentencepiece vocabulary puts a space
before text that follows a control token, or nothing.
"""

from functools import cached_property

from engine.model import Vocabulary

BLANKS = " \t\n\v\f\r"
"""What a token swallows that strips the text beside it."""
_ALONE = "\x01"
"""A character that no vocabulary joins with another."""


class PlainText:
    """The plain text of one vocabulary's prompts."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab

    @cached_property
    def _puts_space(self) -> bool:
        return b"".join(map(self._vocab.piece, self._vocab.tokenize("a"))) == b" a"

    @cached_property
    def _control(self) -> frozenset[int]:
        return frozenset(self._vocab.control.values())

    def ids(self, text: str, before: int | None, after: int | None) -> list[int]:
        """Ids of a text between two tokens; None stands for an end of the prompt."""
        left, right = self._vocab.strips
        if before in right:
            text = text.lstrip(BLANKS)
        if after in left:
            text = text.rstrip(BLANKS)
        if not text:
            return []
        if self._puts_space and before is not None and before not in self._control:
            return self._going_on(text)
        return self._vocab.tokenize(text)

    def _going_on(self, text: str) -> list[int]:
        """Ids of a text before which no space is put."""
        lead, ids = self._vocab.tokenize(_ALONE), self._vocab.tokenize(_ALONE + text)
        return ids[len(lead) :] if ids[: len(lead)] == lead else self._vocab.tokenize(text)
