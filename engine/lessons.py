"""What a pair has taught, kept from run to run: so the first answer after a restart is planned as the tenth was.

One invariant: it is kept for one target, one draft, one machine with its settings, and one source of power.
"""

import msgspec
import psutil  # type: ignore[import-untyped]

from engine.acceptance import Learned
from engine.calibration_store import CalibrationStore, Key


class Lessons:
    """Where they are kept."""

    def __init__(self, store: CalibrationStore, target: Key, draft: Key | None) -> None:
        files = target.file if draft is None else f"{target.file} {draft.file}"
        self._store, self._key = store, msgspec.structs.replace(target, file=files)

    def taken_up(self) -> Learned | None:
        """What was learned before; None where nothing was."""
        return self._store.get(self._now, Learned)

    def keep(self, learned: Learned) -> None:
        """For the next run."""
        self._store.put(self._now, learned)

    @property
    def _now(self) -> Key:
        return msgspec.structs.replace(self._key, device=f"{self._key.device}, {power()}")


def power() -> str:
    """What the machine runs on: a laptop on its battery is another machine."""
    find = getattr(psutil, "sensors_battery", None)  # which some systems have not
    try:
        battery = find() if find else None
    except (OSError, RuntimeError):
        battery = None
    return "battery" if battery is not None and battery.power_plugged is False else "mains"
