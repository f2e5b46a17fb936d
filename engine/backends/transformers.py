"""A Model on torch and transformers: one network, one cache, one conversation.

The one invariant: `length` tokens are in the cache, and nothing before it changes; a pass writes behind it and counts
only once it has come to its end, so one that fails or is stopped leaves no trace.  Networks that keep a state instead
are found out by trying: they cannot go back, and a pass of theirs runs to its end.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import safetensors.torch as tensors_file

from engine.backends import state_file
from engine.backends.llamacpp_vocab import open_vocabulary
from engine.backends.state_file import Origin
from engine.backends.torch_captured import CapturedPasses
from engine.backends.torch_choice import captured_passes, narrows
from engine.backends.torch_exit import EarlyExit
from engine.backends.torch_facts import longest_context
from engine.backends.torch_library import Module, Tensor, out_of_memory, reason, torch
from engine.backends.torch_load import Loaded, TorchOptions, beyond, load_network
from engine.backends.torch_network import Network
from engine.backends.torch_progress import Progress
from engine.backends.torch_rows import Selection, select
from engine.backends.torch_trial import Found, try_out
from engine.backends.torch_vocab import CheckpointVocabulary
from engine.backends.torch_weights import compute_type
from engine.backends.trial import Trial
from engine.bounds import check_drop, check_pass, check_rewind, check_room
from engine.engines import torch_stack
from engine.errors import CannotRewind, DecodeFailed, EngineError, LoadFailed, ModelError
from engine.identity import file_identity
from engine.model import FloatArray, Vocabulary
from engine.threads import physical_cores

__all__ = ["TorchModel", "TorchOptions"]

T = TypeVar("T")
_DEFAULT_CTX = 8192
_KV: dict[str, Literal["f16", "bf16", "f32"]] = {"fp16": "f16", "bf16": "bf16", "fp32": "f32"}


class TorchModel:
    """See engine.model.Model and engine.early.LeavesEarly.  Not for two threads at once, `interrupt` apart."""

    def __init__(
        self,
        options: TorchOptions,
        progress: Progress | None = None,
        load: Callable[[TorchOptions, Progress], Loaded] = load_network,
    ) -> None:
        """Load; LoadFailed with the reason, or whatever `progress` raised."""
        self.file = options.path
        self.threads = options.threads or physical_cores()
        torch.set_num_threads(self.threads)
        module, device, self.device, self.weights = load(options, progress or (lambda _: None))
        self.kv = _KV[compute_type(self.weights, device)]
        self.flash_attention: Literal["on", "off"] = "off" if module.config._attn_implementation == "eager" else "on"
        self.n_ctx = self._context(options, module)
        self.n_batch = min(options.n_batch, self.n_ctx)
        self._network: Network | None = Network(module, self.n_ctx, device)
        self._early: EarlyExit | None = None
        """What left early and is not yet in the cache."""
        self.layers = len(self._network.layers)
        """How many it has; 0 where it cannot be left early."""
        self._captured: CapturedPasses | None = None
        self._length = 0
        self._closing = ExitStack()
        self.reach: int | None = 0
        self.narrows = False
        """See engine.narrow.Narrows."""
        self._singly = False
        """Whether what follows a state is run a token at a time."""
        try:
            self.vocab: Vocabulary = self._vocabulary(self._network.columns)
            found = self._try()
            self.reach, self._singly = found.reach, found.singly
            self.layers = self.layers if found.leaves else 0
            self._network.listens = self.reach is None
            self._choose(options.captured)
        except BaseException:
            self.close()
            raise

    def _context(self, options: TorchOptions, module: Module) -> int:
        most = longest_context(module.config)
        wanted = options.n_ctx or min(options.n_ctx_most or _DEFAULT_CTX, most or _DEFAULT_CTX)
        if most and wanted > most:
            raise beyond(self.file.name, most, wanted)
        return wanted

    def _vocabulary(self, columns: int) -> Vocabulary:
        if self.file.is_file():
            return self._closing.enter_context(open_vocabulary(self.file))
        return CheckpointVocabulary(self.file, columns)

    def _try(self) -> Found:
        cache = self._alive().cache
        trial = Trial(
            lambda tokens: self.forward(tokens, 1)[0].copy(),
            self._cut,
            self._clear,
            cells=lambda: cache.numbers(self._length),
        )
        try:
            return try_out(self.file.name, self, trial, cache)
        except DecodeFailed as error:
            cause = error.__cause__ or error
            if isinstance(cause, torch.OutOfMemoryError | MemoryError):
                raise out_of_memory(self.file.name, cause) from error
            raise LoadFailed(f"{self.file.name} cannot be run: {reason(cause)}; take another model") from error
        finally:
            self._clear()

    def _choose(self, captured: bool | None) -> None:
        """What is faster here, of ways that give the same; states need shapes of their own."""
        network = self._alive()
        if self.reach is None and self.kv != "f16":  # which overflows, and then 0 times what is masked is no number
            self._captured = self._guarded(lambda: captured_passes(network, captured))
        self.narrows = self._guarded(lambda: narrows(network))
        self._clear()

    def _alive(self) -> Network:
        if self._network is None:
            raise ModelError("the model is closed: load it again")
        return self._network

    @property
    def captured(self) -> bool:
        """Whether narrow passes have fixed shapes: their sums go another way."""
        return self._captured is not None and self._captured.possible

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._length

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward."""
        return self._forward(tokens, rows, _sent)

    def forward_narrow(self, tokens: Sequence[int], rows: int, count: int, named: Sequence[int]) -> Selection:
        """See Narrows."""
        return self._forward(tokens, rows, lambda logits: select(logits, self.vocab.size, count, named))

    def _forward(self, tokens: Sequence[int], rows: int, take: Callable[[Tensor], T]) -> T:
        self._check(tokens, rows)
        out = self._guarded(lambda: take(self._pass(tokens, rows)))
        self._early = None
        self._length += len(tokens)
        return out

    def leave(self, tokens: Sequence[int], rows: int, layers: int) -> FloatArray:
        """See LeavesEarly.leave."""
        if not 1 <= layers < self.layers:
            raise ValueError(f"{layers} of {self.layers} layers cannot propose")
        early = self._early
        if early is None or early.depth != layers:
            early = self._early = EarlyExit(self._alive(), layers)
        self._check(tokens, rows, len(early.ids))
        return self._guarded(lambda: _sent(early.leave(tokens, rows, self._length)))

    def _pass(self, tokens: Sequence[int], rows: int) -> Tensor:
        network, start = self._alive(), self._length
        if self._early and (resumed := self._early.resume(tokens, rows, start)) is not None:
            return resumed
        if self._captured and (replayed := self._captured.run(tokens, rows, start)) is not None:
            return replayed
        run = network.run_singly if self._singly and start else network.run
        return run(network.ids(tokens), rows, start)

    def _guarded(self, compute: Callable[[], T]) -> T:
        """The result on the host; on failure the cache is as before, or empty where it cannot be."""
        network = self._alive()
        network.stop = False
        try:
            with torch.inference_mode():
                return compute()
        except BaseException as error:
            self._early = None
            if self.reach is not None:
                self._clear()  # a state may have been written to
            if isinstance(error, Exception) and not isinstance(error, EngineError):
                raise DecodeFailed(
                    f"torch failed: {reason(error)}; ask again, or start with a smaller --ctx"
                ) from error
            raise

    def _check(self, tokens: Sequence[int], rows: int, ahead: int = 0) -> None:
        self._alive()
        check_pass(tokens, rows, self.n_batch, self.vocab.size)
        check_room(self._length + ahead, len(tokens), self.n_ctx)

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        self._alive()
        check_rewind(self._length, length)
        if length == 0:
            self._clear()
        elif length < self._length:
            if self.reach is not None:
                raise CannotRewind("this model's memory cannot go back: it can only be cleared and read again")
            self._cut(length)
        self._early = None

    def _cut(self, length: int) -> bool:
        self._length = length
        return True

    def _clear(self) -> None:
        self._length = 0
        self._early = None
        if self._network is not None:
            self._network.cache.clear()

    def drop(self, start: int, end: int) -> None:
        """See Model.drop; this cache never shifts."""
        self._alive()
        check_drop(self._length, start, end)
        if start < end == self._length:
            self.rewind(start)
        elif start < end:
            raise CannotRewind("this model's cache cannot shift: what follows can only be read again")

    def interrupt(self) -> None:
        """See Model.interrupt."""
        if self._network is not None:
            self._network.stop = True

    @cached_property
    def _origin(self) -> Origin:
        return Origin(
            library=torch_stack(),
            model=f"{file_identity(self.file)} {self.weights}",
            kv=self.kv,
            flash_attention=self.flash_attention,
        )

    def save(self, path: Path) -> None:
        """See Model.save; OSError where the file cannot be written."""
        cache = self._alive().cache
        held = {name: tensor.cpu().contiguous() for name, tensor in cache.tensors(self._length)} if self._length else {}
        state_file.write(path, self._origin, self._length, np.frombuffer(tensors_file.save(held), np.uint8))

    def load(self, path: Path) -> None:
        """See Model.load."""
        network = self._alive()
        self._clear()
        length, payload = state_file.read(path, self._origin, self.n_ctx)
        try:
            with torch.inference_mode():
                held = tensors_file.load(payload.tobytes())
                network.cache.restore({name: tensor.to(network.device) for name, tensor in held.items()}, length)
        except Exception as error:
            self._clear()
            raise state_file.unusable(path, reason(error)) from error
        self._length = length

    def close(self) -> None:
        """See Model.close; not while another thread is inside `forward`."""
        if self._network is not None:
            self._network.close()
        self._network = self._captured = self._early = None
        self._closing.close()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _sent(logits: Tensor) -> FloatArray:
    out: FloatArray = logits.float().cpu().numpy()
    return out
