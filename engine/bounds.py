"""What every Model asks of its arguments before anything is done, and says where they cannot be.

The one invariant: a call that is refused here has changed nothing.
"""

from collections.abc import Sequence

from engine.errors import DecodeFailed


def check_pass(tokens: Sequence[int], rows: int, n_batch: int, size: int) -> None:
    """ValueError unless a pass may take these tokens and give so many rows; ids run from 0 to `size` - 1."""
    count = len(tokens)
    if not 1 <= count <= n_batch:
        raise ValueError(f"a pass takes 1 to {n_batch} tokens, not {count}")
    if not 0 <= rows <= count:
        raise ValueError(f"{count} tokens have 0 to {count} rows, not {rows}")
    if min(tokens) < 0 or max(tokens) >= size:
        raise ValueError(f"token ids run from 0 to {size - 1}, so {min(tokens)} to {max(tokens)} are out of range")


def check_room(held: int, count: int, n_ctx: int) -> None:
    """DecodeFailed unless `count` tokens find room behind those held."""
    if held + count > n_ctx:
        raise DecodeFailed(f"the context of {n_ctx:,} tokens is full ({held:,} + {count:,}): start with a larger --ctx")


def check_rewind(held: int, length: int) -> None:
    """ValueError unless so many of the tokens held can be kept."""
    if not 0 <= length <= held:
        raise ValueError(f"cannot rewind {held} tokens to {length}")


def check_drop(held: int, start: int, end: int) -> None:
    """ValueError unless the tokens from `start` to `end` are among those held."""
    if not 0 <= start <= end <= held:
        raise ValueError(f"cannot drop {start} to {end} of {held} tokens")
