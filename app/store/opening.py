"""Opening the conversations for the window, which opens whatever state they are in.

One invariant: no file that holds conversations is ever written over; what cannot be read is put aside.
"""

from pathlib import Path

from app.errors import StoreDamaged, StoreError
from app.paths import shown
from app.store.database import set_aside
from app.store.store import Store


def open_any(path: Path | None) -> tuple[Store, str]:
    """The store of this file, or one that can be worked with in its place, and what is to be said of it."""
    try:
        return Store.open(path), ""
    except StoreDamaged:
        return _anew(path)
    except StoreError as error:
        return Store.open(None), f"{error}; until then nothing that is said is kept"


def _anew(path: Path | None) -> tuple[Store, str]:
    try:
        assert path is not None
        aside = set_aside(path)
        return Store.open(path), f"the conversations could not be read: what there was is now {shown(aside)}"
    except (StoreError, OSError) as error:
        return Store.open(None), f"{error}; until then nothing that is said is kept"
