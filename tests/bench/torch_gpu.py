"""What passes cost on this device by width, and decoding with speculation off, fixed and auto, on the torch engine.

Random networks of Qwen 2 shape (7B with a draft of 0.5B; speed needs no real weights), whose drafts are kept by a rule
with a programmed chance, and SmolLM2 with its own words.  The same script runs on a CPU, with small shapes.
Run: PACELINE_TEST_TINY=... python tests/bench/torch_gpu.py [7b|small] [tokens] [chance]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import ask, header, in_turns, model_path, ratios, spec, spread

from engine.backends.torch_library import pick_device, torch, transformers
from engine.backends.torch_load import Loaded
from engine.backends.torch_progress import Progress
from engine.backends.torch_quantize import quantize
from engine.backends.torch_weights import DTYPES, compute_type
from engine.backends.transformers import TorchModel, TorchOptions
from engine.config import Sampling
from engine.cost_table import COST_WIDTHS, measure_costs
from engine.costs import Costs, DraftCost
from engine.engine import Engine
from engine.engines import torch_stack
from engine.pair import Pair
from engine.sampling import Distribution
from tests.tiny_torch import write_tokenizer

SHAPES = {
    "7b": ((3584, 18944, 28, 28, 4, 152_064), (896, 4864, 24, 14, 2, 151_936)),
    "small": ((512, 1536, 12, 8, 2, 32_000), (128, 384, 4, 4, 2, 32_000)),
}
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)


class Programmed:
    """Keeps a draft with a chance that is given, whatever the rows say: how fast, not what, is measured."""

    def __init__(self, chance: float, seed: int) -> None:
        self._chance, self._random = chance, np.random.default_rng(seed)

    def propose(self, draft: Distribution, position: int) -> int:
        return draft.draw(self._random.random())

    def choose(self, target: Distribution, position: int) -> int:
        return target.draw(self._random.random())

    def judge(self, token: int, target: Distribution, draft: Distribution | None, position: int) -> int:
        if self._random.random() < self._chance:
            return token
        drawn = self.choose(target, position)
        return drawn if drawn != token else token + 1 if token < 200 else token - 1


def random_model(folder: Path, shape: tuple[int, ...], weights: str, captured: bool | None) -> TorchModel:
    """A network of this shape with random weights, made on the device."""
    hidden, inner, layers, heads, groups, columns = shape
    config = transformers.Qwen2Config(
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        vocab_size=columns,
        max_position_embeddings=4096,
    )

    def load(options: TorchOptions, _progress: Progress) -> Loaded:
        device, name = pick_device(options.gpu)
        with torch.device(device):
            module = transformers.AutoModelForCausalLM.from_config(
                config, dtype=DTYPES[compute_type(options.weights, device)]
            )
        module.eval().requires_grad_(False)
        if options.weights == "nf4":
            quantize(module, "nf4", device)
        return Loaded(module, device, name, options.weights)

    return TorchModel(TorchOptions(path=folder, n_ctx=2048, weights=weights, captured=captured), load=load)


def by_width(model: TorchModel) -> str:
    """Milliseconds of a pass at 200 tokens, all rows brought to the host; the least of three."""
    model.rewind(0)
    model.forward([5] * 200, 0)
    out = []
    for width in WIDTHS:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            model.forward([7] * width, width)
            times.append(1000 * (time.perf_counter() - start))
            model.rewind(200)
        out.append(f"{width}: {min(times[1:]):.1f}")
    return ", ".join(out)


def widths(folder: Path, shape: tuple[int, ...], weights: str, what: str) -> None:
    """A line for passes as they come, and one for captured ones."""
    for captured in (False, True):
        model = random_model(folder, shape, weights, captured)
        print(f"{what} {weights}, {'captured' if captured else 'as they come'}, ms by width: {by_width(model)}")
        model.close()


def decoding(engine: Engine, what: str, prompt: str, tokens: int, turns: int = 2) -> None:
    """Off, a fixed length and auto in turns."""
    sampling = Sampling(temperature=1.0, top_k=40, logit_bias=dict.fromkeys(engine.pair.target.vocab.eog, -np.inf))
    plans: dict[str, str] = {}

    def run(mode: str) -> float:
        answer = ask(engine, prompt, sampling, spec(mode), tokens)
        plans[mode] = answer.speculation.plan
        return answer.timings.decode_tps or 0.0

    run("auto")
    off, fixed, auto = in_turns([lambda: run("off"), lambda: run("4"), lambda: run("auto")], turns)
    print(
        f"{what}: off {spread(off, 1)} tok/s; fixed 4 {spread(ratios(fixed, off), 2)}; auto "
        f"{spread(ratios(auto, off), 2)}; auto: {plans['auto']}",
        flush=True,
    )


def random_pair(folder: Path, size: str, weights: str, tokens: int, chance: float) -> None:
    """Decoding with a draft whose tokens are kept with `chance`."""
    target, draft = (random_model(folder, shape, weights, None) for shape in SHAPES[size])
    measured = measure_costs(target, COST_WIDTHS)
    costs = Costs(measured.surface(), {"model": DraftCost(measure_costs(draft, (1,)).cost(1))})
    pair = Pair(target, draft, "target", "draft", costs=costs, device=target.device)
    engine = Engine(pair, rules=lambda _name, seed, start: Programmed(chance, seed + start))
    kind = f"captured {target.captured}, narrow rows {target.narrows}"
    decoding(engine, f"{size} {weights}, drafts kept {chance:.0%}, {kind}", "Count from one to a hundred.", tokens)
    engine.close()


def smollm(weights: str, tokens: int) -> None:
    """SmolLM2 with lookup: its own words."""
    model = TorchModel(TorchOptions(path=model_path("TINY"), n_ctx=2048, weights=weights))
    print(f"SmolLM2 135M {weights}, ms by width: {by_width(model)}")
    model.rewind(0)
    table = measure_costs(model, COST_WIDTHS)
    costs = Costs(table.surface())
    engine = Engine(Pair(model, costs=costs, device=model.device))
    decoding(engine, f"SmolLM2 135M {weights}, lookup", "Write the numbers from one to thirty in words.", tokens)
    engine.close()


def main(size: str, tokens: int, chance: float) -> None:
    """All tables."""
    _, name = pick_device(True)
    header(f"torch engine on {name}, {size}, {tokens} tokens, {torch_stack()}")
    with tempfile.TemporaryDirectory() as folder:
        path = write_tokenizer(Path(folder))
        (path / "config.json").write_text("{}")
        for weights in ("bf16", "nf4"):
            for shape, what in zip(SHAPES[size], ("target", "draft"), strict=True):
                widths(path, shape, weights, f"{size} {what}")
            random_pair(path, size, weights, tokens, chance)
    for weights in ("bf16", "nf4"):
        smollm(weights, tokens)


if __name__ == "__main__":
    default = "7b" if torch.cuda.is_available() else "small"
    size, tokens, chance = [*sys.argv[1:], *(default, "128", "0.8")[len(sys.argv) - 1 :]]
    main(size, int(tokens), float(chance))
