"""Linear layers in 4 or 8 bits, by bitsandbytes: NF4 (Dettmers et al. 2023) and LLM.int8() (Dettmers et al. 2022).

Everything but the head is quantized, in every form of a model alike: a checkpoint's while it is read, a GGUF file's
after it was unpacked.
"""

from typing import Literal

from engine.backends.torch_library import Device, Module, torch, transformers

_OUTLIERS = 6.0
"""Activations beyond this are computed in 16 bits, as the paper does."""


def config_of(kept: Literal["nf4", "int8"], dtype: "torch.dtype") -> object:
    """How transformers is to quantize a checkpoint while it reads it."""
    if kept == "int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=_OUTLIERS)
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)


def quantize(network: Module, kept: Literal["nf4", "int8"], device: Device) -> None:
    """Put quantized layers in the place of all linear ones but the head."""
    head = network.get_output_embeddings()
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear and child is not head:
                setattr(parent, name, quantized(child, kept, device))


def quantized(layer: "torch.nn.Linear", kept: Literal["nf4", "int8"], device: Device) -> Module:
    """One layer in fewer bits, on its device."""
    import bitsandbytes

    shape = (layer.in_features, layer.out_features)
    bias = layer.bias is not None
    if kept == "int8":
        new = bitsandbytes.nn.Linear8bitLt(*shape, bias=bias, has_fp16_weights=False, threshold=_OUTLIERS)
        new.weight = bitsandbytes.nn.Int8Params(layer.weight.data, requires_grad=False, has_fp16_weights=False)
    else:
        new = bitsandbytes.nn.Linear4bit(*shape, bias=bias, compute_dtype=layer.weight.dtype, quant_type="nf4")
        new.weight = bitsandbytes.nn.Params4bit(layer.weight.data, requires_grad=False, quant_type="nf4")
    if bias:
        new.bias = torch.nn.Parameter(layer.bias.data, requires_grad=False)
    return new.to(device)
