"""Tiny networks on torch in the place of toys: with small vocabularies, and in 64 bits, so that no roundings decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.backends.torch_cache import ConversationCache
from engine.backends.toy import ToyVocabulary
from engine.backends.transformers import TorchModel, TorchOptions
from engine.model import FloatArray
from tests import tiny_torch
from tests.tiny_torch import Tiny

Write = Callable[[Path, Tiny], Path]
N_CTX = 256
FAMILIES = {
    "llama": (tiny_torch.write_llama, Tiny(layers=3)),
    "qwen2": (tiny_torch.write_qwen2, Tiny(layers=3)),
    "gemma3": (tiny_torch.write_gemma3, Tiny(layers=6)),
}
BLURS = (0.1, 0.3, 0.6)


class TorchToy(TorchModel):
    """A tiny checkpoint that computes in 64 bits.

    In 32 the rows of wide passes are off by 1e-5, so that one token in a hundred thousand would be another.
    """

    def __init__(self, folder: Path, write: Write, tiny: Tiny) -> None:
        path = folder / f"{write.__name__}-{tiny.layers}-{tiny.seed}-{tiny.blur}"
        if not path.exists():
            write(path, tiny)
        super().__init__(TorchOptions(path=path, n_ctx=N_CTX, n_batch=64, threads=1, weights="fp32", gpu=False))
        network = self._alive()
        network.module.double()
        network.cache = ConversationCache(network.module.config, N_CTX)

    def row(self, ids: Sequence[int]) -> FloatArray:
        """The row after `ids`, from an empty cache."""
        self.rewind(0)
        return self.forward(ids, 1)[0].copy()

    def spells(self, size: int, eog: Sequence[int] = ()) -> "TorchToy":
        """The same with a vocabulary of so many letters: the other columns of its rows are padding then."""
        self.vocab = ToyVocabulary.letters(size, eog=eog)
        return self


@dataclass
class Family:
    """One target twice, and drafts that are more and less like it."""

    target: TorchToy
    fresh: TorchToy
    drafts: dict[float, TorchToy]

    @classmethod
    def of(cls, name: str, folder: Path) -> "Family":
        write, tiny = FAMILIES[name]
        drafts = {blur: TorchToy(folder, write, replace(tiny, blur=blur)) for blur in BLURS}
        return cls(TorchToy(folder, write, tiny), TorchToy(folder, write, tiny), drafts)

    def spell(self, size: int, eog: Sequence[int] = ()) -> "Family":
        """All with a vocabulary of so many letters, nothing read, and the whole context."""
        for model in self.models:
            model.spells(size, eog).rewind(0)
            model.n_ctx = N_CTX
            model.n_batch = 64
        return self

    @property
    def models(self) -> list[TorchToy]:
        return [self.target, self.fresh, *self.drafts.values()]
