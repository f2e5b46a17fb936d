"""Speed over the whole of an answer, in a bounded number of steps of equal time.

When the steps are used up, each two become one: the line always spans the answer from its beginning, however long.
"""

MOST = 64
"""Steps kept; an even number."""
STEP_MS = 125.0
"""How long a step is at first."""


class Trend:
    """Adds up tokens and milliseconds of rounds."""

    def __init__(self, most: int = MOST, step_ms: float = STEP_MS) -> None:
        self._most, self._step_ms = most, step_ms
        self._steps: list[float] = []
        """Tokens of each whole step."""
        self._tokens = self._ms = 0.0

    def add(self, tokens: int, ms: float) -> None:
        """Take in a round, whose tokens are spread evenly over its time."""
        if ms <= 0:
            self._tokens += tokens
            return
        left = ms
        while left > 0:
            part = min(left, self._step_ms - self._ms)
            self._tokens += tokens * part / ms
            self._ms += part
            left -= part
            if self._ms >= self._step_ms:
                self._close()

    def _close(self) -> None:
        self._steps.append(self._tokens)
        self._tokens = self._ms = 0.0
        if len(self._steps) == self._most:
            self._steps = [sum(self._steps[at : at + 2]) for at in range(0, self._most, 2)]
            self._step_ms *= 2

    @property
    def speeds(self) -> tuple[float, ...]:
        """Tokens a second in each whole step, the oldest first."""
        return tuple(tokens / self._step_ms * 1000 for tokens in self._steps)
