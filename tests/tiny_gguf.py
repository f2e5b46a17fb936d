"""Writes tiny random models as GGUF files, in milliseconds: real files for llama.cpp, nonsense as language.

Weights are large enough that every token in the cache moves the logits, so that a stale or missing cache entry shows.
Everything follows from `seed`; a `blur` mixes in another seed's weights, which makes a draft of the same vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from engine.calibration_text import TEXT

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message['role'] }}\n{{ message['content'] }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
BPE_CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SPM_CONTROL = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>")
MERGES = ("Ġ t", "h e", "Ġt he", "i n", "e r", "Ġ a", "o n", "Ġ ~", "a t", "e n", "Ġ s", "Ġ w", "o r", "i s", "l l")
WORDS = tuple(
    dict.fromkeys(
        f"{word[:at]} {word[at]}"
        for word in re.findall(r"Ġ?[A-Za-z]+|Ġ?[^\wĠ\n]+|Ġ+", TEXT.replace(" ", "Ġ"))
        for at in range(1, len(word))
    )
)
"""Merges by which a BPE vocabulary comes to whole words of the text that is measured on."""
WIDTH, HEADS, HIDDEN = 64, 2, 128
WINDOW = 16

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True)
class Tiny:
    """What to write; the defaults make a small model with a ChatML vocabulary."""

    seed: int = 0
    blur: float = 0.0
    n_ctx: int = 4096
    layers: int = 2
    padding: int = 0
    """Unused entries at the end of the vocabulary."""
    template: str | None = CHATML
    extra: Sequence[str] = ()
    """More normal tokens, so that two vocabularies differ."""
    merges: Sequence[str] = MERGES
    """What a byte-level BPE vocabulary joins, the first first."""
    family: str = "llama"
    """What else of the shape of llama to write: in smollm3 each fourth layer has no rotation."""
    yarn: bool = False
    """Whether rotations are scaled, in the llama family."""
    key_factor: float = 1.0
    """What rotations multiply keys with, in the llama family, where no scaling is named."""
    name: str = "tiny"
    """llama.cpp knows some families by it: in one of Phi-3 the control tokens strip what follows them."""
    space_prefix: bool = False
    """Whether a SentencePiece vocabulary puts a space before the text."""


def write_llama(path: Path, tiny: Tiny = Tiny()) -> Path:
    """A dense model of the llama family with a byte-level BPE vocabulary and ChatML control tokens."""
    writer = gguf.GGUFWriter(path, tiny.family)
    size = _bpe_vocabulary(writer, tiny)
    _common(writer, tiny, WIDTH // HEADS)
    if tiny.yarn:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(4.0)
        writer.add_rope_scaling_orig_ctx_len(tiny.n_ctx // 4)
    if not tiny.yarn:
        writer.add_rope_scaling_attn_factors(tiny.key_factor)
    weights = _Weights(writer, tiny)
    weights.ends(size)
    for layer in range(tiny.layers):
        _attention(weights, layer, WIDTH)
        _feed_forward(weights, layer)
    return _finish(writer, path)


def write_gemma(path: Path, tiny: Tiny = Tiny(layers=6, template=GEMMA)) -> Path:
    """A model of the Gemma 3 family: five of six layers see WINDOW tokens; SentencePiece vocabulary that adds a BOS."""
    writer = gguf.GGUFWriter(path, "gemma3")
    size = _spm_vocabulary(writer, tiny)
    _common(writer, tiny, WIDTH // HEADS)
    writer.add_sliding_window(WINDOW)
    writer.add_key_length(WIDTH // HEADS)
    writer.add_value_length(WIDTH // HEADS)
    weights = _Weights(writer, tiny)
    weights.ends(size)
    for layer in range(tiny.layers):
        _attention(weights, layer, WIDTH)
        _feed_forward(weights, layer)
        for name in ("attn_q_norm", "attn_k_norm"):
            weights.ones(f"blk.{layer}.{name}.weight", WIDTH // HEADS)
        for name in ("post_attention_norm", "post_ffw_norm"):
            weights.ones(f"blk.{layer}.{name}.weight", WIDTH)
    return _finish(writer, path)


def write_mamba(path: Path, tiny: Tiny = Tiny()) -> Path:
    """A recurrent model: its state cannot go back, and llama.cpp has no snapshots of it."""
    inner, state, conv, rank = 2 * WIDTH, 16, 4, 4
    writer = gguf.GGUFWriter(path, "mamba")
    size = _bpe_vocabulary(writer, tiny)
    writer.add_context_length(tiny.n_ctx)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(tiny.layers)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_ssm_conv_kernel(conv)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    weights = _Weights(writer, tiny)
    weights.ends(size)
    for layer in range(tiny.layers):
        at = f"blk.{layer}"
        weights.ones(f"{at}.attn_norm.weight", WIDTH)
        weights.add(f"{at}.ssm_in.weight", 2 * inner, WIDTH)
        weights.add(f"{at}.ssm_conv1d.weight", inner, conv, scale=0.5)
        weights.add(f"{at}.ssm_conv1d.bias", inner, scale=0.1)
        weights.add(f"{at}.ssm_x.weight", rank + 2 * state, inner)
        weights.add(f"{at}.ssm_dt.weight", inner, rank)
        weights.add(f"{at}.ssm_dt.bias", inner, scale=0.1)
        decay = -np.tile(np.arange(1, state + 1, dtype=np.float32) / state, (inner, 1))
        writer.add_tensor(f"{at}.ssm_a", decay)
        weights.ones(f"{at}.ssm_d", inner)
        weights.add(f"{at}.ssm_out.weight", WIDTH, inner)
    return _finish(writer, path)


def write_qwen35(path: Path, tiny: Tiny = Tiny(layers=4)) -> Path:
    """A hybrid of the Qwen 3.5 family: each second layer attends, the others keep a state that has snapshots."""
    state, keys, values, head = 16, 32, 64, WIDTH // HEADS
    writer = gguf.GGUFWriter(path, "qwen35")
    size = _bpe_vocabulary(writer, tiny)
    _common(writer, tiny, head // 2)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_sections([4, 2, 2, 0])
    writer.add_full_attention_interval(2)
    writer.add_ssm_conv_kernel(4)
    writer.add_ssm_inner_size(values)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(values // state)
    writer.add_ssm_group_count(keys // state)
    weights = _Weights(writer, tiny)
    weights.ends(size)
    for layer in range(tiny.layers):
        at = f"blk.{layer}"
        weights.ones(f"{at}.attn_norm.weight", WIDTH)
        weights.ones(f"{at}.post_attention_norm.weight", WIDTH)
        _feed_forward(weights, layer, norm=False)
        if layer % 2:
            weights.add(f"{at}.attn_q.weight", 2 * head * HEADS, WIDTH)  # half of it is a gate
            for name, rows in (("attn_k", head * HEADS), ("attn_v", head * HEADS), ("attn_output", WIDTH)):
                weights.add(f"{at}.{name}.weight", rows, WIDTH)
            for name in ("attn_q_norm", "attn_k_norm"):
                weights.ones(f"{at}.{name}.weight", head)
            continue
        weights.add(f"{at}.attn_qkv.weight", 2 * keys + values, WIDTH)
        weights.add(f"{at}.attn_gate.weight", values, WIDTH)
        weights.add(f"{at}.ssm_conv1d.weight", 2 * keys + values, 4, scale=0.5)
        for name in ("ssm_beta", "ssm_alpha"):
            weights.add(f"{at}.{name}.weight", values // state, WIDTH)
        weights.add(f"{at}.ssm_dt.bias", values // state, scale=0.1)
        writer.add_tensor(f"{at}.ssm_a", -np.linspace(0.05, 0.3, values // state, dtype=np.float32))
        weights.ones(f"{at}.ssm_norm.weight", state)
        weights.add(f"{at}.ssm_out.weight", WIDTH, values)
    return _finish(writer, path)


class _Weights:
    """Adds random tensors; norms of rows stay near 1, so that no layer drowns the others."""

    def __init__(self, writer: gguf.GGUFWriter, tiny: Tiny) -> None:
        self._writer = writer
        self._blur = tiny.blur
        self._own = np.random.default_rng(tiny.seed)
        self._other = np.random.default_rng(tiny.seed + 1_000_003)

    def add(self, name: str, *shape: int, scale: float | None = None) -> None:
        own, other = (r.standard_normal(shape, np.float32) for r in (self._own, self._other))
        mixed = np.sqrt(1 - self._blur**2) * own + self._blur * other
        self._writer.add_tensor(name, (mixed * (scale or 1 / np.sqrt(shape[-1]))).astype(np.float32))

    def ends(self, size: int) -> None:
        """What stands before the first and behind the last layer, for a vocabulary of `size`."""
        self.add("token_embd.weight", size, WIDTH, scale=1.0)
        self.add("output.weight", size, WIDTH, scale=3 / np.sqrt(WIDTH))
        self.ones("output_norm.weight", WIDTH)

    def ones(self, name: str, size: int) -> None:
        self._writer.add_tensor(name, np.ones(size, np.float32))


def _common(writer: gguf.GGUFWriter, tiny: Tiny, head: int) -> None:
    writer.add_name(tiny.name)
    writer.add_context_length(tiny.n_ctx)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_block_count(tiny.layers)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(10_000.0)


def _attention(weights: _Weights, layer: int, width: int) -> None:
    weights.ones(f"blk.{layer}.attn_norm.weight", WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights.add(f"blk.{layer}.{name}.weight", width, WIDTH, scale=1.6 / np.sqrt(WIDTH))


def _feed_forward(weights: _Weights, layer: int, norm: bool = True) -> None:
    if norm:
        weights.ones(f"blk.{layer}.ffn_norm.weight", WIDTH)
    weights.add(f"blk.{layer}.ffn_gate.weight", HIDDEN, WIDTH)
    weights.add(f"blk.{layer}.ffn_up.weight", HIDDEN, WIDTH)
    weights.add(f"blk.{layer}.ffn_down.weight", WIDTH, HIDDEN)


def _finish(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_letters() -> list[str]:
    """The letters by which a byte-level BPE vocabulary spells the 256 bytes, in order of the bytes."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = iter(range(256))
    return [chr(byte if byte in plain else 256 + next(moved)) for byte in range(256)]


def _bpe_vocabulary(writer: gguf.GGUFWriter, tiny: Tiny) -> int:
    normal = [*byte_letters(), *("".join(merge.split()) for merge in tiny.merges), *tiny.extra]
    padding = [f"[PAD{i}]" for i in range(tiny.padding)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*normal, *BPE_CONTROL, *padding])
    writer.add_token_types([NORMAL] * len(normal) + [CONTROL] * len(BPE_CONTROL) + [UNUSED] * len(padding))
    writer.add_token_merges(list(tiny.merges))
    writer.add_eos_token_id(len(normal) + BPE_CONTROL.index("<|im_end|>"))
    writer.add_bos_token_id(len(normal))
    writer.add_add_bos_token(False)
    if tiny.template is not None:
        writer.add_chat_template(tiny.template)
    return len(normal) + len(BPE_CONTROL) + len(padding)


def _spm_vocabulary(writer: gguf.GGUFWriter, tiny: Tiny) -> int:
    words = [*SPM_CONTROL[:3], "<unk>", *SPM_CONTROL[3:], *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [CONTROL] * 3 + [UNKNOWN] + [CONTROL] * 2 + [BYTE] * 256
    pieces = ["▁", *map(chr, range(0x21, 0x7F)), "▁t", "he", "▁the", "in", "er", "\n", *tiny.extra]
    padding = [f"<unused{i}>" for i in range(tiny.padding)]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([*words, *pieces, *padding])
    writer.add_token_types(kinds + [NORMAL] * len(pieces) + [UNUSED] * len(padding))
    writer.add_token_scores([0.0] * len(words) + [-float(i) for i in range(len(pieces))] + [0.0] * len(padding))
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(tiny.space_prefix)
    if tiny.template is not None:
        writer.add_chat_template(tiny.template)
    return len(words) + len(pieces) + len(padding)
