"""Token ids to text as it may be shown: whole characters, nothing of a stop string, no control characters.

One invariant: what `push` and `finish` return, joined, is the decoded text of all tokens up to the first stop, and
no character once returned is ever taken back.  Where the text is cut does not depend on how it falls into tokens.
"""

import codecs
from collections.abc import Callable, Sequence

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_SHOWN = _PICTURES | {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0x2426)


def sanitize(text: str) -> str:
    """The same text with a visible sign for each control character but newline and tab; length unchanged.

    What comes out can never act on a terminal.  Each character stands for itself, so text may be cut anywhere.
    """
    return text.translate(_SHOWN)


class TextStream:
    """Turns tokens into text, one at a time, and stops at the first stop string.

    The first stop to be complete wins; of two that end at the same character, the one that starts earlier.  Invalid
    bytes become U+FFFD as Python's decoder replaces them, but never while they may still be completed.
    """

    def __init__(self, piece: Callable[[int], bytes], stops: Sequence[str] = (), before: bytes = b"") -> None:
        """`before` was said earlier: its text is not returned again, but a character or a stop may begin in it."""
        self._piece = piece
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = self._decoder.decode(before)
        self._held = self._held[len(self._held) - self._open() :]
        self._said = len(self._held)  # so many of the held characters were shown earlier
        self._places = [0] * self._said  # where each held character began: 2 n at token n's first byte, 2 n + 1 inside
        self._pending = 0 if self._decoder.getstate()[0] else None  # the same of one whose bytes wait in the decoder
        self._opened, self._taken_back = self._pending is not None, 0
        self._shown: list[str] = []
        self.gained: list[int] = []
        """For each token: how many characters that began in it were returned."""
        self.stopped = False
        """Whether a stop string was seen; every later token is ignored."""
        self.kept = 0
        """Tokens that are not wholly past the cut of a stop; all of them while there is none."""

    @property
    def text(self) -> str:
        """All that was returned so far."""
        return "".join(self._shown)

    @property
    def replaces(self) -> int:
        """How many characters at the end of what was said earlier do not stand: one was open, or a stop began there."""
        return self._taken_back + (self._opened and (self.stopped or bool(self._shown)))

    @property
    def settled(self) -> int:
        """So many first tokens gain no more, and are not taken back by any stop."""
        if self.stopped:
            return self.kept
        first = self._places[0] if self._places else self._pending
        return len(self.gained) if first is None else first // 2

    def push(self, token: int) -> str:
        """The text that is now safe to show; it may be empty."""
        if self.stopped:
            return ""
        start, self.kept = 2 * self.kept, self.kept + 1
        self.gained.append(0)
        for at, byte in enumerate(self._piece(token)):
            self._feed(bytes((byte,)), start + (at > 0))
        return self._release()

    def finish(self) -> str:
        """What was held back: a character that never came to its end, as U+FFFD, and the tail of no stop."""
        if self.stopped or not self.kept:
            return ""
        self._feed(b"", 2 * self.kept, last=True)
        return self._release(last=True)

    def _feed(self, data: bytes, here: int, last: bool = False) -> None:
        """Take one byte, whose place is `here`.

        A byte ends at most two characters: an invalid one that began earlier, and one of its own.
        """
        start = here if self._pending is None else self._pending
        text = self._decoder.decode(data, last)
        self._held += text
        self._places += (start, here)[: len(text)]
        waiting = self._decoder.getstate()[0]
        self._pending = None if not waiting else here if text else start

    def _release(self, last: bool = False) -> str:
        """Cut at a stop if one is complete; give out what can be part of none."""
        found = [(at + len(stop), at) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            _, safe = min(found)
            self.stopped, self.kept = True, (self._places[safe] + 1) // 2
            self._taken_back = max(0, self._said - safe)
        else:
            safe = len(self._held) - (0 if last else self._open())
        said = min(self._said, safe)
        shown = self._held[said:safe]
        for place in self._places[said:safe]:
            self.gained[place // 2] += 1
        self._held, self._places, self._said = self._held[safe:], self._places[safe:], self._said - said
        if shown:
            self._shown.append(shown)
        return shown

    def _open(self) -> int:
        """Length of the longest tail of the held text with which a stop may begin."""
        return max((self._overlap(stop) for stop in self._stops), default=0)

    def _overlap(self, stop: str) -> int:
        most = min(len(stop) - 1, len(self._held))
        return next((n for n in range(most, 0, -1) if self._held.endswith(stop[:n])), 0)
