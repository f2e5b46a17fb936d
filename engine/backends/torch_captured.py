"""Narrow passes of fixed shapes, captured once and replayed: on a GPU, Python's part of a pass can cost more than it.

The one invariant: a replay computes what a pass of its own would, since nothing in it depends on where it stands but
the numbers in two tensors, the ids and the place.  What was left behind the place is masked, so it must be finite.
Each pair of width and room is captured when it is first needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.backends.torch_library import Tensor, torch
from engine.backends.torch_network import Network

WIDEST = 16
"""Tokens of the widest pass that is captured."""
LEAST_ROOM = 256
"""Room grows by doubling from here: a short conversation is not attended to as if it were a long one."""

Run = Callable[[], Tensor]
Capture = Callable[[Run], tuple[Callable[[], None], Tensor]]
"""From a computation to what repeats it, and the tensor in which the result then stands."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    ids: Tensor
    position: Tensor
    replay: Callable[[], None]
    logits: Tensor


class CapturedPasses:
    """The captured passes of one network."""

    def __init__(self, network: Network, capture: Capture | None = None) -> None:
        self._network = network
        self._capture = capture or graphs()
        self._recorded: dict[tuple[int, int], _Recorded] = {}
        self.possible = True
        """False once a pass could not be captured: no other is tried."""

    def run(self, tokens: Sequence[int], rows: int, start: int) -> Tensor | None:
        """As Network.run; valid until the next one.  None: it is not captured, so wide or in such a network."""
        width = len(tokens)
        if width > WIDEST or not self.possible:
            return None
        room = self._room(start + width)
        try:
            one = self._recorded.get((width, room)) or self._record(width, room, start)
        except Exception:  # whatever the libraries raise: it waits for the device somewhere, or memory is short
            self.possible = False
            self._recorded.clear()
            return None
        one.ids.copy_(self._network.ids(tokens))
        one.position.fill_(start)
        one.replay()
        return one.logits[width - rows :]

    def _room(self, needed: int) -> int:
        room = LEAST_ROOM
        while room < needed:
            room *= 2
        return min(room, self._network.cache.place.n_ctx)

    def _record(self, width: int, room: int, start: int) -> _Recorded:
        network, place = self._network, self._network.cache.place
        ids = network.ids([0] * width)
        position = torch.tensor(start, dtype=torch.long, device=network.device)

        def compute() -> Tensor:
            before, listens = (place.position, place.room), network.listens
            place.position, place.room, network.listens = position, room, False
            try:
                return network.compute(ids, width)
            finally:
                (place.position, place.room), network.listens = before, listens

        replay, logits = self._capture(compute)
        self._recorded[width, room] = _Recorded(ids, position, replay, logits)
        return self._recorded[width, room]


def graphs() -> Capture:
    """CUDA graphs, which share one pool of memory and one stream, as libraries keep a workspace for each they see."""
    pool = torch.cuda.graph_pool_handle()
    aside = torch.cuda.Stream()

    def capture(run: Run) -> tuple[Callable[[], None], Tensor]:
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):  # so that libraries have chosen their kernels and made their workspaces
                run()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        back = torch.cuda.stream(torch.cuda.current_stream())  # a capture that fails does not go back itself
        with back, torch.cuda.graph(graph, pool=pool, stream=aside):
            logits = run()
        return graph.replay, logits

    return capture


def repeated(run: Run) -> tuple[Callable[[], None], Tensor]:
    """No capture at all: the computation itself is run again.  For devices without graphs."""
    logits = run().clone()

    def again() -> None:
        logits.copy_(run())

    return again, logits
