"""What can be run, what is on disk, and how it gets there.

The whole face of the package: a `Catalogue` says what can be fetched, `pull` fetches it into a `Library`, and the
library tells which file a name means.  Everything that can go wrong is a `ModelsError`.
"""

from models.catalogue import Catalogue, Entry, Pair
from models.catalogue import load as load_catalogue
from models.errors import ModelsError
from models.fit import available, largest_context, need
from models.library import Installed, Library
from models.progress import Progress
from models.pull import pull

__all__ = [
    "Catalogue",
    "Entry",
    "Installed",
    "Library",
    "ModelsError",
    "Pair",
    "Progress",
    "available",
    "largest_context",
    "load_catalogue",
    "need",
    "pull",
]
