"""How Python collects the window's garbage: seldom, and without walking what stays for good.

A full collection walks everything that is alive and stops the window meanwhile.  What is there when the window has been
drawn stays till its end, so it need not be walked; what unmounted widgets leave behind can wait.
"""

import gc

FULL_EVERY = 20
"""Collections of the middle generation for each full one; Python's own value is 10."""


def settle() -> None:
    """Take all that is alive for permanent, once the window has been drawn."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_EVERY)
