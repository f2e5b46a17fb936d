"""Keys and values of one conversation, for transformers: buffers as long as the context, and one length for all layers.

The one invariant: a pass writes at `place.start` and behind it, and nothing before it ever changes; so to go back is to
set a smaller start, at any time, bit for bit.  Layers with a sliding window keep the whole context too (their mask
leaves out what they must not see), or what they dropped would be missing after a step back.  A state, in place of keys
and values or beside them, is kept as transformers does, and cannot go back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.backends.torch_library import Device, Tensor, cache_utils, torch
from engine.errors import LoadFailed
from engine.model import FloatArray


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

    def ahead(self, count: int, device: Device) -> Tensor:
        """The places of the next `count` tokens, [1, count]."""
        if self.position is None:
            return torch.arange(self.start, self.start + count, device=device)[None]
        return (self.position + torch.arange(count, device=device))[None]


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
            at = place.ahead(count, key_states.device)[0]
            self.keys.index_copy_(2, at, key_states)
            self.values.index_copy_(2, at, value_states)
        return self.keys[:, :, :end], self.values[:, :, :end]

    def fill(self, keys: Tensor, values: Tensor, length: int) -> None:
        """Take over what was held of so many tokens; ValueError where it is of another length or type."""
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        if {keys.shape[2], values.shape[2]} != {length} or keys.dtype != self.keys.dtype:
            raise ValueError("another shape or type")
        self.keys[:, :, :length] = keys
        self.values[:, :, :length] = values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of what `update` will return."""
        return (self._place.start + query_length if self._place.position is None else self._place.room), 0

    def get_seq_length(self) -> "int | Tensor":
        """Tokens before the pass."""
        return self._place.start if self._place.position is None else self._place.position

    def get_max_length(self) -> int:
        """The context."""
        return self._place.n_ctx


class StateAndBufferLayer(cache_utils.LinearAttentionLayer, BufferLayer):
    """A state beside keys and values."""

    def __init__(self, place: Place, number_of_states: int) -> None:
        BufferLayer.__init__(self, place)
        cache_utils.LinearAttentionLayer.__init__(self, number_of_states)

    def lazy_initialization(self, *keys_and_values: Tensor, **states: object) -> None:
        """Make what is given the shapes of."""
        if keys_and_values:
            BufferLayer.lazy_initialization(self, *keys_and_values)
        else:
            cache_utils.LinearAttentionLayer.lazy_initialization(self, **states)


def _layer(kind: str, place: Place, states: int) -> object:
    """The cache of a layer of one kind; LoadFailed where that is not known."""
    if kind in ("full_attention", "sliding_attention", "chunked_attention"):
        return BufferLayer(place)
    if kind in ("linear_attention", "conv"):
        return cache_utils.LinearAttentionLayer(states)
    if kind in ("hybrid", "hybrid_sliding"):
        return StateAndBufferLayer(place, states)
    if kind == "dummy":  # it has no attention, or looks at what another layer holds
        return cache_utils.DummyLayer()
    raise LoadFailed(f"this model remembers by {kind.replace('_', ' ')}, which is not known here: take another model")


class ConversationCache(cache_utils.Cache):
    """The layers of one model."""

    def __init__(self, config: "object", n_ctx: int) -> None:
        self.place = Place(n_ctx)
        text = config.get_text_config(decoder=True)  # type: ignore[attr-defined]
        kinds, options = cache_utils.get_layer_types_and_kwargs(text)
        self._kinds = [(kind, more.get("number_of_states", 1)) for kind, more in zip(kinds, options, strict=True)]
        super().__init__(layers=[_layer(kind, self.place, states) for kind, states in self._kinds])

    def get_seq_length(self, layer_idx: int = 0) -> "int | Tensor":  # noqa: ARG002
        """Tokens before the pass, the same in all layers."""
        return self.place.start if self.place.position is None else self.place.position

    @property
    def whole(self) -> bool:
        """Whether every layer keeps all that it saw."""
        return not any(isinstance(layer, cache_utils.LinearAttentionCacheLayerMixin) for layer in self.layers)

    @property
    def used(self) -> bool:
        """Whether every layer has been written to: where one was not, the network keeps something elsewhere."""
        return all(
            layer.is_conv_states_initialized[0] or layer.is_recurrent_states_initialized[0]
            if isinstance(layer, cache_utils.LinearAttentionCacheLayerMixin)
            else layer.is_initialized
            for layer in self.layers
        )

    def clear(self) -> None:
        """Hold nothing; buffers stay, since each pass is told where it writes, and states begin anew."""
        for index, (kind, states) in enumerate(self._kinds):
            if isinstance(self.layers[index], cache_utils.LinearAttentionCacheLayerMixin):
                self.layers[index] = _layer(kind, self.place, states)

    def tensors(self, length: int) -> Iterator[tuple[str, Tensor]]:
        """What is held of `length` tokens, by name."""
        for index, layer in enumerate(self.layers):
            if isinstance(layer, BufferLayer) and layer.is_initialized:
                yield f"{index}.keys", layer.keys[:, :, :length]
                yield f"{index}.values", layer.values[:, :, :length]
            if isinstance(layer, cache_utils.LinearAttentionCacheLayerMixin):
                for kind in ("conv", "recurrent"):
                    for state, tensor in getattr(layer, f"{kind}_states").items():
                        if tensor is not None:
                            yield f"{index}.{kind}.{state}", tensor

    def numbers(self, length: int) -> FloatArray:
        """The same in one row."""
        return np.concatenate([tensor.float().cpu().numpy().ravel() for _, tensor in self.tensors(length)])

    def restore(self, held: dict[str, Tensor], length: int) -> None:
        """Take over what `tensors` gave of a cache of `length`; ValueError where it does not fit."""
        self.clear()
        for name, tensor in held.items():
            index, kind, *state = name.split(".")
            layer = self.layers[int(index)]
            if state:
                _set_state(layer, kind, int(state[0]), tensor)
            elif kind == "keys":
                layer.fill(tensor, held[f"{index}.values"], length)


def _set_state(layer: cache_utils.LinearAttentionCacheLayerMixin, kind: str, state: int, tensor: Tensor) -> None:
    layer.lazy_initialization(**{f"{kind}_states": tensor}, state_idx=state)
    getattr(layer, f"{kind}_states")[state].copy_(tensor)
    layer.has_previous_state[state] = True
