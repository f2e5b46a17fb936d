"""Passes of one network: its layers are those that read text."""

import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

from engine.backends.torch_library import Device, torch, transformers
from engine.backends.torch_network import Network
from engine.errors import Interrupted

SHAPE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = {"vocab_size": 64, "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 16}
VISION = {"image_size": 28, "patch_size": 14}


def test_a_network_that_sees_has_as_many_layers_for_that_and_is_stopped_in_those_that_read() -> None:
    config = transformers.Gemma3Config(text_config=SHAPE | TEXT, vision_config=SHAPE | VISION, mm_tokens_per_image=4)
    module = transformers.AutoModelForCausalLM.from_config(config).eval()
    network = Network(module, 32, Device("cpu"))
    assert network.layers == list(module.get_decoder().layers)
    with torch.inference_mode():
        assert network.run(network.ids([1, 2, 3]), 2, 0).shape == (2, 64)
        network.stop = network.listens = True
        with pytest.raises(Interrupted):
            network.run(network.ids([1, 2, 3]), 2, 0)
    network.close()
