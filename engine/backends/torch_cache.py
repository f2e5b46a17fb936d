"""Keys and values of one conversation, for transformers: buffers as long as the context, and one length for all layers.

The one invariant: a pass writes at `place.start` and behind it, and nothing before it ever changes; so to go back is to
set a smaller start, at any time, bit for bit.  Layers with a sliding window keep the whole context too (their mask
leaves out what they must not see), or what they dropped would be missing after a step back.  Layers that keep a state
instead of keys and values are transformers' own, and cannot go back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.backends.torch_library import Tensor, cache_utils, torch
from engine.model import FloatArray

_ATTENDING = ("full_attention", "sliding_attention", "chunked_attention")


@dataclass(slots=True)
class Place:
    """Where the pass that runs writes."""

    n_ctx: int
    start: int = 0
    """Tokens before it."""
    position: Tensor | None = None
    """The same on the device, for a pass whose shapes must not depend on it; None: shapes may."""
    room: int = 0
    """With `position`: so much of the buffers is looked at, whatever is held."""


class BufferLayer(cache_utils.CacheLayerMixin):
    """Keys and values of one layer, [1, heads, n_ctx, width] each."""

    is_sliding = False
    is_croppable = False
    supports_early_init = False

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    @property
    def is_compileable(self) -> bool:
        """Whether shapes are the same for every place: then transformers leaves no mask out."""
        return self._place.position is not None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make the buffers; memory is taken page by page where the system can."""
        self.keys, self.values = (self._buffer(states) for states in (key_states, value_states))
        self.is_initialized = True

    def _buffer(self, states: Tensor) -> Tensor:
        batch, heads, _, width = states.shape
        return torch.zeros((batch, heads, self._place.n_ctx, width), dtype=states.dtype, device=states.device)

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Write behind what is held; the keys and values to attend to."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        place, count = self._place, key_states.shape[-2]
        if place.position is None:
            end = place.start + count
            self.keys[:, :, place.start : end] = key_states
            self.values[:, :, place.start : end] = value_states
        else:
            end = place.room
            at = place.position + torch.arange(count, device=key_states.device)
            self.keys.index_copy_(2, at, key_states)
            self.values.index_copy_(2, at, value_states)
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what `update` will return."""
        return (self._place.start + query_length if self._place.position is None else self._place.room), 0

    def get_seq_length(self) -> "int | Tensor":
        """Tokens before the pass."""
        return self._place.start if self._place.position is None else self._place.position

    def get_max_length(self) -> int:
        """The context."""
        return self._place.n_ctx


class ConversationCache(cache_utils.Cache):
    """The layers of one model."""

    def __init__(self, config: "object", n_ctx: int) -> None:
        self.place = Place(n_ctx)
        text = config.get_text_config(decoder=True)  # type: ignore[attr-defined]
        types, options = cache_utils.get_layer_types_and_kwargs(text)
        self._makers = [
            (lambda: BufferLayer(self.place))
            if kind in _ATTENDING
            else (lambda kind=kind, options=options: cache_utils.DYNAMIC_LAYER_TYPE_MAPPING[kind](**options))
            for kind, options in zip(types, options, strict=True)
        ]
        super().__init__(layers=[make() for make in self._makers])

    def get_seq_length(self, layer_idx: int = 0) -> "int | Tensor":  # noqa: ARG002
        """Tokens before the pass, the same in all layers."""
        return self.place.start if self.place.position is None else self.place.position

    @property
    def whole(self) -> bool:
        """Whether every layer keeps all that it saw."""
        return all(isinstance(layer, BufferLayer) for layer in self.layers)

    def clear(self) -> None:
        """Hold nothing; buffers stay, states begin anew."""
        self.place.start = 0
        for index, layer in enumerate(self.layers):
            if not isinstance(layer, BufferLayer):
                self.layers[index] = self._makers[index]()

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """What is held, by name: to be saved."""
        for index, layer in enumerate(self.layers):
            for name in ("keys", "values"):
                tensor = getattr(layer, name, None)
                if tensor is not None and tensor.numel():
                    held = tensor[:, :, : self.place.start] if isinstance(layer, BufferLayer) else tensor
                    yield f"{index}.{name}", held
            if isinstance(layer, cache_utils.LinearAttentionCacheLayerMixin):
                for kind in ("conv", "recurrent"):
                    for state, tensor in getattr(layer, f"{kind}_states").items():
                        if tensor is not None:
                            yield f"{index}.{kind}.{state}", tensor

    def numbers(self, length: int) -> FloatArray:
        """All that is held of `length` tokens, in one row."""
        self.place.start = length
        return np.concatenate([tensor.float().cpu().numpy().ravel() for _, tensor in self.tensors()])

    def restore(self, held: dict[str, Tensor], length: int) -> None:
        """Take over what `tensors` gave of a cache of `length`; ValueError where it does not fit."""
        self.clear()
        for name, tensor in held.items():
            index, kind, *state = name.split(".")
            layer = self.layers[int(index)]
            if isinstance(layer, BufferLayer):
                self._fill(layer, kind, tensor, length)
            elif state:
                self._set_state(layer, kind, int(state[0]), tensor)
            else:
                setattr(layer, kind, tensor.clone())
        self.place.start = length

    @staticmethod
    def _fill(layer: BufferLayer, kind: str, tensor: Tensor, length: int) -> None:
        if not layer.is_initialized:
            raise ValueError("a pass must have run before")
        buffer = getattr(layer, kind)
        if tensor.shape[2] != length or tensor.dtype != buffer.dtype:
            raise ValueError("another shape or type")
        buffer[:, :, :length] = tensor

    @staticmethod
    def _set_state(layer: cache_utils.LinearAttentionCacheLayerMixin, kind: str, state: int, tensor: Tensor) -> None:
        layer.lazy_initialization(**{f"{kind}_states": tensor}, state_idx=state)
        getattr(layer, f"{kind}_states")[state].copy_(tensor)
        layer.has_previous_state[state] = True
