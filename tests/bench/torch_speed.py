"""The torch engine against transformers' own generate: same weights, same threads, same process, greedy, in turns.

Off against `generate`, auto and fixed lengths against assisted generation (`assistant_model`) and prompt lookup
(`prompt_lookup_num_tokens`), with acceptance for each; then what a second turn reads in either model.
Run: PACELINE_TEST_TARGET=... PACELINE_TEST_DRAFT=... python tests/bench/torch_speed.py
[weights] [tokens] [turns] [kinds] [model|lookup]
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from common import ask, engine, header, in_turns, model_path, ratios, spec, spread
from prompts import PROMPTS

from engine.backends.torch_library import torch
from engine.backends.transformers import TorchModel
from engine.config import Message
from engine.engine import Engine
from engine.engines import torch_stack
from engine.stats import Answer

KINDS = ("coding", "editing", "chat", "summary")
FIXED = 4


@dataclass
class Watch:
    """A streamer that notes when tokens came: the first call brings the prompt, the second the first round."""

    counts: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def put(self, value: "torch.Tensor") -> None:
        self.counts.append(value.numel())
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass

    @property
    def tokens_per_second(self) -> float:
        return sum(self.counts[2:]) / (self.times[-1] - self.times[1])


@dataclass
class Counts:
    """What a candidate generator of transformers had drafted and kept."""

    drafted: int = 0
    accepted: int = 0

    def __str__(self) -> str:
        return f"{self.accepted}/{self.drafted}" + (f" = {self.accepted / self.drafted:.2f}" if self.drafted else "")


@contextmanager
def counted(counts: Counts) -> Iterator[None]:
    """While the context is open, candidate generators are listened to."""
    from transformers.generation import candidate_generator as module

    kinds = (module.AssistedCandidateGenerator, module.PromptLookupCandidateGenerator)
    before = [(kind, kind.get_candidates, kind.update_candidate_strategy) for kind in kinds]
    for kind, get, update in before:

        def get_candidates(self: object, ids: "torch.Tensor", *a: object, get: Callable = get, **k: object) -> object:
            found = get(self, ids, *a, **k)
            counts.drafted += found[0].shape[1] - ids.shape[1]
            return found

        def updated(self: object, ids: object, scores: object, kept: int, *, update: Callable = update) -> object:
            counts.accepted += int(kept)
            return update(self, ids, scores, kept)

        kind.get_candidates, kind.update_candidate_strategy = get_candidates, updated
    try:
        yield
    finally:
        for kind, get, update in before:
            kind.get_candidates, kind.update_candidate_strategy = get, update


class Theirs:
    """transformers' generate on the modules that our engine loaded."""

    def __init__(self, loaded: Engine, tokens: int) -> None:
        target, draft = loaded.pair.target, loaded.pair.draft
        assert isinstance(target, TorchModel)
        self.target = target._alive().module
        self.draft = draft._alive().module if isinstance(draft, TorchModel) else None
        self._tokens = tokens

    def run(self, prompt: list[int], **options: object) -> tuple[Watch, Counts, list[int]]:
        watch, counts, ids = Watch(), Counts(), torch.tensor([prompt])
        with torch.inference_mode(), counted(counts):
            out = self.target.generate(
                ids, do_sample=False, max_new_tokens=self._tokens, streamer=watch, pad_token_id=0, **options
            )
        return watch, counts, out[0, len(prompt) :].tolist()


def compare(loaded: Engine, tokens: int, turns: int, kinds: Sequence[str]) -> None:
    """A line a kind and a rival."""
    theirs = Theirs(loaded, tokens)
    for kind in kinds:
        question = PROMPTS[kind][0]
        ask(loaded, question, max_tokens=1)
        prompt = loaded.context.ids[: ask(loaded, question, max_tokens=1).cache.prompt_tokens]
        last: dict[str, Answer] = {}
        counts: dict[str, Counts] = {}

        def ours(mode: str, question: str = question, last: dict[str, Answer] = last) -> float:
            last[mode] = ask(loaded, question, speculation=spec(mode), max_tokens=tokens)
            return last[mode].timings.decode_tps or 0.0

        def other(
            name: str, prompt: list[int] = prompt, counts: dict[str, Counts] = counts, **options: object
        ) -> float:
            watch, counts[name], _ = theirs.run(prompt, **options)
            return watch.tokens_per_second

        sides: dict[str, Callable[[], float]] = {
            "off": lambda: ours("off"),
            "generate": lambda: other("generate"),
            "auto": lambda: ours("auto"),
            f"fixed {FIXED}": lambda: ours(str(FIXED)),
            "prompt_lookup 10": lambda: other("prompt_lookup 10", prompt_lookup_num_tokens=10),
        }
        if theirs.draft is not None:
            sides["assistant_model"] = lambda: other("assistant_model", assistant_model=theirs.draft)
        figures = dict(zip(sides, in_turns(list(sides.values()), turns), strict=True))
        for ours_name, their_name in (("off", "generate"), ("auto", "generate"), *_rivals(figures)):
            ratio = ratios(figures[ours_name], figures[their_name])
            print(f"{kind}: {ours_name} / {their_name}: {spread(ratio)}", flush=True)
        auto, fixed = last["auto"].speculation, last[str(FIXED)].speculation
        rivals = ", ".join(f"{name} {count}" for name, count in counts.items() if count.drafted)
        print(
            f"{kind}: off {spread(figures['off'], 2)} tok/s; kept: auto {auto.accepted}/{auto.drafted}, fixed "
            f"{fixed.accepted}/{fixed.drafted}, theirs {rivals}; "
            f"auto: {auto.plan}",
            flush=True,
        )


def _rivals(figures: dict[str, list[float]]) -> list[tuple[str, str]]:
    return [(ours, their) for their in figures if "_" in their for ours in ("auto", f"fixed {FIXED}")]


def second_turn(loaded: Engine, tokens: int) -> None:
    """What each model reads of a second turn: ours by the receipts, theirs by their first passes."""
    theirs = Theirs(loaded, tokens)
    first, second = "Write a Python function that merges two sorted lists.", "Now write a test for it."
    messages = [Message(role="user", content=first)]
    answer = ask(loaded, messages, speculation=spec(str(FIXED)), max_tokens=tokens)
    messages += [
        Message(role="assistant", content=answer.text, ids=tuple(answer.ids)),
        Message(role="user", content=second),
    ]
    after = ask(loaded, messages, speculation=spec(str(FIXED)), max_tokens=tokens)
    print(
        f"second turn, prompt {after.cache.prompt_tokens}: ours: target {after.cache.target}, draft {after.cache.draft}"
    )
    if theirs.draft is None:
        return
    prompt = loaded.context.ids[: after.cache.prompt_tokens]
    first_pass: dict[str, int] = {}

    def noted(name: str) -> Callable[..., None]:
        def note(_module: object, _args: object, options: dict[str, torch.Tensor]) -> None:
            first_pass.setdefault(name, options["input_ids"].shape[1])

        return note

    handles = [
        module.register_forward_pre_hook(noted(name), with_kwargs=True)
        for name, module in (("target", theirs.target), ("draft", theirs.draft))
    ]
    theirs.run(prompt, assistant_model=theirs.draft)
    for handle in handles:
        handle.remove()
    print(f"second turn, theirs: the first pass of each model reads {first_pass} tokens", flush=True)


def main(weights: str, tokens: int, turns: int, kinds: str = "", drafts: str = "model") -> None:
    """Load, then all comparisons; with "lookup" there is no draft model."""
    header(f"torch engine against generate, {weights}, {tokens} tokens, {turns} turns, {torch_stack()}")
    loaded = engine(
        model_path("TARGET"),
        model_path("DRAFT") if drafts == "model" else None,
        n_ctx=2048,
        backend="torch",
        draft_backend="torch",
        weights=weights,
    )
    costs = loaded.pair.costs
    print("ms by width:", {w: round(costs.target(w, 0), 1) for w in (1, 2, 4, 8, 16)}, "drafts:", dict(costs.drafts))
    compare(loaded, tokens, turns, kinds.split(",") if kinds else KINDS)
    if drafts == "model":
        second_turn(loaded, tokens)
    loaded.close()


if __name__ == "__main__":
    weights, tokens, turns, *rest = [*sys.argv[1:], *("auto", "96", "3")[len(sys.argv) - 1 :]]
    main(weights, int(tokens), int(turns), *rest)
