"""Narrow rows by torch: the largest logits and the named ones are chosen where the logits are.

One invariant: the host waits once, for one copy of a few numbers a row, which are the very logits: they are only moved
and widened to float32.  A whole row is copied only if somebody asks for it.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from engine.backends.torch_library import Device, Tensor, torch
from engine.model import FloatArray, IntArray
from engine.narrow import Candidates


class Selection:
    """What was selected, on the host; see engine.narrow.NarrowRows.  `logits` [rows, columns] must stay as they are."""

    def __init__(self, logits: Tensor, size: int, values: FloatArray, ids: IntArray, count: int) -> None:
        self._logits, self._size = logits, size
        self._values, self._ids, self._count = values, ids, count

    def __getitem__(self, row: int, /) -> Candidates:
        """See NarrowRows; work is done for the rows alone that are looked at."""
        values = self._values[row]
        border = float(values[self._count - 1])
        return Candidates.of(self._ids[row], values, border, lambda: self.whole(row), lambda: float(self._masses[row]))

    @cached_property
    def _masses(self) -> FloatArray:
        """Of each row the logarithm of the sum of exp over its real logits, all at once; float32 [rows]."""
        out: FloatArray = self._logits[:, : self._size].float().logsumexp(dim=1).cpu().numpy()
        return out

    def whole(self, row: int) -> FloatArray:
        """The whole row, padding included; float32 [columns]."""
        out: FloatArray = self._logits[row].float().cpu().numpy()
        return out


def select(logits: Tensor, size: int, count: int, named: Sequence[int]) -> Selection:
    """Of each row the `count` largest logits of the ids under `size`, NaN above all, and those of the `named` ids.

    `logits` [rows, columns] of any float type, on any device; it is only read, and read again where a whole row is
    asked for, so what comes back is valid until it changes.  1 <= count <= size <= columns; `named` are distinct.
    """
    real = logits[:, :size]
    values, ids = real.topk(count, dim=1)
    others = _sent(named, logits.device)
    found = torch.cat((values, real.index_select(1, others)), dim=1).float()
    # Bits of floats and ids travel together, so that there is one copy to wait for.
    packed = torch.cat((found.view(torch.int32), ids.int()), dim=1).cpu().numpy()
    width = count + len(named)
    values_here: FloatArray = packed[:, :width].view(np.float32)
    ids_here = np.empty(values_here.shape, np.int64)
    ids_here[:, :count] = packed[:, width:]
    ids_here[:, count:] = named
    return Selection(logits, size, values_here, ids_here, count)


def _sent(ids: Sequence[int], device: Device) -> Tensor:
    """Ids on the device; to CUDA from pinned memory, since any other copy would wait for the whole pass."""
    pinned = device.type == "cuda" and len(ids) > 0
    return torch.tensor(list(ids), dtype=torch.int64, pin_memory=pinned).to(device, non_blocking=pinned)
