"""Writes tiny random models as folders that transformers loads: real checkpoints, nonsense as language.

Each says the same tokens under the same ids as its namesake in tests/tiny_gguf.py, so that the two engines' toys pair.
Weights are large enough that every token in the cache moves the logits, whose standard deviation is about 3.
Everything follows from `seed`; a `blur` mixes in another seed's weights, which makes a draft of the same vocabulary.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GenerationConfig,
    LlamaConfig,
    MambaConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3_5TextConfig,
)

from tests.tiny_gguf import BPE_CONTROL, GEMMA, SPM_CONTROL, WINDOW, Tiny, byte_letters

WIDTH, HIDDEN, HEADS, KV_HEADS, HEAD = 64, 128, 4, 2, 16
STATE, CONV = 16, 4
TWO, FOUR, SIX = Tiny(), Tiny(layers=4), Tiny(layers=6, template=GEMMA)
"""By layers."""
SPM_WORDS = (*SPM_CONTROL[:3], "<unk>", *SPM_CONTROL[3:], *(f"<0x{byte:02X}>" for byte in range(256)))
SPM_PIECES = ("▁", *map(chr, range(0x21, 0x7F)), "▁t", "he", "▁the", "in", "er", "\n")


def write_tokenizer(folder: Path, tiny: Tiny = TWO) -> Path:
    """The byte-level BPE vocabulary alone, without a model."""
    names = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    return _write_tokenizer(folder, _bpe_tokenizer(tiny), names, tiny.template)


def write_llama(folder: Path, tiny: Tiny = TWO) -> Path:
    """A dense model of the Llama family with grouped queries; byte-level BPE vocabulary with ChatML control tokens."""
    return _write_bpe(folder, tiny, LlamaConfig, _attending(tiny) | {"head_dim": HEAD})


def write_qwen2(folder: Path, tiny: Tiny = TWO) -> Path:
    """The same of the Qwen 2 family, which adds biases to queries, keys and values."""
    return _write_bpe(folder, tiny, Qwen2Config, _attending(tiny))


def write_gemma3(folder: Path, tiny: Tiny = SIX) -> Path:
    """A model of the Gemma 3 family: five of six layers see WINDOW tokens; SentencePiece vocabulary that adds a BOS."""
    tokenizer = _spm_tokenizer(tiny)
    more = {"head_dim": HEAD, "query_pre_attn_scalar": HEAD, "sliding_window": WINDOW}
    ends = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
    size = tokenizer.get_vocab_size() + tiny.padding
    config = Gemma3TextConfig(vocab_size=size, **_attending(tiny), **more, **ends)
    names = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    _write_tokenizer(folder, tokenizer, names, tiny.template)
    return _write_model(folder, config, tiny, [1, SPM_WORDS.index("<end_of_turn>")])


def write_mamba(folder: Path, tiny: Tiny = TWO) -> Path:
    """A recurrent model: its state cannot go back, and it names no context length."""
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": tiny.layers,
        "state_size": STATE,
        "conv_kernel": CONV,
        "time_step_rank": 4,
        "tie_word_embeddings": False,
    }
    return _write_bpe(folder, tiny, MambaConfig, shape)


def write_hybrid(folder: Path, tiny: Tiny = FOUR) -> Path:
    """A hybrid of the Qwen 3.5 family: each second layer attends, the others keep a state."""
    shape = {
        "head_dim": HEAD,
        "full_attention_interval": 2,
        "linear_conv_kernel_dim": CONV,
        "linear_key_head_dim": STATE,
        "linear_value_head_dim": STATE,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
    }
    return _write_bpe(folder, tiny, Qwen3_5TextConfig, _attending(tiny) | shape)


def write_family(folder: Path, family: type[PretrainedConfig], shape: Mapping[str, object]) -> Path:
    """A model of any family: `shape` says what is to be otherwise than in a small one that attends."""
    return _write_bpe(folder, Tiny(), family, _attending(Tiny()) | {"head_dim": HEAD} | shape)


def _attending(tiny: Tiny) -> dict[str, object]:
    return {
        "hidden_size": WIDTH,
        "intermediate_size": HIDDEN,
        "num_hidden_layers": tiny.layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": tiny.n_ctx,
        "tie_word_embeddings": False,
    }


def _write_bpe(folder: Path, tiny: Tiny, family: type[PretrainedConfig], shape: Mapping[str, object]) -> Path:
    tokenizer = _bpe_tokenizer(tiny)
    opens, _, ends = map(tokenizer.token_to_id, BPE_CONTROL)
    size = tokenizer.get_vocab_size() + tiny.padding
    config = family(vocab_size=size, bos_token_id=opens, eos_token_id=ends, pad_token_id=opens, **shape)
    return _write_model(write_tokenizer(folder, tiny), config, tiny, [ends, opens])


def _write_model(folder: Path, config: PretrainedConfig, tiny: Tiny, ends: list[int]) -> Path:
    config.dtype = "float32"
    model = AutoModelForCausalLM.from_config(config)
    own, other = np.random.default_rng(tiny.seed), np.random.default_rng(tiny.seed + 1_000_003)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            a, b = (generator.standard_normal(tuple(weight.shape), np.float32) for generator in (own, other))
            scale = _scale(name, tuple(weight.shape), config.model_type)
            if scale:
                mixed = scale * (math.sqrt(1 - tiny.blur**2) * a + tiny.blur * b)
                weight.copy_(torch.from_numpy(mixed.astype(np.float32)))
            elif name.endswith("A_log"):
                weight.copy_(torch.linspace(-3, 0, weight.shape[-1]).expand_as(weight))
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=config.pad_token_id)
    model.save_pretrained(folder)
    return folder


def _scale(name: str, shape: tuple[int, ...], family: str) -> float:
    """What to multiply normal numbers with; 0 leaves what the family begins with, as in norms."""
    part = name.removesuffix(".weight").rsplit(".", 1)[-1]
    if "norm" in name or part in ("A_log", "D"):
        return 0
    if len(shape) == 1:
        return 0.1
    if part in ("embed_tokens", "embeddings"):
        return 1 / math.sqrt(WIDTH) if family.startswith("gemma") else 1  # gemma multiplies by that root
    factor = 3 if part == "lm_head" else 1.6 if part in ("q_proj", "k_proj", "v_proj", "o_proj") else 1
    return factor / math.sqrt(shape[-1])


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, names: Mapping[str, str], template: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **names}
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _bpe_tokenizer(tiny: Tiny) -> Tokenizer:
    normal = [*byte_letters(), *("".join(merge.split()) for merge in tiny.merges), *tiny.extra]
    merges = [(left, right) for left, right in map(str.split, tiny.merges)]
    tokenizer = Tokenizer(models.BPE({text: token for token, text in enumerate(normal)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in BPE_CONTROL])
    return tokenizer


def _spm_tokenizer(tiny: Tiny) -> Tokenizer:
    pieces = (*SPM_PIECES, *tiny.extra)
    vocab = {text: token for token, text in enumerate((*SPM_WORDS, *pieces))}
    halves = [(piece[:at], piece[at:]) for piece in pieces for at in range(1, len(piece))]
    merges = [(left, right) for left, right in halves if left in pieces and right in pieces]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    prefix = [normalizers.Prepend("▁")] if tiny.space_prefix else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", "▁")])
    strip = [decoders.Strip(" ", 1, 0)] if tiny.space_prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPM_CONTROL])
    tokenizer.post_processor = processors.TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 2)])
    return tokenizer
