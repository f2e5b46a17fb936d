"""Leaving a network early: its first layers and its head propose, and what they computed is not computed again.

The one invariant: `hidden` is what the first `depth` layers gave for the ids that left early, at the places behind the
cache, so the rest of the layers goes on from it for as long as the same ids follow.  (Draft & Verify, Zhang et al.
2023; LayerSkip, Elhoushi et al. 2024.)
"""

from collections.abc import Sequence

from engine.backends.torch_library import Module, Tensor, torch
from engine.backends.torch_network import Network
from engine.context import common_prefix


class EarlyExit:
    """What left a network behind its first `depth` layers, and is not yet in its cache."""

    def __init__(self, network: Network, depth: int) -> None:
        self.depth = depth
        self.ids: list[int] = []
        self._network = network
        self._hidden: Tensor | None = None

    def leave(self, tokens: Sequence[int], rows: int, start: int) -> Tensor:
        """Run `tokens` through the first layers and the head; `start` tokens are in the cache.  See Network.run."""
        logits, hidden = self._first(tokens, rows, start + len(self.ids))
        self._hidden = hidden if self._hidden is None else torch.cat([self._hidden, hidden], dim=1)
        self.ids += tokens
        return logits

    def resume(self, tokens: Sequence[int], rows: int, start: int) -> Tensor | None:
        """As a whole pass over `tokens`, from where those that left early are; None where they are not these."""
        network, depth = self._network, self.depth
        known = common_prefix(self.ids, tokens)
        if self._hidden is None or not known:
            return None
        hidden = self._hidden[:, :known]
        if known < len(tokens):
            _, more = self._first(tokens[known:], 0, start + known)
            hidden = torch.cat([hidden, more], dim=1)
        passed = [_Passed(layer, None) for layer in network.layers[: depth - 1]]
        passed.append(_Passed(network.layers[depth - 1], hidden))
        with network.only([*passed, *network.layers[depth:]]):
            return network.run(network.ids(tokens), rows, start)

    def _first(self, tokens: Sequence[int], rows: int, start: int) -> tuple[Tensor, Tensor]:
        """Logits and hidden states, [1, n, width], of a pass through the first layers."""
        network, depth = self._network, self.depth
        seen: list[Tensor] = []
        handle = network.layers[depth - 1].register_forward_hook(lambda _module, _args, out: seen.append(out))
        try:
            with network.only(network.layers[:depth]):
                logits = network.run(network.ids(tokens), rows, start)
        finally:
            handle.remove()
        return logits, seen[0]


class _Passed(Module):
    """Stands where a layer was run before: gives what it gave, or hands on what it got."""

    def __init__(self, layer: Module, hidden: Tensor | None) -> None:
        super().__init__()
        self.__dict__["_layer"], self.__dict__["_hidden"] = layer, hidden  # not as its own parts

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_layer"], name)

    def forward(self, hidden_states: Tensor, *_: object, **__: object) -> Tensor:
        """The hidden states behind the layer."""
        hidden: Tensor | None = self.__dict__["_hidden"]
        return hidden_states if hidden is None else hidden
