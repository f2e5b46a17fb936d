"""A Model on llama.cpp: one GGUF file, one context, one sequence.

The one invariant: `length` is what llama.cpp's memory holds.  It is kept by count while passes succeed, and asked of
llama.cpp after every failure.  Every id, size and position is checked before the call, because llama.cpp answers a
wrong one by ending the process.
"""

import ctypes
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import structs

from engine.backends.llamacpp_batch import Batch
from engine.backends.llamacpp_library import errors_of_call, gpu_name, lib, library_version, reason
from engine.backends.llamacpp_load import (
    LlamaCppOptions,
    Progress,
    abort_callback,
    load_model,
    refuse_without_room,
    resolve_flash_attention,
)
from engine.backends.llamacpp_memory import Memory
from engine.backends.llamacpp_state import load_state, save_state, state_size
from engine.backends.llamacpp_vocab import LlamaCppVocabulary
from engine.backends.state_file import Origin
from engine.backends.trial import Trial
from engine.bounds import check_drop, check_pass, check_rewind, check_room
from engine.config import CacheType
from engine.errors import CannotRewind, DecodeFailed, Interrupted, LoadFailed, ModelError
from engine.identity import file_identity
from engine.model import FloatArray
from engine.threads import physical_cores

__all__ = ["LlamaCppModel", "LlamaCppOptions"]

_CACHE_TYPES = {"f16": 1, "q8_0": 8, "q4_0": 2}
_DEFAULT_CTX = 8192
_NO_SLOT, _ABORTED, _REFUSED = 1, 2, -1


class LlamaCppModel:
    """See engine.model.Model.  Not for use by two threads at once, `interrupt` apart."""

    def __init__(
        self, options: LlamaCppOptions, progress: Progress | None = None, weights: "LlamaCppModel | None" = None
    ) -> None:
        """Load; LoadFailed with llama.cpp's reason, or whatever `progress` raised.

        `weights`: another model of this file, which lends its own and has to outlive this one.
        """
        self._refuse_early(options)
        self._options = options
        self.file = options.path
        self.kv: CacheType = options.kv
        self.threads = options.threads or physical_cores()
        gpu = gpu_name() if options.gpu_layers and lib.llama_supports_gpu_offload() else None
        self.device = gpu or "cpu"
        self.flash_attention: Literal["on", "off"] = resolve_flash_attention(options, gpu is not None)
        self._model: int = weights._model if weights else load_model(options, progress)
        self._owned = None if weights else self._model
        self._context: int | None = None
        self._finalizer = weakref.finalize(self, _free, None, self._owned)
        try:
            self._open(options)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _refuse_early(options: LlamaCppOptions) -> None:
        if options.kv != "f16" and options.flash_attention == "off":
            raise LoadFailed(
                f"a {options.kv} cache needs flash attention: leave it at auto or on, or take an f16 cache"
            )
        if not options.path.is_file():
            raise LoadFailed(f"there is no model file {options.path}: check the path")

    def _open(self, options: LlamaCppOptions) -> None:
        name = self.file.name
        if not lib.llama_model_has_decoder(self._model) or lib.llama_model_is_diffusion(self._model):
            raise LoadFailed(f"{name} does not write text from left to right: take another model")
        if lib.llama_vocab_type(lib.llama_model_get_vocab(self._model)) == 0:
            raise LoadFailed(f"{name} has no tokenizer: take another file of this model")
        self.vocab = LlamaCppVocabulary(self._model)
        self.n_ctx_train: int = lib.llama_model_n_ctx_train(self._model)
        self.n_ctx = options.n_ctx or min(options.n_ctx_most or _DEFAULT_CTX, self.n_ctx_train)
        if self.n_ctx > self.n_ctx_train:
            raise LoadFailed(
                f"{name} was trained for {self.n_ctx_train:,} tokens of context, not {self.n_ctx:,}: "
                "take a smaller --ctx"
            )
        self._length = self._latest = 0
        self._flag = ctypes.create_string_buffer(2)
        self._abort = abort_callback(self._flag)
        self._open_context(options)
        self.n_batch: int = min(lib.llama_n_batch(self._alive()), lib.llama_n_ubatch(self._alive()), self.n_ctx)
        self._batch = Batch(self.n_batch)
        self.reach: int | None = 0
        self.shifts = False
        """Whether `drop` may shift: so it is once `try_shift`, here or in a load before, has found that to be right."""
        self.reach = self._try()
        self._clear()
        if self.reach is None:  # else a pass cut short could not be taken back, so it runs to its end
            self._set_abort(self._abort)

    def _open_context(self, options: LlamaCppOptions) -> None:
        params = lib.llama_context_default_params()
        params.n_ctx = self.n_ctx
        params.n_batch = params.n_ubatch = min(options.n_batch, self.n_ctx)
        params.n_threads = params.n_threads_batch = self.threads
        params.type_k = params.type_v = _CACHE_TYPES[self.kv]
        params.flash_attn_type = int(self.flash_attention == "on")
        params.swa_full = options.swa_full
        params.n_rs_seq = options.snapshots
        params.offload_kqv = params.op_offload = options.gpu_layers != 0
        with errors_of_call() as lines:
            context = lib.llama_init_from_model(self._model, params)
        if not context:
            raise LoadFailed(
                f"{self.file.name} cannot be opened with a context of {self.n_ctx:,} tokens: {reason(lines)}; "
                "take a smaller --ctx or another --kv"
            )
        self._context = context
        self._finalizer.detach()
        self._finalizer = weakref.finalize(self, _free, context, self._owned)
        self._memory = Memory(self._model, context)

    def _try(self) -> int | None:
        """See Model.reach."""
        try:
            return self._trial().reach(self._memory.snapshots, self.n_batch)
        except DecodeFailed as error:
            raise LoadFailed(f"{self.file.name} cannot be run, {error}") from error
        except LoadFailed as error:
            raise LoadFailed(f"{self.file.name} holds damaged weights ({error}): fetch it again") from error

    def _trial(self) -> Trial:
        return Trial(
            lambda tokens: self.forward(tokens, 1)[0].copy(), self._cut, self._clear, self._shift, self._memory.cells
        )

    def try_shift(self) -> bool:
        """Set `shifts` by trying it (see Trial.shifts); empties the cache."""
        self.shifts = False
        try:
            self.shifts = self._trial().shifts(self.n_batch)
        except DecodeFailed:
            pass  # then it cannot be relied on
        finally:
            self._clear()
        return self.shifts

    def _alive(self) -> int:
        if self._context is None:
            raise ModelError("the model is closed: load it again")
        return self._context

    def beside(self, flash_attention: Literal["on", "off"], n_ctx: int) -> "LlamaCppModel":
        """A second context over the same weights, to be closed first; LoadFailed where there is no room for it."""
        options = structs.replace(
            self._options, n_ctx=n_ctx, n_ctx_most=None, flash_attention=flash_attention, threads=self.threads
        )
        refuse_without_room(self.device)
        return LlamaCppModel(options, weights=self)

    def use_threads(self, count: int) -> None:
        """Run the passes to come on so many threads."""
        lib.llama_set_n_threads(self._alive(), count, count)

    @property
    def same_on_any_threads(self) -> bool:
        """Whether results do not depend on their number: flash attention splits a long cache of 16 bits among them."""
        return self.flash_attention == "off"

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return self._length

    def forward(self, tokens: Sequence[int], rows: int) -> FloatArray:
        """See Model.forward; the rows are a read-only view of llama.cpp's own buffer."""
        context = self._alive()
        check_pass(tokens, rows, self.n_batch, self.vocab.size)
        check_room(self._length, len(tokens), self.n_ctx)
        self._batch.fill(tokens, self._length, rows)
        self._flag[0] = b"\0"
        code = lib.llama_decode(context, self._batch.native)
        if code:
            raise self._failure(code)
        self._length += len(tokens)
        self._latest = len(tokens)
        return self._rows(context, rows)

    def _rows(self, context: int, rows: int) -> FloatArray:
        columns = self.vocab.columns
        if not rows:
            lib.llama_synchronize(context)
            return np.empty((0, columns), np.float32)
        pointer = ctypes.cast(lib.llama_get_logits(context), ctypes.c_void_p).value
        if not pointer:
            raise DecodeFailed("llama.cpp gave no logits: ask again")
        buffer = memoryview((ctypes.c_float * (rows * columns)).from_address(pointer))
        out: FloatArray = np.frombuffer(buffer, np.float32).reshape(rows, columns)
        out.flags.writeable = False
        return out

    def _failure(self, code: int) -> Exception:
        """Settle `length` after a pass that failed with `code`; the error to raise."""
        self._settle(code)
        if code == _ABORTED:
            return Interrupted("the pass was stopped")
        if code == _NO_SLOT:
            return DecodeFailed(f"the context of {self.n_ctx:,} tokens has no room left: start with a larger --ctx")
        return DecodeFailed(f"llama.cpp failed with code {code}: ask again, or start with a smaller --ctx")

    def _settle(self, code: int) -> None:
        """Get back to the old length, or to an empty cache where that cannot be."""
        held = self._memory.held
        if self.reach is not None and code not in (_NO_SLOT, _REFUSED):
            self._clear()  # a state may have been written to, whatever is held
        elif held != self._length:
            can = held > self._length and self.reach is None and self._memory.sees(self._length)
            if not (can and self._memory.cut(self._length) and self._memory.held == self._length):
                self._clear()

    def rewind(self, length: int) -> None:
        """See Model.rewind."""
        self._alive()
        check_rewind(self._length, length)
        if length == 0:
            self._clear()
        elif length < self._length:
            self._refuse_too_far(length)
            if not self._cut(length):
                raise CannotRewind(f"llama.cpp does not go back from {self._length:,} to {length:,} tokens")

    def _refuse_too_far(self, length: int) -> None:
        """llama.cpp itself would agree, and go on with a state or a window that is not that of these tokens."""
        if self.reach is None:
            if not self._memory.sees(length):
                window = self._memory.window
                raise CannotRewind(
                    f"the window of {window:,} tokens before {length:,} is gone: it can only be read again"
                )
        elif self._length - length > min(self.reach, self._latest - 1):
            raise CannotRewind("this model's memory cannot go back so far: it can only be cleared and read again")

    def _cut(self, length: int) -> bool:
        if not self._memory.cut(length):
            return False
        self._length, self._latest = length, 0  # a snapshot serves once
        return True

    def drop(self, start: int, end: int) -> None:
        """See Model.drop; DecodeFailed leaves the cache unknown."""
        self._alive()
        check_drop(self._length, start, end)
        if start < end == self._length:
            self.rewind(start)
        elif start < end and not (self.shifts and self._shift(start, end)):
            raise CannotRewind("this model's cache cannot shift: what follows can only be read again")

    def _shift(self, start: int, end: int) -> bool:
        """Do what llama.cpp calls a shift, where it can and lives; whether it was done."""
        if self.reach is not None or self.kv != "f16" or not self._memory.drop(start, end):
            return False
        self._length -= end - start
        self._move()
        return True

    def _move(self) -> None:
        """Have the cells moved, by a pass that nothing can stop: a cache saved before that would be corrupt."""
        length = self._length
        self._set_abort(lib.ggml_abort_callback())
        try:
            self.forward([0], 0)
            self.rewind(length)
        except BaseException:
            self._clear()
            raise
        finally:
            self._set_abort(self._abort)

    def _set_abort(self, callback: object) -> None:
        lib.llama_set_abort_callback(self._alive(), callback, ctypes.addressof(self._flag))

    def _clear(self) -> None:
        self._memory.clear()
        self._length = self._latest = 0

    def interrupt(self) -> None:
        """See Model.interrupt."""
        self._flag[0] = b"\1"

    @cached_property
    def _origin(self) -> Origin:
        return Origin(
            library=library_version(),
            model=file_identity(self.file),
            kv=self.kv,
            flash_attention=self.flash_attention,
        )

    def saved_size(self) -> int:
        """See engine.model.TellsSize."""
        return state_size(self._alive())

    def save(self, path: Path) -> None:
        """See Model.save; OSError where the file cannot be written."""
        save_state(self._alive(), path, self._origin, self._length)

    def load(self, path: Path) -> None:
        """See Model.load."""
        context = self._alive()
        self._clear()
        try:
            self._length = load_state(context, path, self._origin, self.n_ctx)
        except BaseException:
            self._clear()
            raise

    def close(self) -> None:
        """See Model.close; not while another thread is inside `forward`."""
        self._context = None
        if hasattr(self, "vocab"):
            self.vocab.invalidate()
        self._finalizer()


def _free(context: int | None, model: int | None) -> None:
    if context is not None:
        lib.llama_free(context)
    if model is not None:
        lib.llama_model_free(model)
