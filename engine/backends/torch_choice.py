"""What is faster on the GPU at hand, found by timing it at load: captured passes, and rows chosen on the device.

The one invariant: either choice gives the same numbers, but for roundings.
"""

from collections.abc import Callable

from engine.backends.torch_captured import CapturedPasses, repeated
from engine.backends.torch_library import Tensor, torch
from engine.backends.torch_network import Network
from engine.backends.trial import alike
from engine.model import FloatArray

WORTH = 0.03
"""Share of a pass that bringing whole rows to the host may take."""
_WIDTH = 8
_FEW = 4
_TIMES = 5


def captured_passes(network: Network, wanted: bool | None) -> CapturedPasses | None:
    """Passes of fixed shapes where they are wanted, or (None) are measured to be faster.

    On a device without graphs the computation is run again in place of a replay, which serves tests alone.
    """
    on_cuda = network.device.type == "cuda"
    if wanted is None and not on_cuda:
        return None
    if wanted is False:
        return None
    passes = CapturedPasses(network, None if on_cuda else repeated)
    if wanted:
        return passes
    replayed = passes.run([0, 1], 2, 0)
    if replayed is None or not alike(_rows(replayed), _rows(network.run(network.ids([0, 1]), 2, 0))):
        return None
    far = network.cache.place.n_ctx // 2
    slow = milliseconds(lambda: network.run(network.ids([0]), 1, 0))
    slow += milliseconds(lambda: network.run(network.ids([0] * _FEW), _FEW, far))
    fast = milliseconds(lambda: passes.run([0], 1, 0)) + milliseconds(lambda: passes.run([0] * _FEW, _FEW, far))
    return passes if passes.possible and fast < slow else None


def _rows(logits: Tensor) -> FloatArray:
    rows: FloatArray = logits.float().cpu().numpy()
    return rows


def narrows(network: Network) -> bool:
    """Whether the rows of a pass take more of its time to come to the host than they are worth."""
    if network.device.type != "cuda":
        return False
    ids = network.ids([0] * _WIDTH)
    logits = network.run(ids, _WIDTH, 0).float()
    copy = milliseconds(logits.cpu)
    return copy > WORTH * milliseconds(lambda: network.run(ids, _WIDTH, 0))


def milliseconds(run: Callable[[], object]) -> float:
    """The least of a few runs on the GPU, the first left out."""
    times = []
    for _ in range(_TIMES + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)))
    return min(times[1:])
