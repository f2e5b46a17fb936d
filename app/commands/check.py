"""`paceline models check`: whether one model can draft for another, without loading either."""

from app.choice import MOST_CONTEXT
from app.paths import models_dir, shown

VERDICTS = {"equal": "fits", "map": "fits by a map", "none": "does not fit"}


def check(target: str, draft: str, /) -> int:
    """Say whether a draft fits a target, and how; only their vocabularies are read.

    Parameters
    ----------
    target
        The model that decides: an id of `paceline models list`, or a path.
    draft
        The model that is to draft for it.
    """
    from engine.check import check as compare
    from engine.detokenize import sanitize
    from models import Library, available, need
    from models.fit import of_file
    from models.text import size

    library = Library(models_dir())
    models = [library.resolve(target), library.resolve(draft)]
    loads = [of_file(model.path) for model in models]
    found = compare(models[0].path, models[1].path)
    context = min(MOST_CONTEXT, loads[0].facts.n_ctx_train)
    tokens = (found.target_tokens, found.draft_tokens)
    for role, model, count in zip(("target", "draft"), models, tokens, strict=True):
        print(f"{role:<8}{shown(model.id)} ({size(model.bytes)}, {count:,} tokens)")
    memory = size(need(loads, context))
    print(f"memory  {memory} for both with {context:,} tokens of context; {size(available())} free")
    print(sanitize(f"{VERDICTS[found.fit]}: {found.reason}"))
    return 1 if found.fit == "none" else 0
