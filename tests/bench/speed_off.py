"""Speculation off against a bare llama_decode loop on the same context, in turns.

The bare loop feeds the same ids one by one and takes the largest logit; nothing else happens in it.
Run: PACELINE_TEST_TARGET=... python tests/bench/speed_off.py [turns]
"""

import ctypes
import sys
import time

import numpy as np
from common import ask, engine, header, in_turns, model_path, ratios, spread

from engine.backends.llamacpp import LlamaCppModel
from engine.config import Sampling

TOKENS = 128
PROMPT = "Explain how a refrigerator works to a ten-year-old."


def main(turns: int) -> None:
    """Print tokens per second of both sides and their ratio, greedy and with the default sampling."""
    import llama_cpp as lib

    header("off against a bare loop")
    loaded = engine(model_path("TARGET"), n_ctx=2048)
    model = loaded.pair.target
    assert isinstance(model, LlamaCppModel)
    n_vocab = model.vocab.size
    for name, sampling in {"greedy": Sampling(temperature=0), "default": Sampling(seed=5)}.items():
        first = ask(loaded, PROMPT, sampling, max_tokens=TOKENS)
        ids, start = first.ids, first.cache.prompt_tokens

        def product(sampling: Sampling = sampling) -> float:
            return ask(loaded, PROMPT, sampling, max_tokens=TOKENS).timings.decode_tps or 0.0

        def bare(ids: list[int] = ids, start: int = start) -> float:
            context = model._context
            lib.llama_memory_seq_rm(lib.llama_get_memory(context), 0, start, -1)
            began = 0.0
            for i, token in enumerate(ids[:-1]):
                if i == 1:
                    began = time.perf_counter()
                batch = lib.llama_batch_get_one((ctypes.c_int32 * 1)(token), 1)
                assert lib.llama_decode(context, batch) == 0
                np.ctypeslib.as_array(lib.llama_get_logits_ith(context, -1), (n_vocab,)).argmax()
            seconds = time.perf_counter() - began
            lib.llama_memory_seq_rm(lib.llama_get_memory(context), 0, start + len(ids) - 1, -1)
            return (len(ids) - 2) / seconds

        ours, theirs = in_turns([product, bare], turns)
        print(
            f"{name}: off {spread(ours, 2)} tok/s, bare {spread(theirs, 2)} tok/s, ratio {spread(ratios(ours, theirs))}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
