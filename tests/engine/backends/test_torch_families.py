"""Networks of many families on torch: what is opened says what one pass of transformers says, all else is refused."""

import random
from collections.abc import Sequence
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("engine.backends.transformers", reason="needs the torch extra")

import torch
from transformers import CONFIG_MAPPING

from engine.backends import torch_network
from engine.backends.transformers import TorchModel, TorchOptions
from engine.backends.trial import Trial
from engine.errors import LoadFailed
from engine.model import FloatArray
from tests.engine.backends.contract import rewind_if_possible, some_ids
from tests.tiny_torch import write_family

N_CTX = 128
WINDOW = {"sliding_window": 16}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
MIXED = ["linear_attention", "full_attention"] * 2
HALVES = ["sliding_attention", "full_attention"] * 2
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_chunk_size": 8}
SHARED = {"num_kv_shared_layers": 2, "layer_types": HALVES, "vocab_size_per_layer_input": 274, **WINDOW}
LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16,
    "head_dim": 8, "num_key_value_heads": 4, "n_routed_experts": 4, "moe_intermediate_size": 32,
    "first_k_dense_replace": 2, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
}  # fmt: skip

WHOLE: dict[str, dict[str, object]] = {
    "mistral": WINDOW,
    "gemma2": WINDOW,
    "phi3": {},
    "granite": {},
    "smollm3": {},
    "mixtral": EXPERTS,
    "gpt_oss": {**EXPERTS, **WINDOW},
    "llama4_text": {"num_local_experts": 2, "attention_chunk_size": 16, "intermediate_size_mlp": 128},
    "gpt2": {"n_embd": 64, "n_layer": 4, "n_head": 4},
    "deepseek_v3": LATENT,
}
NOT_LEFT: dict[str, dict[str, object]] = {
    "bloom": {"n_layer": 4, "n_head": 4},
    "gemma3n_text": {**SHARED, "laurel_rank": 8, "hidden_size_per_layer_input": 16, "altup_num_inputs": 2,
                     "activation_sparsity_pattern": [0.0] * 4},
    "gemma4_text": {**SHARED, "hidden_size_per_layer_input": 16, "global_head_dim": 16},
}  # fmt: skip
STATES: dict[str, dict[str, object]] = {
    "mamba2": {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 1, "chunk_size": 8},
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 64, "mamba_n_heads": 4},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_d_state": 16,
              "use_mamba_kernels": False},
    "bamba": {**MAMBA, "attn_layer_indices": [1, 3]},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2, "block_ff_dim": 128},
}  # fmt: skip
UNKNOWN: dict[str, dict[str, object]] = {
    "rwkv": {"attention_hidden_size": 64},
    "openai-gpt": {"n_embd": 64, "n_layer": 4, "n_head": 4},
    "recurrent_gemma": {"lru_width": 64, "attention_window_size": 16},
    "minimax": {"num_local_experts": 2, "layer_types": MIXED, "block_size": 8},
    "deepseek_v32": LATENT,
}


def opened(folder: Path, family: str, more: dict[str, object], **options: object) -> TorchModel:
    path = folder / "model"
    if not path.exists():
        write_family(path, CONFIG_MAPPING[family], {"num_hidden_layers": 4, **more})
    chosen = {"n_ctx": N_CTX, "n_batch": 64, "threads": 1, "weights": "fp32", "gpu": False, **options}
    return TorchModel(TorchOptions(path=path, **chosen))  # type: ignore[arg-type]


def one_pass(model: TorchModel, ids: Sequence[int]) -> FloatArray:
    with torch.inference_mode():
        rows: FloatArray = model._alive().module(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()
    return rows


def check_rows(model: TorchModel, folder: Path) -> None:
    """Of wide and narrow passes, after steps back, and from a saved cache; as one pass gives them."""
    chance = random.Random(0)
    ids = some_ids(model, N_CTX - 1)
    wanted = one_pass(model, ids)
    for _ in range(20):
        width = min(chance.choice([1, 1, 2, 3, 20]), len(ids) - model.length)
        start = model.length
        rows = model.forward(ids[start : start + width], width)
        np.testing.assert_allclose(rows, wanted[start : start + width], rtol=0, atol=2e-3)
        rewind_if_possible(model, max(0, model.length - chance.choice([0, 1, 2, 9])))
    model.save(folder / "cache")
    length = model.length
    model.forward(ids[:1], 0)
    model.load(folder / "cache")
    rows = model.forward(ids[length : length + 2], 2)
    np.testing.assert_allclose(rows, wanted[length : length + 2], rtol=0, atol=2e-3)


@pytest.mark.parametrize("captured", [None, True])
@pytest.mark.parametrize("family", [*WHOLE, *NOT_LEFT])
def test_networks_of_attention_go_back_and_say_what_one_pass_says(
    tmp_path: Path, family: str, captured: bool | None
) -> None:
    model = opened(tmp_path, family, {**WHOLE, **NOT_LEFT}[family], captured=captured)
    assert model.reach is None
    assert model.layers == (0 if family in NOT_LEFT else 4)
    check_rows(model, tmp_path)
    model.close()


@pytest.mark.parametrize("family", STATES)
def test_networks_of_states_say_what_one_pass_says(tmp_path: Path, family: str) -> None:
    model = opened(tmp_path, family, STATES[family])
    assert model.reach == 0
    check_rows(model, tmp_path)
    model.close()


@pytest.mark.parametrize("family", UNKNOWN)
def test_networks_that_remember_elsewhere_are_refused(tmp_path: Path, family: str) -> None:
    with pytest.raises(LoadFailed, match="take another model"):
        opened(tmp_path, family, UNKNOWN[family])


def test_a_network_that_forgets_its_places_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This one counts from 0 in each pass, unless it is told where it stands."""
    opened(tmp_path, "bamba", STATES["bamba"]).close()
    monkeypatch.setattr(torch_network, "signature", lambda _: signature(tmp_path.exists))
    with pytest.raises(LoadFailed, match="in a way that is not known here"):
        opened(tmp_path, "bamba", STATES["bamba"])


def test_a_context_ends_where_rotations_would_change(tmp_path: Path) -> None:
    factors = {"short_factor": [1.0] * 8, "long_factor": [4.0] * 8}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 64, **factors}
    more = {"original_max_position_embeddings": 64, "rope_parameters": rope}
    model = opened(tmp_path, "phi3", more, n_ctx=None)
    assert model.n_ctx == 64
    with pytest.raises(LoadFailed, match=r"64 tokens of context, not 65"):
        opened(tmp_path, "phi3", more, n_ctx=65)


@pytest.mark.parametrize("forgets", [False, True])
def test_a_trial_finds_out_whether_what_was_read_counts(forgets: bool) -> None:
    held: list[int] = []

    def read(tokens: Sequence[int]) -> FloatArray:
        held[:] = [*([] if forgets else held), *tokens]
        return np.random.default_rng(held).standard_normal(9).astype(np.float32)

    trial = Trial(read, lambda _length: True, held.clear)
    assert trial.remembers() is not forgets
