"""Taking models off this machine, with what was tuned from them.

The one invariant: only files that were fetched or made here are deleted; a file of the user's is only forgotten.
"""

from collections.abc import Iterator

from app import tuned
from app.listing import model_rows
from models import Library
from models.errors import NotInstalled


def remove(library: Library, id: str) -> Iterator[tuple[str, bool]]:
    """Remove a model, both of a pair, or a tuned draft: each as it goes, and whether its file stays.

    Raises NotInstalled, or what else a ModelsError can be.
    """
    there = [] if tuned.named(id) else _to_remove(library, id)
    for name, in_place in there:
        library.remove(name)
        yield name, in_place
    gone = {id, *(name for name, _ in there)}
    for one in tuned.records():
        if not gone.isdisjoint((one.id, one.draft, one.target)):
            tuned.remove(one.id)
            yield one.id, False


def _to_remove(library: Library, id: str) -> list[tuple[str, bool]]:
    """The models to remove and whether each only points at a file of the user's."""
    added = {model.id for model in library.installed() if model.added_in_place} | library.lost().keys()
    if id not in library.catalogue.pairs:
        return [(id, id in added)]
    rows = {row.id: row.state for row in model_rows(library)}
    there = [name for name in library.catalogue.pairs[id].models if rows[name] != "not installed"]
    if not there:
        raise NotInstalled(f"{id} is not installed: there is nothing to remove (see paceline models list)")
    return [(name, name in added) for name in there]
