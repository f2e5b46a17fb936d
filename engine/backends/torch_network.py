"""One network of transformers with its cache: passes over tokens at a place, all layers or some of them.

The one invariant: a pass writes into the cache at the place that it is given and nowhere else, whatever comes of it;
what counts as held is for the caller to say.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature

from engine.backends.torch_cache import ConversationCache
from engine.backends.torch_library import Device, Module, Tensor, torch
from engine.errors import Interrupted, LoadFailed


class Network:
    """Runs passes.  Not for use by two threads at once, `stop` apart."""

    def __init__(self, module: Module, n_ctx: int, device: Device) -> None:
        self.module, self.device = module, device
        self.cache = ConversationCache(module.config, n_ctx)
        self._takes_places = "position_ids" in signature(module.forward).parameters
        self._inner, self._name = _layers_of(module)
        self.layers = list(getattr(self._inner, self._name))
        self.stop = False
        """Set from any thread: the pass that runs raises Interrupted at its next layer, if it `listens`."""
        self.listens = False
        self._hooks = [layer.register_forward_pre_hook(self._pause) for layer in self.layers]

    def _pause(self, *_: object) -> None:
        if self.stop and self.listens:
            raise Interrupted("the pass was stopped")

    def close(self) -> None:
        """Hold itself no longer through its hooks, so that its memory is free as soon as nobody else holds it."""
        for hook in self._hooks:
            hook.remove()

    @property
    def columns(self) -> int:
        """Width of a row of logits."""
        return int(self.module.get_output_embeddings().weight.shape[0])

    def ids(self, tokens: Sequence[int]) -> Tensor:
        """Tokens on the device, [1, n]."""
        return torch.tensor([list(tokens)], dtype=torch.long, device=self.device)

    def run(self, ids: Tensor, rows: int, start: int) -> Tensor:
        """A pass over `ids`, [1, n], behind the first `start` tokens; the last `rows` rows, [rows, columns]."""
        self.cache.place.start = start
        return self.compute(ids, rows)

    def run_singly(self, ids: Tensor, rows: int, start: int) -> Tensor:
        """As `run`, a token at a time."""
        least = ids.shape[1] - rows
        passes = [self.run(ids[:, at : at + 1], int(at >= least), start + at) for at in range(ids.shape[1])]
        return torch.cat(passes)

    def compute(self, ids: Tensor, rows: int) -> Tensor:
        """As `run`, at the place that the cache is at."""
        count = ids.shape[1]
        # named one by one they become a tensor of their own: on the end of another the head is ten times slower in bf16
        keep = torch.arange(count - rows, count, device=self.device) if rows < count else 0  # 0 keeps every row
        # some networks count from 0 in each pass where they are not told
        places = {"position_ids": self.cache.place.ahead(count, self.device)} if self._takes_places else {}
        out = self.module(
            input_ids=ids, cache=self.cache, use_cache=True, logits_to_keep=keep, return_dict=True, **places
        )
        logits: Tensor = out.logits[0]
        return logits

    @contextmanager
    def only(self, layers: Sequence[Module]) -> Iterator[None]:
        """While the context is open, these are the layers of the network."""
        whole = getattr(self._inner, self._name)
        setattr(self._inner, self._name, torch.nn.ModuleList(layers))
        try:
            yield
        finally:
            setattr(self._inner, self._name, whole)


def _layers_of(module: Module) -> tuple[Module, str]:
    """The module that holds the list of layers, and the list's name; what sees or hears has layers of its own."""
    count = module.config.get_text_config(decoder=True).num_hidden_layers
    for inner in module.get_decoder().modules():
        for name, child in inner.named_children():
            if isinstance(child, torch.nn.ModuleList) and len(child) == count:
                return inner, name
    raise LoadFailed(f"{type(module).__name__} is not built of layers that are known here: take another model")
