"""How often the answer being written may update the screen: seldom where updates are dear, so that the model keeps its
cores.

The time between two updates is never under `least_s`, and such that the window's thread takes no more than `share` of
a core, as far as `most_s` allows.
"""

import time
from collections.abc import Callable

FRAME_S = 1 / 30
"""Least time between two updates of the screen by the answer being written."""
SHARE = 0.25
"""Part of one core that the window may take while an answer is written."""
MOST_S = 0.5
"""Longest time between two updates, however dear they are."""


class Pace:
    """Tells how long to wait for the next update, from what the last one cost."""

    def __init__(self, least_s: float, share: float = SHARE, busy: Callable[[], float] = time.thread_time) -> None:
        self._least_s, self._share, self._busy = least_s, share, busy
        self._before = busy()
        self._cost = 0.0

    def updated(self) -> None:
        """An update begins; what was worked since the last one is what that one cost."""
        now = self._busy()
        self._cost, self._before = now - self._before, now

    @property
    def interval_s(self) -> float:
        """Seconds from the last update to the next."""
        if not self._least_s:
            return 0.0
        worked = max(self._cost, self._busy() - self._before)
        return max(self._least_s, min(MOST_S, worked / self._share))
