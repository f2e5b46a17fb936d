"""How often the answer being written may update the screen: seldom where updates are dear, so that the model keeps its
cores.

The time between two updates is never under `least_s`, and such that the window's thread takes no more than `share` of
a core, as far as `most_s` allows.  A model on all cores is held up by as much as the window takes of any one, since
its threads wait for each other: on two cores with 0.25 of one for the window it wrote at three quarters of its speed.
"""

import os
import time
from collections.abc import Callable

FRAME_S = 1 / 30
"""Least time between two updates of the screen by the answer being written."""
SHARE_OF_ALL = 0.02
"""Part of all cores that the window may take while an answer is written."""
MOST_SHARE = 0.25
"""The most that this may come to of one core."""
MOST_S = 0.7
"""Longest time between two updates, however dear they are."""


def share_here() -> float:
    """Part of one core that the window may take on this machine."""
    return min(MOST_SHARE, SHARE_OF_ALL * (os.cpu_count() or 1))


class Pace:
    """Tells how long to wait for the next update, from what the last one cost."""

    def __init__(
        self, least_s: float, share: float | None = None, busy: Callable[[], float] = time.thread_time
    ) -> None:
        """`share` None: what the machine can spare."""
        self._least_s, self._busy = least_s, busy
        self._share = share_here() if share is None else share
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
