"""Greedy text on torch with speculation against transformers' own generate: the same weights, loaded once, in 32 bits.

Run: PACELINE_TEST_TINY=... python tests/bench/torch_equal.py [tokens] [prompts]
Where texts part, the lead is how far the first choice was ahead of the second there, in a pass of its own.
"""

import sys

import torch
from common import ask, header, model_path
from prompts import FORTY
from transformers import DynamicCache

from engine.backends.llamacpp import LlamaCppModel, LlamaCppOptions
from engine.backends.transformers import TorchModel, TorchOptions
from engine.config import Speculation
from engine.context import common_prefix
from engine.engine import Engine
from engine.engines import torch_stack
from engine.pair import Pair

N_CTX = 2048
DRAFTED = 4
EXIT_EIGHTHS = 3
"""So much of the layers is run where the target drafts for itself."""


def generated(target: TorchModel, prompt: list[int], tokens: int) -> list[int]:
    """What transformers goes on with, without what ends the answer."""
    module = target._alive().module
    ids = torch.tensor([prompt])
    cache = DynamicCache(config=module.config)
    said = module.generate(
        ids, attention_mask=torch.ones_like(ids), cache=cache, max_new_tokens=tokens, do_sample=False
    )
    return [token for token in said[0, len(prompt) :].tolist() if token not in target.vocab.eog]


def lead(target: TorchModel, ids: list[int]) -> float:
    """Of the row after `ids`: its largest logit less the second."""
    target.rewind(0)
    while target.length < len(ids):
        row = target.forward(ids[target.length : target.length + target.n_batch], 1)[0]
    second, first = sorted(row[: target.vocab.size].tolist())[-2:]
    return float(first - second)


def compared(target: TorchModel, prompt: list[int], said: list[int], wanted: list[int]) -> str:
    """equal, or where the two texts part."""
    if said == wanted:
        return "equal"
    place = common_prefix(said, wanted)
    return f"parts at {place} (lead {lead(target, [*prompt, *wanted[:place]]):.5f})"


def main(tokens: int, prompts: int) -> None:
    """A line a prompt, then how many are equal."""
    header(f"greedy on torch against generate, {prompts} prompts x {tokens} tokens, drafts of {DRAFTED}")
    print(f"# {torch_stack()}")
    path = model_path("TINY")
    target = TorchModel(TorchOptions(path=path, n_ctx=N_CTX, weights="fp32", gpu=False))
    draft = LlamaCppModel(LlamaCppOptions(path=path, n_ctx=N_CTX))
    drafts = Speculation(mode="fixed", length=DRAFTED)
    plain = Engine(Pair(target))
    modes = {
        "off": (plain, Speculation(mode="off")),
        "lookup": (plain, drafts),
        "model": (Engine(Pair(target, draft)), drafts),
        "exit": (Engine(Pair(target, exit_layers=target.layers * EXIT_EIGHTHS // 8)), drafts),
    }
    equal, kept, drafted = (dict.fromkeys(modes, 0) for _ in range(3))
    for kind, question in FORTY[:prompts]:
        results, wanted = [], None
        for mode, (engine, speculation) in modes.items():
            target.rewind(0)  # the engines share it
            answer = ask(engine, question, speculation=speculation, max_tokens=tokens)
            prompt = engine.context.ids[: answer.cache.prompt_tokens]
            wanted = wanted if wanted is not None else generated(target, prompt, tokens)
            equal[mode] += answer.ids == wanted
            drafted[mode] += answer.speculation.drafted
            kept[mode] += answer.speculation.accepted
            results.append(f"{mode} {compared(target, prompt, answer.ids, wanted)}")
        print(f"{kind}, {len(wanted or [])} tokens: {', '.join(results)}", flush=True)
    for mode in modes:
        print(f"{mode}: {equal[mode]} of {prompts} equal, {kept[mode]} of {drafted[mode]} drafts kept")


if __name__ == "__main__":
    given = [int(value) for value in sys.argv[1:]]
    main(*given, *(100, 20)[len(given) :])
