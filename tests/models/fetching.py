"""A fetch in a process of its own: fetching.py FOLDER [--no-lock] [--die-at N] [--limit BYTES] or [--hold]."""

import argparse
import os
import sys
from pathlib import Path

from models.errors import ModelsError
from models.locks import hold
from models.progress import Progress, never
from models.sources.wheels import Fetch, fetch
from tests.models.wheelhouse import house


class Dying:
    """Ends the process at the nth report, as a kill would: nothing is cleaned up."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, progress: Progress) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-lock", action="store_true")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    made = house(options.folder)
    if options.hold:
        with hold(made.library.lock("toy")):
            print("held", flush=True)
            sys.stdin.read()
    if options.limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (options.limit, options.limit))
    report = Dying(options.die_at)
    if options.no_lock:
        Fetch(made.entry, made.library, report, never, made.pip).run()
    else:
        fetch(made.entry, made.library, report, pip=made.pip)


try:
    main()
except ModelsError as error:
    sys.exit(f"{type(error).__name__}: {error}")
