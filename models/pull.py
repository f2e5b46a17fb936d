"""Fetches all that an id stands for: a model, or both models of a pair.

The one invariant: nothing is downloaded unless all of it fits on the drive.
"""

from collections.abc import Sequence

from models import space
from models.library import Installed, Library
from models.progress import Asked, Report, never, silent
from models.sources.pip import PIP
from models.sources.wheels import fetch, required


def pull(
    id: str, library: Library, report: Report = silent, cancelled: Asked = never, pip: Sequence[str] = PIP
) -> list[Installed]:
    """Fetch a model, or all models of a pair, target first.  Raises UnknownModel, and all that `fetch` raises."""
    entries = library.catalogue.entries(id)
    space.require(library.root, peak(id, library), id)
    for entry in entries:
        fetch(entry, library, report, cancelled, pip)
    return [library.resolve(entry.id) for entry in entries]


def peak(id: str, library: Library) -> int:
    """Most bytes that fetching all of it takes on the drive at one time, beyond what is there already."""
    most = finished = 0
    for entry in library.catalogue.entries(id):
        if library.path(entry.id) is None:
            most = max(most, finished + required(entry, library))
            finished += entry.bytes
    return most
