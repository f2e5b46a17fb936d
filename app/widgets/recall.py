"""Earlier inputs, to be gone through and come back from.

One invariant: nothing that was typed is lost by going away from it.  What stands at each place, the input being typed
included, is kept as it was left until an input is sent.
"""

from collections.abc import Sequence


class Recall:
    """A place among the earlier inputs: 0 is what is being typed, 1 the last input, and so on."""

    def __init__(self, inputs: Sequence[str] = ()) -> None:
        """`inputs` are the earlier ones, newest first."""
        self._inputs = list(inputs)
        self._left: dict[int, str] = {}
        self._at = 0

    def older(self, text: str) -> str | None:
        """Leave `text` and go one back; None at the oldest."""
        return self._go(1, text)

    def newer(self, text: str) -> str | None:
        """Leave `text` and go one forward; None at what is being typed."""
        return self._go(-1, text)

    def _go(self, step: int, text: str) -> str | None:
        to = self._at + step
        if not 0 <= to <= len(self._inputs):
            return None
        self._left[self._at] = text
        self._at = to
        return self._left.get(to, self._inputs[to - 1] if to else "")

    def add(self, text: str) -> None:
        """An input was sent: it is the last one now, and what was typed next begins anew."""
        if text.strip() and self._inputs[:1] != [text]:
            self._inputs.insert(0, text)
        self._left.clear()
        self._at = 0
